// The panel of idle time: a table by cause, and the longest gaps. A gap is a time in which a device was idle between
// work; it consists of parts, each with one cause.

import type { Trace } from "../data/trace.ts";
import { fill, h, keepFocus } from "../dom.ts";
import type { CauseRow } from "../data/cause-row.ts";
import type { Gap } from "../generated/protocol.ts";
import { count, duration, instant, plural, share } from "../time/format.ts";
import { overlaps, type Range } from "../time/range.ts";
import { type Loadable, type FindingsSoFar, part } from "./loadable.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";

const NEVER_IDLE = "The device was never idle between work.";
const NOT_IDLE_HERE = "The device was not idle between work in the selected range.";
const NOT_FOUND = "None of the longest gaps is in the selected range or found by the search.";
const NOT_LISTED = "No gap with this cause is among the longest.";
const NO_TIMES = "No GPU work has known times, so there is no idle time between it.";
/** The least length of a gap that the keys for gaps in time go to, as a share of the longest listed one. */
const MIN_SHARE_OF_LONGEST = 0.01;
/** The least share of the idle time for which a cause is shown with advice. */
const ADVICE_SHARE = 0.03;

/** The idle time that the panel shows. */
interface IdleTimeRows {
  causes: CauseRow[];
  longest: Gap[];
  gap_count: number;
  total_ns: number;
  /** Whether any work has known times. */
  timed: boolean;
}

/** A restriction of the idle time that is shown. */
export interface GapsFilter {
  range: Range | null;
  /** The idle time by cause in the range. */
  causes: Loadable<CauseRow[]> | null;
  /** Tells whether a text matches the search; null without a search. */
  finds: ((text: string) => boolean) | null;
}

/** The panel of one trace. `narrow` and then `show` are called after each change. */
export class GapsPanel {
  readonly element = h("div", { class: "panel gaps-panel" });
  private readonly causes: Table<CauseRow>;
  /** The list of gaps; another one for each restriction to a cause. */
  private list: Table<Gap>;
  private idle: Loadable<IdleTimeRows> = { state: "loading", message: "" };
  /** If set, only gaps with a part of this cause are listed and jumped to. */
  private cause: string | null = null;
  private narrowed: GapsFilter = { range: null, causes: null, finds: null };
  private readonly head = h("p", { class: "panel-head" });
  /** A note that is shown during a search, which filters the list of gaps but not the sums by cause. */
  private readonly causesOf = h("p", { class: "panel-head note", hidden: true }, "By cause: of all gaps, found or not");
  private readonly listed = h("div", { class: "gaps-list" });

  constructor(
    private readonly trace: Trace,
    /** Goes to a gap and picks its part with the cause. */
    private readonly go: (gap: Gap, cause: string) => void,
    /** Called when another cause was chosen. */
    private readonly chosen: () => void = () => undefined,
  ) {
    this.causes = new Table<CauseRow>({
      name: "Idle time by cause",
      sorted: 2,
      empty: NEVER_IDLE,
      pick: (row) => this.choose(this.cause === row.cause ? null : row.cause),
      note: (row) => this.causeNote(row),
      columns: [
        { head: "Cause", text: (row) => this.name(row.cause), sort: (row) => this.trace.causes.name(row.cause), wide: true, whole: true },
        { head: "Gaps", text: (row) => count(row.count), sort: (row) => row.count, number: true, tooltip: "Gaps in which it has a part." },
        { head: "Time", text: (row) => duration(row.total_ns), sort: (row) => row.total_ns, number: true },
        { head: "Of idle", text: (row) => share(row.total_ns / this.total()), sort: (row) => row.total_ns, number: true },
      ],
    });
    this.list = this.listOf(null);
    fill(this.element, h("div", { class: "split" }, h("div", { class: "causes-table" }, this.causesOf, this.causes.element), this.listed));
  }

  /** Makes the list of all gaps, or of those with a part of a cause, by the time of that cause. */
  private listOf(cause: string | null): Table<Gap> {
    const between = { head: "Between", text: (gap: Gap) => `${gap.before.name} → ${gap.after.name}`, sort: (gap: Gap) => gap.before.name, wide: true };
    const at = { head: "At", text: (gap: Gap) => instant(gap.start_ns, 1e4), sort: (gap: Gap) => gap.start_ns, number: true };
    const whole = { text: (gap: Gap) => duration(gap.duration_ns), sort: (gap: Gap) => gap.duration_ns, number: true };
    return new Table<Gap>({
      name: "The costliest gaps",
      sorted: 1,
      empty: NOT_LISTED,
      pick: (gap) => this.go(gap, cause ?? gap.cause),
      columns: [
        { head: "Cause", text: (gap) => this.name(cause ?? gap.cause), sort: (gap) => this.trace.causes.name(cause ?? gap.cause) },
        ...(cause === null
          ? [{ head: "Length", ...whole }]
          : [
              { head: "By it", text: (gap: Gap) => duration(timeBy(gap, cause)), sort: (gap: Gap) => timeBy(gap, cause), number: true, tooltip: `Time of the gap by ${this.trace.causes.name(cause)}.` },
              { head: "Of", ...whole, tooltip: "Length of the whole gap." },
            ]),
        at,
        between,
      ],
    });
  }

