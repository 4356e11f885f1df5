// The legend of the timeline's colours, shown while nothing is picked or selected.

import type { Appearance } from "../appearance.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { PARTS, REST, WORK_SLOTS } from "../draw/palette.ts";
import { duration, known, share } from "../time/format.ts";
import { swatch } from "./swatch.ts";

/** The legend of one trace. It lists the names that have a colour of their own, with their time and share. */
export class Legend {
  readonly element = h("section", { class: "legend", "aria-label": "Colours" });

  constructor(
    private readonly trace: Trace,
    private readonly appearance: Appearance,
  ) {}

  show(): void {
    const { findings } = this.trace;
    if (!findings) return fill(this.element, h("p", { class: "note" }, "The legend appears once the trace has been analysed."));
    // The verdict at the top of the page says why there are no findings.
    if ("missing" in findings) return fill(this.element);
    const { colouring } = this.appearance;
    const idle = (findings.gaps ?? []).filter((gap) => gap.total_ns > 0);
    const rows =
      colouring === "label"
        ? (findings.labels ?? []).map((label, at) => ({ text: label.path, key: findings.label_names[at] ?? null, ns: label.inclusive.busy_ns }))
        : (findings.kernels ?? []).map((kernel, at) => ({ text: kernel.name, key: findings.kernel_rows[at]?.name ?? null, ns: kernel.busy_ns }));
    const by = colouring === "label" ? "label" : "kernel";
    // Only a label's own work has its colour, not the work of the labels inside.
    const coloured = rows.filter((row) => row.key !== null && this.appearance.slotOf(this.trace, row.key, by) !== REST).slice(0, WORK_SLOTS);
    const busy_ns = findings.gpu_busy_ns ?? 0;
    const transfers = colouring === "kernel" ? (findings.transfers ?? []) : [];
    const item = (colour: string, text: string, ns: number | null): HTMLElement =>
      h("li", { title: text }, swatch(colour), h("span", { class: "whole" }, text), h("span", { class: "number" }, known(ns, duration)), h("span", { class: "number note" }, ns === null || busy_ns === 0 ? "" : share(ns / busy_ns)));
    fill(
      this.element,
      colouring === "cause" || coloured.length === 0
        ? null
        : [
            h("h2", { class: "part" }, colouring === "label" ? "Work by label" : "Work by kernel"),
            h(
              "ul",
              { class: "causes" },
              coloured.map((row) => item(this.appearance.nameColour(this.trace, row.key, by), row.text, row.ns)),
              rows.length > coloured.length ? h("li", {}, swatch(this.appearance.colours.work[REST]), h("span", { class: "note" }, "everything else")) : null,
            ),
          ],
      transfers.length === 0 ? null : [h("h2", { class: "part" }, "Transfers"), h("ul", { class: "causes", "data-legend": "transfers" }, transfers.map((row) => item(PARTS.transfer, row.kind, row.busy_ns)))],
      idle.length === 0
        ? null
        : [
            h("h2", { class: "part" }, "Idle time by cause"),
            h(
              "ul",
              { class: "causes" },
              idle.map((gap) =>
                h(
                  "li",
                  { title: this.trace.causes.sentence(gap.cause) },
                  swatch(this.trace.causes.colour(gap.cause)),
                  h("span", { class: "clip" }, this.trace.causes.name(gap.cause)),
                  h("span", { class: "number" }, duration(gap.total_ns)),
                  h("span", { class: "number note" }, share(gap.total_ns / (findings.idle_time?.total_ns ?? NaN))),
                ),
              ),
            ),
          ],
    );
  }
}
