// The reason that stands in place of an answer that cannot be had.

import type { Missing } from "../generated/protocol.ts";


/** Returns whether an answer is such a reason instead of what was asked. */
export function isMissing(answer: unknown): answer is Missing {
  return typeof answer === "object" && answer !== null && "missing" in answer;
}
