// One row of the page's tables of causes, a cause being the reason why the device was idle.
import type { CauseSummary } from "../generated/protocol.ts";

/** The idle time of one cause, of a whole trace or of a range of it. */
export type CauseRow = Pick<CauseSummary, "cause" | "count" | "main_count" | "main_ns" | "total_ns">;
