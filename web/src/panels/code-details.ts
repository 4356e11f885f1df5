// The code in the sidebar: that which the submitting thread ran in a gap (idle time of a device), and the stack of a
// sample. A line is a readable text that stands for the stacks in one piece of code; exact samples are those that
// hooks took; a worker is a process, such as a data loader, that was sampled while the submitting thread waited.

import type { Appearance } from "../appearance.ts";
import { type Code, commonest, type IdleSamples, MIN_SAMPLES, type LineTime, type Sample } from "../data/code.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { errorMessage } from "../error-message.ts";
import type { SampledFrame } from "../generated/protocol.ts";
import { count, duration, instant, plural, share } from "../time/format.ts";
import type { Range } from "../time/range.ts";
import { swatch } from "./swatch.ts";

/** The most lines that are listed. */
const MAX_LINES = 6;
/** The most frames of a stack that are shown before the rest is opened. */
const MAX_FRAMES = 12;
/** The most frames in a tooltip. */
const MAX_TOOLTIP_FRAMES = 5;

const SOURCES: Record<string, string> = {
  "after-wait": "exact, when a wait had ended",
  "at-submission": "exact, at a submission",
  sampled: "sampled",
};

/** Makes an element with the code of a gap, which fills in when the samples have loaded. Returns null where nothing tells the code. */
export function gapCode(trace: Trace, appearance: Appearance, device: number, range: Range): HTMLElement | null {
  if (!trace.hasCode) return null;
  const element = h("div", { class: "gap-code" }, h("h3", {}, "Code of the submitting thread"), h("p", { class: "note", role: "status" }, "Loading code…"));
  trace.loadIdle().then(
    (idle) => showGap(element, idle, appearance, { device, range }),
    (error: unknown) => fill(element, h("h3", {}, "Code of the submitting thread"), h("p", { class: "note" }, errorMessage(error))),
  );
  return element;
}

/** Fills the element with the lines of each kind of samples, and the commonest stack of the costliest line. */
function showGap(element: HTMLElement, idle: IdleSamples, appearance: Appearance, asked: { device: number; range: Range }): void {
  const { code } = idle;
  const lines = idle.lines("sampled", asked);
  const exact = idle.lines("exact", asked);
  const workers = idle.lines("worker", asked);
  const samples = lines.reduce((sum, { samples }) => sum + samples, 0);
  element.dataset.samples = String(samples);
  const costliest = lines[0] ?? exact[0];
  const row = costliest && commonest(code, costliest.rows);
  const few = samples < MIN_SAMPLES ? ", too few for shares" : "";
  const total = code.isExact ? "by ranges" : `${plural(samples, "sample", "samples")}${few}`;
  const none = code.isExact ? "The thread was in no range while the next work was not yet submitted." : "No samples were taken while the next work was not yet submitted.";
  fill(
    element,
    h("h3", {}, "Code of the submitting thread", samples > 0 ? h("span", { class: "note" }, ` ${total}`) : null),
    samples === 0 ? h("p", { class: "note" }, none) : lineList(code, appearance, lines, samples),
    exact.length > 0
      ? h(
          "div",
          { class: "exact-lines" },
          h("h3", {}, "Exact lines"),
          h("ul", { class: "causes" }, exact.slice(0, MAX_LINES).map((line) => h("li", {}, lineName(code, appearance, line.line), h("span", { class: "note" }, kindsOf(code, line))))),
        )
      : null,
    typeof row === "number" ? wholeStack(code.sample(row).frames, lines.length > 1 ? (code.isExact ? "The stack of the first" : "The most frequent stack") : "Its stack") : null,
    workers.length > 0 ? workerList(code, appearance, workers) : null,
  );
}

/** Describes how the exact samples of a line were taken. */
function kindsOf(code: Code, line: LineTime): string {
  return [...new Set(line.rows.map((row) => SOURCES[code.sample(row).source] ?? "exact"))].join("; ").replaceAll("exact, ", "");
}

/** Makes the name of a line, with its colour and source text. */
function lineName(code: Code, appearance: Appearance, line: number): HTMLElement {
  const { source } = code.lineFrame(line) ?? {};
  return h(
    "span",
    { class: "code-line" },
    h("span", { class: "whole" }, swatch(appearance.lineColour(code, line)), code.lineText(line)),
    source ? h("code", { title: source }, source) : null,
  );
}

