// The verdict and its evidence, at the top of the page.

import type { Findings, Part, TraceOverview, Work } from "../data/answers.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import type { Causes } from "../data/causes.ts";
import type { FindingsSoFar } from "./awaited.ts";
import { count, duration, known, of, share } from "../time/format.ts";

/** Words for the verdict. */
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

/** Words for the parts of the judged time. */
const PARTS: Record<string, string> = {
  compute: "computing",
  communication: "communication",
  transfer: "transfers",
  host: "waiting for the host",
  sync: "synchronisation",
  launch: "starting work",
  imbalance: "no work while another device had",
  unknown: "unexplained",
};

/** Of parts without causes; those of idle time have the colours of theirs. */
const COLOURS: Record<string, string> = { compute: "#6f94c4", communication: "#a08bc6", transfer: "#8fb3a4", imbalance: "#a9a294" };

export class Verdict {
  readonly element = h("section", { class: "verdict", "aria-label": "Verdict" });
  /** The verdicts of two sides are shown instead. */
  private paired = false;

  /** `whose` it is where several traces are shown. */
  constructor(
    private readonly whose: string | null,
    private readonly trace: Trace,
  ) {}

  /** `coming` is said until there are findings. */
  show(findings: FindingsSoFar, overview: TraceOverview, coming: string): void {
    if (this.paired) return;
    if (!findings) {
      this.element.dataset.verdict = "";
      return fill(this.element, h("p", { class: "working", role: "status" }, coming), this.facts(null, overview));
    }
    if ("missing" in findings) {
      this.element.dataset.verdict = "missing";
      return fill(this.element, h("p", { class: "problem" }, findings.missing), this.facts(null, overview));
    }
    this.element.dataset.verdict = findings.verdict;
    const early = overview.live && findings.verdict === "unknown";
    fill(
      this.element,
      h(
        "div",
        { class: "verdict-words" },
        h("h1", { class: `bound bound-${findings.verdict}` }, early ? "No verdict yet" : (VERDICTS[findings.verdict] ?? findings.verdict), this.whose === null ? null : h("span", { class: "note" }, ` ${this.whose}`)),
        h("p", { title: findings.verdict_sentence }, early ? "It comes with the first GPU work whose times are known." : findings.verdict_sentence),
      ),
      evidence(findings.verdict_evidence, this.trace.causes),
      this.facts(findings, overview),
    );
  }

  /** The verdicts of the sides that are compared; of none, there is room for the trace's own again. */
  showSides(sides: readonly { name: string; work: Work }[]): void {
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
      ["Sampling", overview.sampling_mode, "How the GPU's times were taken."],
      ["Clock error", overview.clock_error_ns === null ? "unknown" : `± ${duration(overview.clock_error_ns)}`, "Bound of the error of a device's time on the host's clock."],
    ];
    const lost = overview.losses.reduce((sum, loss) => sum + loss.count, 0);
    return h(
      "dl",
      { class: "facts" },
      facts.map(([name, value, title]) => h("div", { title }, h("dt", {}, name), h("dd", {}, value))),
      lost > 0 ? h("div", { class: "lost", title: overview.losses.map(({ what, count: n, reason }) => `${of(n, what, what)}: ${reason}`).join("\n") }, h("dt", {}, "Not recorded"), h("dd", {}, count(lost))) : null,
      overview.complete ? null : h("div", { class: "lost" }, h("dt", {}, "Recording"), h("dd", {}, overview.live ? "running" : "not complete")),
    );
  }
}

/** The parts of the judged time as one bar, each with its sentence. */
export function evidence(parts: readonly Part[], causes: Causes): HTMLElement {
  const colour = (part: Part): string => COLOURS[part.what] ?? causes.colourOfSide(part.what);
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
