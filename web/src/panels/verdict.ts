// The verdict (what mostly keeps the program from being faster) and its evidence at the top of the page.

import type { Causes } from "../data/causes.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { PARTS as PARTS_COLOURS } from "../draw/palette.ts";
import type { Findings, VerdictPart, RanksAnswer, TraceOverview, WorkCost } from "../generated/protocol.ts";
import { count, duration, known, plural, share } from "../time/format.ts";
import type { FindingsSoFar } from "./loadable.ts";

const VERDICTS: Record<string, string> = {
  "host-bound": "Host-bound",
  "device-bound": "Device-bound",
  "transfer-bound": "Transfer-bound",
  "sync-bound": "Sync-bound",
  "communication-bound": "Communication-bound",
  "latency-bound": "Latency-bound",
  mixed: "Mixed",
  unknown: "No verdict",
};

/** Returns the name of a verdict. */
export function boundName(verdict: string): string {
  return VERDICTS[verdict] ?? verdict;
}

/** The names of the parts of the judged time. */
const PARTS: Record<string, string> = {
  compute: "computing",
  communication: "communication",
  peers: "waiting for other devices",
  transfer: "transfers",
  host: "waiting for the host",
  sync: "synchronisation",
  launch: "starting work",
  imbalance: "no work while another device had",
  unknown: "unexplained",
};

/** The colours of parts without causes; parts of idle time have the colours of their causes. */
const COLOURS: Record<string, string> = PARTS_COLOURS;

/** The verdict of one trace, of all ranks together, or of the two sides of a comparison. */
export class Verdict {
  readonly element = h("section", { class: "verdict", "aria-label": "Verdict" });
  /** Whether the verdicts of two compared sides are shown instead. */
  private paired = false;
  /** The comparison of all ranks, where there are some. */
  private ranks: RanksAnswer | null = null;

  constructor(
    /** The name of the trace, shown beside its verdict where there are several; else null. */
    private readonly whose: string | null,
    private readonly trace: Trace,
    /** Shows the trace of a rank first. */
    private readonly choose: (rank: number) => void = () => undefined,
  ) {}

  /** Takes the comparison of all ranks for the next call of `show`. */
  takeRanks(ranks: RanksAnswer | null): void {
    this.ranks = ranks;
  }

  /** Shows the verdict, or `loadingMessage` until it is there; does nothing while two sides are compared. */
  show(findings: FindingsSoFar, overview: TraceOverview, loadingMessage: string): void {
    if (this.paired) return;
    if (!findings) {
      this.element.dataset.verdict = "";
      return fill(this.element, h("p", { class: "working", role: "status" }, loadingMessage), this.facts(null, overview));
    }
    if ("missing" in findings) {
      this.element.dataset.verdict = "missing";
      return fill(this.element, h("p", { class: "problem" }, findings.missing), this.facts(null, overview));
    }
    this.element.dataset.verdict = findings.verdict;
    const early = overview.live && findings.verdict === "unknown";
    const { ranks } = this;
    const devices = findings.idle_time?.devices ?? [];
    const ofDevices = devices.length > 1 ? each("Verdict of each device", devices.map(({ device, verdict, verdict_sentence }) => ({ name: deviceName(findings, device), verdict, sentence: verdict_sentence }))) : null;
    this.element.dataset.together = ranks?.verdict ?? "";
    if (ranks) {
      const all = h("span", { class: "note" }, ` all ${plural(ranks.ranks.length, "rank", "ranks")} together`);
      return fill(
        this.element,
        h("div", { class: "verdict-words" }, h("h1", { class: `bound bound-${ranks.verdict}` }, boundName(ranks.verdict), all), h("p", { title: ranks.verdict_sentence }, ranks.verdict_sentence)),
        evidence(ranks.verdict_evidence, this.trace.causes),
        this.facts(findings, overview),
        each("Verdict of each rank", ranks.ranks.map(({ rank, verdict, verdict_sentence }) => ({ name: `rank ${rank}`, verdict, sentence: verdict_sentence, first: `rank ${rank}` === this.whose, choose: () => this.choose(rank) }))),
        this.whose === null ? null : h("div", { class: "each-of" }, h("span", { class: "note" }, `${this.whose}:`), doubts(findings), notes(findings), ofDevices),
      );
    }
    fill(
      this.element,
      doubts(findings),
      h(
        "div",
        { class: "verdict-words" },
        h("h1", { class: `bound bound-${findings.verdict}` }, early ? "No verdict yet" : (VERDICTS[findings.verdict] ?? findings.verdict), this.whose === null ? null : h("span", { class: "note" }, ` ${this.whose}`)),
        h("p", { title: findings.verdict_sentence }, early ? "It comes with the first GPU work whose times are known." : findings.verdict_sentence),
      ),
      evidence(findings.verdict_evidence, this.trace.causes),
      this.facts(findings, overview),
      early ? null : notes(findings),
      ofDevices,
    );
  }