  private name(cause: string): HTMLElement {
    const { causes } = this.trace;
    return h("span", { class: "cause", title: causes.sentence(cause) }, swatch(causes.colour(cause)), h("span", { class: "clip" }, causes.name(cause)));
  }

  /** Returns the code of a cause and advice, where the cause takes enough time. */
  private causeNote(row: CauseRow): Node | null {
    const { causes } = this.trace;
    const [code, advice] = [causes.code(row.cause), causes.advice(row.cause)];
    if (row.total_ns < this.total() * ADVICE_SHARE || !(code || advice)) return null;
    return h("span", {}, code ? h("code", { class: "cause-code" }, code) : null, h("span", { class: "cause-advice note" }, advice));
  }

  /** Returns the idle time of the selected range, or of the whole trace; NaN where it is not known. */
  private total(): number {
    const { causes } = this.narrowed;
    if (causes) return causes.state === "loaded" ? causes.value.reduce((sum, { total_ns }) => sum + total_ns, 0) : NaN;
    return this.idle.state === "loaded" ? this.idle.value.total_ns : NaN;
  }

  /** Sets the restriction for the next call of `show`. */
  narrow(narrowed: GapsFilter): void {
    this.narrowed = narrowed;
  }

  /** Shows the idle time of the findings, or `loadingMessage` until there are any. */
  show(findings: FindingsSoFar, loadingMessage: string): void {
    this.idle = part(findings, loadingMessage, ({ gaps, idle_time, gpu_busy_ns }): IdleTimeRows | null => {
      const timed = gpu_busy_ns !== null;
      // Work without times leaves the idle time unknown; otherwise it is still on its way.
      if (!gaps || (idle_time === null && timed)) return null;
      const { longest, gap_count, total_ns } = idle_time ?? { longest: [], gap_count: 0, total_ns: 0 };
      return { causes: gaps.filter((row) => row.total_ns > 0), longest, gap_count, total_ns, timed };
    });
    const { causes } = this.narrowed;
    this.causesOf.hidden = this.narrowed.finds === null;
    if (this.idle.state === "loaded") this.causes.empty = !this.idle.value.timed ? NO_TIMES : causes ? NOT_IDLE_HERE : NEVER_IDLE;
    const whole: Loadable<CauseRow[]> = this.idle.state === "loaded" ? { state: "loaded", value: this.idle.value.causes } : this.idle;
    this.causes.take(causes?.state === "loaded" ? { state: "loaded", value: causes.value.filter((row) => row.total_ns > 0) } : (causes ?? whole));
    this.filter(this.cause);
  }

  /** The cause that the list is restricted to; "" for none. */
  get only(): string {
    return this.cause ?? "";
  }

  set only(cause: string) {
    this.filter(this.trace.causes.get(cause) ? cause : null);
  }

  /** Restricts the list to a cause, or to none for null, as the reader has chosen. */
  private choose(cause: string | null): void {
    this.filter(cause);
    this.chosen();
  }

  /** Shows the list for a cause, and says what of all gaps it has. */
  private filter(cause: string | null): void {
    if (this.cause !== cause) this.list = this.listOf(cause);
    this.cause = cause;
    this.element.dataset.cause = cause ?? "";
    const { idle } = this;
    if (idle.state !== "loaded") {
      delete this.element.dataset.gaps;
      return fill(this.listed);
    }
    const { longest, gap_count, total_ns } = idle.value;
    const gaps = this.gaps;
    const { range, finds } = this.narrowed;
    const narrowed = range !== null || finds !== null;
    this.list.empty = gap_count === 0 ? "" : narrowed ? NOT_FOUND : NOT_LISTED;
    this.list.show(gaps);
    const words = [
      cause ? h("span", {}, `${plural(gaps.length, "gap", "gaps")} with ${this.trace.causes.name(cause)} `, h("button", { type: "button", onclick: () => this.showAll() }, "show all")) : null,
      cause ? null : h("span", {}, narrowed ? `${plural(gaps.length, "gap", "gaps")} of ${count(gap_count)}${range ? ", each with its whole length" : ""}` : `${plural(gap_count, "gap", "gaps")}, ${duration(total_ns)} idle`),
      longest.length < gap_count ? h("span", { class: "note" }, ` · ${cause || narrowed ? "of " : ""}the ${count(longest.length)} longest${cause || narrowed ? "" : " are listed"}`) : null,
    ];
    keepFocus(this.head, () => fill(this.head, words));
    if (this.listed.firstChild !== this.head || this.listed.lastChild !== this.list.element) fill(this.listed, this.head, this.list.element);
    this.element.dataset.gaps = String(gap_count);
  }