/** Lists the lines with their share of the idle time, and counts the samples in lines that are left out. */
function lineList(code: Code, appearance: Appearance, lines: readonly LineTime[], samples: number): HTMLElement {
  const rest = lines.slice(MAX_LINES).reduce((sum, { samples }) => sum + samples, 0);
  const rest_ns = lines.slice(MAX_LINES).reduce((sum, { total_ns }) => sum + total_ns, 0);
  const total_ns = lines.reduce((sum, line) => sum + line.total_ns, 0);
  return h(
    "ul",
    { class: "causes lines" },
    lineItems(code, appearance, lines, samples, (line) => line.total_ns / total_ns),
    rest === 0 ? null : h("li", { class: "note" }, code.isExact ? `${duration(rest_ns)} in other lines` : `${plural(rest, "sample", "samples")} in other lines`),
  );
}

/** Makes the entries of lines; shares only from `MIN_SAMPLES` samples on. */
function lineItems(code: Code, appearance: Appearance, lines: readonly LineTime[], samples: number, shareOf: (line: LineTime) => number): HTMLElement[] {
  return lines.slice(0, MAX_LINES).map((line) => {
    const taken = code.isExact ? duration(Math.round(line.total_ns)) : plural(line.samples, "sample", "samples");
    const hasShares = code.isExact || samples >= MIN_SAMPLES;
    return h(
      "li",
      {},
      lineName(code, appearance, line.line),
      hasShares ? h("span", { class: "number" }, share(shareOf(line))) : null,
      h("span", { class: "number note", title: taken }, hasShares && !code.isExact ? count(line.samples) : taken),
    );
  });
}

/** Lists what the workers ran for which the submitting thread waited. */
function workerList(code: Code, appearance: Appearance, lines: readonly LineTime[]): HTMLElement {
  const rows = lines.flatMap((line) => line.rows);
  const processes = new Set(rows.map((row) => code.threadOf(row).process)).size;
  return h(
    "div",
    { class: "meanwhile" },
    h("h3", {}, `Meanwhile ${plural(processes, "worker", "workers")}`, h("span", { class: "note" }, ` ${plural(rows.length, "sample", "samples")}`)),
    h(
      "ul",
      { class: "causes lines" },
      lineItems(code, appearance, lines, rows.length, (line) => line.samples / rows.length),
    ),
  );
}

/** Lists a stack, innermost frame first, with the program's own frames highlighted. */
function wholeStack(frames: readonly SampledFrame[], title: string): HTMLElement {
  if (frames.length === 0) return h("p", { class: "note" }, "The stack could not be read.");
  const item = (frame: SampledFrame): HTMLElement =>
    h(
      "li",
      { class: frame.own ? "own" : null, title: [frame.file ?? frame.library, frame.function].filter(Boolean).join(" · ") || null },
      frame.text,
      frame.source ? h("code", {}, frame.source) : null,
    );
  const [seen, rest] = [frames.slice(0, MAX_FRAMES), frames.slice(MAX_FRAMES)];
  return h(
    "div",
    { class: "stack" },
    h("h3", {}, title, h("span", { class: "note" }, " innermost first")),
    h("ol", {}, seen.map(item)),
    rest.length > 0 ? h("details", {}, h("summary", {}, plural(rest.length, "caller more", "callers more")), h("ol", { start: MAX_FRAMES + 1 }, rest.map(item))) : null,
  );
}

/** Describes whether the thread ran, and what it waited for. */
function stateText(sample: Sample): string {
  const waits = sample.gil_holder === null ? "" : `, waiting for the interpreter's lock (GIL) of thread ${sample.gil_holder}`;
  return `${sample.state}${sample.system_call ? ` in ${sample.system_call}` : ""}${waits}`;
}

/** Makes the tooltip of a sample. */
export function sampleNote(sample: Sample): HTMLElement {
  const more = sample.frames.length - MAX_TOOLTIP_FRAMES;
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "note" }, `${stateText(sample)} · ${SOURCES[sample.source] ?? sample.source}`),
    h("ol", {}, sample.frames.slice(0, MAX_TOOLTIP_FRAMES).map((frame) => h("li", { class: frame.own ? "own" : null }, frame.text))),
    more > 0 ? h("div", { class: "note" }, `and ${plural(more, "caller", "callers")}`) : null,
  );
}

/** Makes the details of a sample. */
export function sampleDetails(sample: Sample): HTMLElement[] {
  const field = (name: string, value: string): HTMLElement[] => [h("dt", {}, name), h("dd", {}, value)];
  return [
    h("p", { class: "big" }, sample.state, h("span", { class: "note" }, ` at ${instant(sample.at_ns, 10)}`)),
    wholeStack(sample.frames, "Stack"),
    h("h3", {}, "All fields"),
    h(
      "dl",
      { class: "fields" },
      field("thread", sample.thread.name),
      field("state", stateText(sample)),
      field("taken", SOURCES[sample.source] ?? sample.source),
      field("system call", sample.system_call ?? (sample.state === "blocked" ? "unknown" : "none")),
      sample.period_ns === null ? [] : field("stands for", duration(sample.period_ns)),
    ),
  ];
}