  /** Shows the verdicts of two compared sides; without sides, the next call of `show` shows the trace's own verdict again. */
  showSides(sides: readonly { name: string; work: WorkCost }[]): void {
    this.paired = sides.length > 0;
    if (!this.paired) return;
    this.element.dataset.verdict = sides.map(({ work }) => work.verdict).join(" ");
    const words = sides.map(({ name, work }) =>
      h(
        "div",
        { class: "verdict-words" },
        h("h1", { class: `bound bound-${work.verdict}` }, VERDICTS[work.verdict] ?? work.verdict, h("span", { class: "note" }, ` ${name}`)),
        h("p", { title: work.verdict_sentence }, work.verdict_sentence),
      ),
    );
    fill(this.element, words);
  }

  private facts(findings: Findings | null, overview: TraceOverview): HTMLElement {
    const facts: [name: string, value: string, title?: string][] = [
      ["Recorded", known(overview.duration_ns, duration)],
      ["Dispatches", known(findings ? findings.dispatch_count : overview.tables.find(({ name }) => name === "dispatches")?.rows, count)],
      ["Sampling", overview.sampling_mode, "How the times of GPU work were measured."],
      ["Clock error", overview.clock_error_ns === null ? "unknown" : `± ${duration(overview.clock_error_ns)}`, "The largest error of a device's time on the host's clock."],
    ];
    const lost = overview.losses.reduce((sum, loss) => sum + loss.count, 0);
    return h(
      "dl",
      { class: "facts" },
      facts.map(([name, value, title]) => h("div", { class: name === "Clock error" ? null : "spare", title }, h("dt", {}, name), h("dd", {}, value))),
      lost > 0 ? h("div", { class: "lost", title: overview.losses.map(({ text, reason }) => `${text}: ${reason}`).join("\n") }, h("dt", {}, "Not recorded"), h("dd", {}, count(lost))) : null,
      overview.complete ? null : h("div", { class: "lost" }, h("dt", {}, "Recording"), h("dd", {}, overview.live ? "running" : "not complete")),
    );
  }
}

/** Shows what makes the verdict doubtful, as the report says it. */
function doubts({ head }: Findings): HTMLElement | null {
  if (head.before.length === 0) return null;
  return h("ul", { class: "doubts", "aria-label": "Before the verdict" }, head.before.map((sentence) => h("li", {}, sentence)));
}

/** Shows the sentences that belong to the verdict, as the report says them. */
function notes({ head }: Findings): HTMLElement | null {
  if (head.notes.length + head.details.length + head.steps.length === 0) return null;
  const item = (kind: string) => (sentence: string) => h("li", { class: kind }, sentence);
  return h("ul", { class: "verdict-notes", "aria-label": "With the verdict", tabindex: "0" }, head.notes.map(item("told")), head.steps.map(item("told")), head.details.map(item("note")));
}

/** The most verdicts that are shown at the top; the panel of ranks has the others. */
const MAX_VERDICTS = 8;

/** A verdict in the list; `choose` is called when it is clicked, and `first` marks the one that the page is about. */
interface NamedVerdict {
  name: string;
  verdict: string;
  sentence: string;
  first?: boolean;
  choose?: () => void;
}

/** Lists the verdict of each device or rank. */
function each(label: string, verdicts: readonly NamedVerdict[]): HTMLElement {
  const one = ({ name, verdict, sentence, first, choose }: NamedVerdict): HTMLElement => {
    const words = [h("b", {}, name), h("span", { class: `bound-${verdict}` }, ` ${boundName(verdict).toLowerCase()}`)];
    return h("li", { "data-verdict": verdict, title: sentence }, choose && !first ? h("button", { type: "button", onclick: choose }, words) : h("span", { "aria-current": first ? "true" : null }, words));
  };
  const rest = verdicts.length - MAX_VERDICTS;
  return h("ul", { class: "each-verdict", "aria-label": label }, verdicts.slice(0, MAX_VERDICTS).map(one), rest > 0 ? h("li", { class: "note" }, `and ${count(rest)} more`) : null);
}

/** Returns the name of a device; its number, too, where several have the same name. */
function deviceName({ devices }: Findings, device: number): string {
  const { name, label } = devices[device] ?? {};
  const alike = devices.filter((other) => other.name === name).length > 1;
  return name && !alike ? name : `${label ?? `GPU ${device}`}${name ? ` (${name})` : ""}`;
}

/** Draws the parts of the judged time as a bar, each with its sentence. */
export function evidence(parts: readonly VerdictPart[], causes: Causes): HTMLElement {
  const colour = (part: VerdictPart): string => COLOURS[part.what] ?? causes.colourOfSide(part.what);
  const shown = parts.filter((part) => part.total_ns > 0);
  if (shown.length === 0) return h("div", { class: "evidence" });
  const bar = h(
    "div",
    { class: "bar", "aria-hidden": "true" },
    shown.map((part) => {
      const piece = h("span", { title: part.sentence });
      piece.style.flexGrow = String(part.share);
      piece.style.background = colour(part);
      return piece;
    }),
  );
  const list = h(
    "ul",
    { class: "parts" },
    shown.map((part) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = colour(part);
      return h(
        "li",
        { title: part.sentence, "data-part": part.what, "data-share": part.share.toFixed(4) },
        swatch,
        h("b", {}, share(part.share)),
        ` ${PARTS[part.what] ?? part.what}`,
      );
    }),
  );
  return h("div", { class: "evidence" }, bar, list);
}
