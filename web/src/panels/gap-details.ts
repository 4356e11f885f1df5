// The details of a gap, which is a time in which a device was idle: its parts by cause, the work before and after it,
// and what the host did meanwhile.

import type { Causes } from "../data/causes.ts";
import { h } from "../dom.ts";
import type { Gap, HostTime, WorkName } from "../generated/protocol.ts";
import { count, duration, share } from "../time/format.ts";
import { swatch } from "./swatch.ts";

/** Makes the details of a gap; `cause` is that of the picked part, `code` an element about the submitting thread's code. */
export function gapDetails(gap: Gap, cause: string, causes: Causes, code: HTMLElement | null): HTMLElement {
  const facts = causes.get(cause);
  const bar = h(
    "div",
    { class: "bar", "aria-hidden": "true" },
    gap.parts.map((part) => {
      const piece = h("span", { title: causes.name(part.cause) });
      piece.style.flexGrow = String(part.duration_ns);
      piece.style.background = causes.colour(part.cause);
      return piece;
    }),
  );
  const accent = facts ? h("p", { class: "explanation" }, facts.sentence, h("span", { class: "note" }, ` ${causes.advice(cause)}`)) : null;
  if (accent) accent.style.borderColor = causes.colour(cause);
  return h(
    "div",
    { class: "gap-details", "data-gap-ns": gap.duration_ns },
    accent,
    h("h3", {}, `The whole gap: ${duration(gap.duration_ns)}`),
    bar,
    h(
      "ul",
      { class: "causes" },
      byCause(gap).map(([cause, ns]) =>
        h(
          "li",
          {},
          swatch(causes.colour(cause)),
          h("span", { class: "clip" }, causes.name(cause)),
          h("span", { class: "number" }, duration(ns)),
          h("span", { class: "number note" }, share(ns / gap.duration_ns)),
        ),
      ),
    ),
    code,
    ofCause(cause, causes),
    h("dl", { class: "fields" }, around("after", gap.before), around("before", gap.after), thread(gap)),
    times("The submitting thread meanwhile", gap.host_calls),
    times("Other threads meanwhile", gap.other_threads),
  );
}

/** Sums the time of each cause, which may have several parts, in order of appearance. */
function byCause({ parts }: Gap): [cause: string, ns: number][] {
  const sums = new Map<string, number>();
  for (const { cause, duration_ns } of parts) sums.set(cause, (sums.get(cause) ?? 0) + duration_ns);
  return [...sums];
}

/** Shows the code in all gaps of a cause, because a single gap has few samples. */
function ofCause(cause: string, causes: Causes): HTMLElement | null {
  const code = causes.code(cause);
  return code ? h("p", { class: "cause-code" }, h("span", { class: "note" }, `In all time of ${causes.name(cause)}: `), h("code", {}, code)) : null;
}

function around(where: string, work: WorkName): HTMLElement[] {
  return [h("dt", {}, where), h("dd", {}, work.label ? `${work.name} (${work.label})` : work.name)];
}

/** Names the thread that submitted the work after the gap, where it is known. */
function thread(gap: Gap): HTMLElement[] {
  if (gap.thread === null) return [];
  return [h("dt", {}, "submitted by"), h("dd", {}, gap.thread_name ? `${gap.thread_name} (${gap.thread})` : `thread ${gap.thread}`)];
}

/** Lists calls or functions with their time in the gap; null where there are none. */
function times(title: string, calls: HostTime[]): HTMLElement | null {
  if (!calls || calls.length === 0) return null;
  return h(
    "div",
    {},
    h("h3", {}, title),
    h(
      "ul",
      { class: "causes" },
      calls.map((call) =>
        h(
          "li",
          {},
          h("span", { class: "clip" }, call.function ?? call.call),
          call.count > 0 ? h("span", { class: "number note" }, `${count(call.count)} ×`) : null,
          h("span", { class: "number" }, duration(call.total_ns)),
        ),
      ),
    ),
  );
}