  private showAll(): void {
    this.choose(null);
    // The focused button has been removed.
    this.list.element.focus();
  }

  /** The gaps that pass the restriction. */
  private get gaps(): Gap[] {
    const { range, finds } = this.narrowed;
    const all = this.idle.state === "loaded" ? this.idle.value.longest : [];
    return all.filter(
      (gap) =>
        (this.cause === null || timeBy(gap, this.cause) > 0) &&
        (range === null || overlaps(range, { from_ns: gap.start_ns, to_ns: gap.start_ns + gap.duration_ns })) &&
        (finds === null || gapTexts(gap, this.trace).some(finds)),
    );
  }

  /** Goes to the next gap by cost after `picked`, the start of a gap, or to the one before it; without one to the costliest. */
  jumpByCost(picked: number | null, forward: boolean): boolean {
    return this.goTo(nextByCost(this.gaps, this.cause, picked, forward));
  }

  /** Goes to the next or previous long gap in time, from `picked`, the start of a gap, or else from the left edge. */
  jumpInTime(picked: number | null, left_ns: number, forward: boolean): boolean {
    return this.goTo(nextGap(this.gaps, this.cause, picked, left_ns, forward));
  }

  /** Goes to a gap, and returns whether there is one. */
  private goTo(gap: Gap | null): boolean {
    if (gap) this.go(gap, this.cause ?? gap.cause);
    return gap !== null;
  }

  /** Whether the gaps are still being analysed. */
  get isLoading(): boolean {
    return this.idle.state === "loading";
  }

  /** The message for when there is no gap to go to. */
  get why(): string {
    return this.idle.state === "loaded" ? "There are no gaps to go to." : this.idle.message;
  }
}

/** Returns the texts of a gap that the search looks at: its causes, the work and labels around it, its thread. */
export function gapTexts(gap: Gap, { causes }: Trace): string[] {
  const around = [gap.before, gap.after].flatMap(({ name, label }) => [name, label ?? ""]);
  return [...around, gap.thread_name ?? "", ...gap.parts.map(({ cause }) => causes.name(cause))].filter(Boolean);
}

/** Returns the time of a gap with a cause, or its whole length without one. */
export function timeBy(gap: Gap, cause: string | null): number {
  if (cause === null) return gap.duration_ns;
  return gap.parts.reduce((sum, part) => sum + (part.cause === cause ? part.duration_ns : 0), 0);
}

/**
 * Returns the gap that comes after the one that starts at `picked` by cost, or before it. It wraps around, and begins
 * at the costliest; null without gaps.
 */
export function nextByCost(gaps: readonly Gap[], cause: string | null, picked: number | null, forward: boolean): Gap | null {
  const sorted = [...gaps].sort((a, b) => timeBy(b, cause) - timeBy(a, cause) || a.start_ns - b.start_ns);
  const at = sorted.findIndex(({ start_ns }) => start_ns === picked);
  if (at < 0) return sorted[0] ?? null;
  return sorted[(at + (forward ? 1 : sorted.length - 1)) % sorted.length];
}

/**
 * Returns the next or previous gap in time that is not much shorter than the longest. Without a picked gap, this is
 * the first from the left edge on, or the last before it. It wraps around; null without gaps.
 */
export function nextGap(gaps: readonly Gap[], cause: string | null, picked: number | null, left_ns: number, forward: boolean): Gap | null {
  const most = gaps.reduce((most, gap) => Math.max(most, timeBy(gap, cause)), 0);
  const sorted = gaps.filter((gap) => timeBy(gap, cause) >= most * MIN_SHARE_OF_LONGEST).sort((a, b) => a.start_ns - b.start_ns);
  const after = ({ start_ns }: Gap): boolean => (picked === null ? start_ns >= left_ns : start_ns > picked);
  const before = ({ start_ns }: Gap): boolean => start_ns < (picked ?? left_ns);
  const found = forward ? sorted.find(after) : sorted.findLast(before);
  return found ?? (forward ? sorted[0] : sorted[sorted.length - 1]) ?? null;
}
