// The panel that compares the ranks of a program, which are its processes that work together: verdicts, waits at
// collectives (operations in which all ranks take part), ranks that are late with the reason, slow networks, and the greatest
// skews (from the first arrival at a collective to the last).

import type { Causes } from "../data/causes.ts";
import { isMissing } from "../data/missing.ts";
import { fill, h } from "../dom.ts";
import type { Collective, CollectiveKind, LateCause, LateReason, Missing, Outlier, RankRow, RanksAnswer, SlowLink } from "../generated/protocol.ts";
import { count, duration, instant, known, plural, share } from "../time/format.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";
import { boundName } from "./verdict.ts";

/** A rank that is late: the one that all others wait for, or one of several. */
export interface LateRow {
  rank: number;
  /** The collectives at which it was late, of those whose order is known. */
  lateCount: number;
  count: number;
  late_ns: number;
  /** The ranks that it was later than; empty where that is the median rank, null where it is all others. */
  than: number[] | null;
  cause: LateCause | null;
  reason: LateReason | null;
  evidence: string | null;
}

/** What makes a rank late, in a word. */
const REASONS: Record<LateReason, string> = {
  "more-work": "more work",
  "slower-clock": "slower clock",
  heat: "heat",
  power: "power limit",
  "data-loading": "data loading",
  network: "slower network",
};

/** Returns the ranks that are late, the latest first: each once, whichever way it was recognised. */
export function lateRows(found: Pick<RanksAnswer, "straggler" | "late_ranks">): LateRow[] {
  const rows: LateRow[] = found.late_ranks.map((row) => ({ ...row, lateCount: row.late_count, count: row.of_count, than: row.later_than }));
  const last = found.straggler;
  if (last && !rows.some(({ rank }) => rank === last.rank)) {
    rows.push({ ...last, lateCount: last.last_count, count: last.of_count, late_ns: last.cost_ns, than: null });
  }
  return rows.sort((a, b) => b.late_ns - a.late_ns || a.rank - b.rank);
}

/** Returns why a rank is late: the reason in a word, and what its device did for longer. */
export function whyLate({ cause, reason }: LateRow, causeName: (name: string) => string): string {
  if (!cause) return "several causes";
  const did = DOING[cause.what] ?? `idle: ${causeName(cause.what)}`;
  return reason ? `${REASONS[reason]} (${did})` : did;
}

/** What a late rank's device did for longer than the others'; all else is idle time, with its cause. */
const DOING: Record<string, string> = {
  compute: "computes longer",
  communication: "in collectives of other groups",
  "late-end": "ends collectives later",
};

/** Returns the ranks that a late one was later than, in words. */
export function laterThan(than: number[] | null): string {
  if (than === null) return "all others";
  if (than.length === 0) return "the median rank";
  return `${than.length === 1 ? "rank" : "ranks"} ${than.join(", ")}`;
}

/** Returns whose network is slow: one rank's, or that between some. */
export function linkName({ ranks }: SlowLink): string {
  return ranks.length === 1 ? `rank ${ranks[0]}` : `between ${ranks.join(", ")}`;
}

/** Returns why no skew is listed: that there is none is said only where the skew of every collective is known to be within the clocks' error. */
export function noSkews({ not_comparable_because, not_matched_because, collectives, clock_error_ns }: Pick<RanksAnswer, "not_comparable_because" | "not_matched_because" | "collectives" | "clock_error_ns">): string {
  if (not_comparable_because !== null) return "Skews are unknown: the clocks of the ranks do not compare.";
  const sum = (of: (kind: CollectiveKind) => number): number => collectives.reduce((total, kind) => total + of(kind), 0);
  if (sum(({ counts }) => counts.reduce((all, one) => all + one, 0)) === 0) return "No collective was recorded.";
  const [matched, within] = [sum(({ matched_count }) => matched_count), sum(({ uncertain_count }) => uncertain_count ?? 0)];
  if (matched === 0) return `Skews are unknown: no collective was matched across the ranks${not_matched_because ? `, because ${not_matched_because}` : ""}.`;
  const apart = sum(({ unassigned_count, incomplete_count, unpaired_count }) => unassigned_count + incomplete_count + unpaired_count);
  if (within === matched && apart === 0 && clock_error_ns !== null) return "No collective has a skew above the clocks' error.";
  const told = within > 0 ? `The skew of ${plural(within, "collective", "collectives")} is within the clocks' error; ` : "";
  const rest = [matched > within ? plural(matched - within, "matched collective", "matched collectives") : "", apart > 0 ? `${plural(apart, "collective", "collectives")} without a counterpart` : ""].filter(Boolean).join(" and ");
  return `${told}${told ? "that" : "The skew"} of ${rest || "the others"} is unknown.`;
}

