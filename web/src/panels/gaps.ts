// Idle time: by cause, and the gaps that cost most.

import type { Findings, Gap, GapTotal } from "../data/answers.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { count, duration, instant, of, share } from "../time/format.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";

const NEVER_IDLE = "The device was never idle between work.";
const NOT_LISTED = "No gap with this cause is among the longest.";

export class GapsPanel {
  readonly element = h("div", { class: "panel gaps-panel" });
  private readonly causes: Table<GapTotal>;
  private readonly list: Table<Gap>;
  private findings: Findings | null = null;
  /** Only gaps with a part of this cause are listed and jumped to. */
  private cause: string | null = null;
  private readonly head = h("p", { class: "panel-head" });

  constructor(
    private readonly trace: Trace,
    go: (gap: Gap) => void,
  ) {
    this.causes = new Table<GapTotal>({
      name: "Idle time by cause",
      sorted: 2,
      empty: NEVER_IDLE,
      pick: (row) => this.filter(this.cause === row.cause ? null : row.cause),
      columns: [
        { head: "Cause", text: (row) => this.name(row.cause), sort: (row) => this.trace.causes.name(row.cause), wide: true },
        { head: "Gaps", text: (row) => count(row.count), sort: (row) => row.count, number: true, says: "Gaps in which it has a part." },
        { head: "Time", text: (row) => duration(row.total_ns), sort: (row) => row.total_ns, number: true },
        { head: "Of idle", text: (row) => share(row.total_ns / this.total()), sort: (row) => row.total_ns, number: true },
      ],
    });
    this.list = new Table<Gap>({
      name: "The costliest gaps",
      sorted: 1,
      empty: NOT_LISTED,
      pick: go,
      columns: [
        { head: "Cause", text: (gap) => this.name(gap.cause), sort: (gap) => this.trace.causes.name(gap.cause) },
        { head: "Length", text: (gap) => duration(gap.duration_ns), sort: (gap) => gap.duration_ns, number: true },
        { head: "At", text: (gap) => instant(gap.start_ns, 1e4), sort: (gap) => gap.start_ns, number: true },
        { head: "Between", text: (gap) => `${gap.before.name} → ${gap.after.name}`, sort: (gap) => gap.before.name, wide: true },
      ],
    });
    fill(
      this.element,
      h("div", { class: "split" }, h("div", { class: "causes-table" }, this.causes.element), h("div", { class: "gaps-list" }, this.head, this.list.element)),
    );
  }

  private name(cause: string): HTMLElement {
    const { causes } = this.trace;
    return h("span", { class: "cause", title: causes.sentence(cause) }, swatch(causes.colour(cause)), causes.name(cause));
  }

  private total(): number {
    return this.findings?.idle_time.total_ns ?? NaN;
  }

  show(findings: Findings): void {
    this.findings = findings;
    const nothing = "No GPU work has known times, so there is no idle time between it.";
    this.causes.empty = findings.gpu_busy_ns ? NEVER_IDLE : nothing;
    this.list.empty = findings.idle_time.gap_count > 0 ? NOT_LISTED : "";
    this.causes.show(findings.gaps.filter((row) => row.total_ns > 0));
    this.filter(this.cause);
  }

  private filter(cause: string | null): void {
    if (!this.findings) return;
    const changed = this.cause !== cause;
    this.cause = cause;
    const { longest, gap_count, total_ns } = this.findings.idle_time;
    const listed = this.listed;
    this.list.show(listed);
    if (changed) this.list.element.scrollTop = 0;
    fill(
      this.head,
      cause ? h("span", {}, `${of(listed.length, "gap", "gaps")} with ${this.trace.causes.name(cause)} `, h("button", { type: "button", onclick: () => this.filter(null) }, "show all")) : null,
      cause ? null : h("span", {}, `${of(gap_count, "gap", "gaps")}, ${duration(total_ns)} idle`),
      longest.length < gap_count ? h("span", { class: "note" }, ` · the ${count(longest.length)} longest are listed`) : null,
    );
    this.element.dataset.cause = cause ?? "";
    this.element.dataset.gaps = String(gap_count);
  }

  private get listed(): Gap[] {
    const all = this.findings?.idle_time.longest ?? [];
    return this.cause === null ? all : all.filter((gap) => gap.parts.some((part) => part.cause === this.cause));
  }

  /** The listed gap after or before a time. */
  next(after_ns: number, forward: boolean): Gap | null {
    const sorted = [...this.listed].sort((a, b) => a.start_ns - b.start_ns);
    const found = forward ? sorted.find((gap) => gap.start_ns > after_ns) : sorted.findLast((gap) => gap.start_ns < after_ns);
    return found ?? (forward ? sorted[0] : sorted[sorted.length - 1]) ?? null;
  }
}
