// The panel that compares the ranks of a program, which are its processes that work together: verdicts, waits at
// collectives (operations in which all ranks take part), and the greatest skews (from the first arrival at a
// collective to the last).

import type { Causes } from "../data/causes.ts";
import { isMissing } from "../data/missing.ts";
import { fill, h } from "../dom.ts";
import type { Collective, Missing, Outlier, RankRow, RanksAnswer } from "../generated/protocol.ts";
import { count, duration, instant, known, share } from "../time/format.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";
import { boundName } from "./verdict.ts";

/** The panel, with a table of ranks and one of collectives. */
export class RanksPanel {
  readonly element = h("div", { class: "panel ranks-panel" });
  private readonly sentences = h("div", { class: "ranks-sentences", role: "status" });
  private readonly ranks: Table<RankRow>;
  private readonly skews: Table<Collective>;
  private findings: RanksAnswer | null = null;

  constructor(
    causes: Causes,
    /** Shows the trace of a rank first. */
    choose: (rank: number) => void,
    /** Shows a collective. */
    go: (collective: Collective) => void,
  ) {
    this.ranks = new Table<RankRow>({
      name: "Ranks",
      sorted: 0,
      empty: "There are no ranks.",
      pick: (row) => choose(row.rank),
      columns: [
        { head: "Rank", text: (row) => this.named(row), sort: (row) => -row.rank },
        { head: "Verdict", text: (row) => boundName(row.verdict), sort: (row) => row.verdict, wide: true },
        { head: "Idle", tooltip: "Of the analysed time.", text: (row) => (row.idle ? share(row.idle.total_ns / row.idle.window_ns) : "unknown"), sort: (row) => row.idle && row.idle.total_ns / row.idle.window_ns, number: true },
        {
          head: "mostly",
          text: (row) => (row.idle?.cause ? h("span", { class: "cause", title: causes.sentence(row.idle.cause) }, swatch(causes.colour(row.idle.cause)), causes.name(row.idle.cause)) : "–"),
          sort: (row) => row.idle?.cause ?? null,
        },
        { head: "Collectives", tooltip: "Time in which the rank's devices ran collectives.", text: (row) => known(row.collective_ns, duration), sort: (row) => row.collective_ns, number: true },
        { head: "Waited", tooltip: "The time from the rank's arrival at collectives to the last arrival.", text: (row) => known(row.waited_ns, duration), sort: (row) => row.waited_ns, number: true },
        { head: "Last", tooltip: "The number of collectives at which the rank arrived last.", text: (row) => known(row.last_count, count), sort: (row) => row.last_count, number: true },
        { head: "Last by", tooltip: "The total time that the first rank waited for it at those collectives.", text: (row) => known(row.last_skew_ns, duration), sort: (row) => row.last_skew_ns, number: true },
      ],
    });
    this.skews = new Table<Collective>({
      name: "The greatest skews",
      sorted: 0,
      empty: "No collective has a skew above the clocks' error.",
      pick: go,
      columns: [
        { head: "Skew", tooltip: "From the first arrival to the last.", text: ({ skew_ns }) => duration(skew_ns), sort: ({ skew_ns }) => skew_ns, number: true },
        { head: "Collective", text: ({ kind, number }) => `${kind} ${number}`, sort: ({ number }) => number, wide: true },
        { head: "At", text: ({ first_ns }) => instant(first_ns, 1e4), sort: ({ first_ns }) => first_ns, number: true },
        { head: "Last", tooltip: "The rank that the others waited for.", text: ({ last_rank }) => `rank ${last_rank}`, sort: ({ last_rank }) => last_rank },
        { head: "First", text: ({ first_rank }) => `rank ${first_rank}`, sort: ({ first_rank }) => first_rank },
      ],
    });
    fill(this.element, this.sentences, h("div", { class: "split" }, h("div", { class: "ranks-table" }, this.ranks.element), h("div", { class: "skews" }, this.skews.element)));
    this.show(null);
  }

  /** Returns the number of a rank, with a dot where it differs from the others or holds them up. */
  private named({ rank }: RankRow): string {
    const unlike = this.findings?.outliers.some((outlier: Outlier) => outlier.ranks.includes(rank)) || this.findings?.straggler?.rank === rank;
    return unlike ? `${rank} ●` : String(rank);
  }

  /** Shows the comparison; null while it is not there yet. */
  show(found: RanksAnswer | Missing | null): void {
    if (found === null || isMissing(found)) {
      this.findings = null;
      const awaited = { state: found === null ? "loading" : "missing", message: found === null ? "Analysing the ranks…" : found.missing } as const;
      this.ranks.take(awaited);
      this.skews.take(awaited);
      return fill(this.sentences);
    }
    this.findings = found;
    this.element.dataset.ranks = String(found.ranks.length);
    this.element.dataset.straggler = found.straggler ? String(found.straggler.rank) : "";
    this.ranks.show(found.ranks);
    this.skews.show(found.longest);
    fill(this.sentences, found.sentences.map((sentence, at) => h("p", { class: at === 0 ? "first" : "note" }, sentence)));
  }
}