/** The panel, with tables of ranks, of late ranks, of slow networks and of collectives. */
export class RanksPanel {
  readonly element = h("div", { class: "panel ranks-panel" });
  private readonly sentences = h("div", { class: "ranks-sentences", role: "status" });
  private readonly ranks: Table<RankRow>;
  private readonly skews: Table<Collective>;
  private readonly late: Table<LateRow>;
  private readonly links: Table<SlowLink>;
  private readonly problems: HTMLElement;
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
    this.late = new Table<LateRow>({
      name: "Late ranks",
      sorted: 2,
      empty: "",
      pick: (row) => choose(row.rank),
      note: (row) => (row.evidence ? h("span", { class: "note" }, row.evidence) : null),
      columns: [
        { head: "Late rank", tooltip: "Later than chance and the clocks' error explain.", text: (row) => `rank ${row.rank}`, sort: (row) => -row.rank, leads: true },
        { head: "than", text: (row) => laterThan(row.than) },
        { head: "by", tooltip: "In all collectives together.", text: (row) => duration(row.late_ns), sort: (row) => row.late_ns, number: true },
        { head: "at", tooltip: "The number of collectives, of those whose order of arrivals is known.", text: (row) => `${count(row.lateCount)} of ${count(row.count)}`, sort: (row) => row.lateCount, number: true },
        { head: "Reason", tooltip: "What its device did before for longer than the others', and why.", text: (row) => whyLate(row, (name) => causes.name(name)), sort: (row) => row.reason, wide: true },
      ],
    });
    this.links = new Table<SlowLink>({
      name: "Slow networks",
      sorted: 3,
      empty: "",
      note: (row) => h("span", { class: "note" }, row.sentence),
      columns: [
        { head: "Slow network", text: linkName, sort: ({ ranks }) => -ranks[0], wide: true },
        { head: "Takes", tooltip: "From the last arrival to the end.", text: ({ time_ns }) => duration(time_ns), sort: ({ time_ns }) => time_ns, number: true },
        { head: "Usual", tooltip: "The same of the others.", text: ({ usual_ns }) => duration(usual_ns), sort: ({ usual_ns }) => usual_ns, number: true },
        { head: "Costs", tooltip: "The time that its collectives take longer, in all.", text: ({ cost_ns }) => duration(cost_ns), sort: ({ cost_ns }) => cost_ns, number: true },
      ],
    });
    this.problems = h("div", { class: "rank-problems" }, this.late.element, this.links.element);
    const tables = h("div", { class: "ranks-table" }, this.problems, this.ranks.element);
    fill(this.element, this.sentences, h("div", { class: "split" }, tables, h("div", { class: "skews" }, this.skews.element)));
    this.show(null);
  }

  /** Returns the number of a rank, with a dot where it differs from the others or holds them up. */
  private named({ rank }: RankRow): string {
    const found = this.findings;
    const unlike = found && (found.outliers.some((outlier: Outlier) => outlier.ranks.includes(rank)) || lateRows(found).some((late) => late.rank === rank));
    return unlike ? `${rank} ●` : String(rank);
  }

  /** Shows the comparison; null while it is not there yet. */
  show(found: RanksAnswer | Missing | null): void {
    if (found === null || isMissing(found)) {
      this.findings = null;
      const awaited = { state: found === null ? "loading" : "missing", message: found === null ? "Analysing the ranks…" : found.missing } as const;
      this.ranks.take(awaited);
      this.skews.take(awaited);
      this.problems.hidden = true;
      return fill(this.sentences);
    }
    this.findings = found;
    this.element.dataset.ranks = String(found.ranks.length);
    this.element.dataset.straggler = found.straggler ? String(found.straggler.rank) : "";
    this.ranks.show(found.ranks);
    this.skews.empty = noSkews(found);
    this.skews.show(found.longest);
    const late = lateRows(found);
    this.late.show(late);
    this.links.show(found.slow_links);
    this.late.element.hidden = late.length === 0;
    this.links.element.hidden = found.slow_links.length === 0;
    this.problems.hidden = late.length === 0 && found.slow_links.length === 0;
    fill(this.sentences, found.sentences.map((sentence, at) => h("p", { class: at === 0 ? "first" : "note" }, sentence)));
  }
}
