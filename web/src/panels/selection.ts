// The sidebar's summary of the selected range: busy and idle time, counters, bytes and kernels.

import type { Appearance } from "../appearance.ts";
import { isMissing } from "../data/missing.ts";
import type { DataSource } from "../data/source.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import type { Missing, RangeFindings } from "../generated/protocol.ts";
import { partsIn, shareOf, startingIn, unionBusy } from "../lane/statistics.ts";
import type { RangeAnalysis } from "../range-analysis.ts";
import { bytes, count, duration, instant, plural, share, statisticsText } from "../time/format.ts";
import { length, type Range } from "../time/range.ts";
import type { View } from "../view.ts";
import { swatch } from "./swatch.ts";

const MAX_KERNELS = 12;

/** The summary, which is hidden without a selection. The page computes most of it from loaded rows. */
export class SelectionPanel {
  readonly element = h("section", { class: "selection-panel", "aria-label": "Selected range", hidden: true });
  /** The browser's number of the frame that will compute the summary. */
  private calculating = 0;

  constructor(
    private readonly view: View,
    private readonly source: DataSource,
    private readonly appearance: Appearance,
    private readonly rangeAnalysis: RangeAnalysis,
  ) {
    view.onChange((change) => {
      if (change === "selection" || (change === "data" && view.selection)) this.show();
    });
    rangeAnalysis.onChange(() => this.show());
  }

  show(): void {
    const { selection, trace } = this.view;
    this.element.hidden = selection === null;
    cancelAnimationFrame(this.calculating);
    if (!selection) return;
    // While the range is dragged, one update per frame is enough.
    this.calculating = requestAnimationFrame(() => this.calculate(trace, selection, this.rangeAnalysis.findings));
  }

  /** Shows the summary of a range; `found` is the server's answer, or null until it is there. */
  private calculate(trace: Trace, range: Range, found: RangeFindings | Missing | null): void {
    const step = Math.max(1, length(range) / 1000);
    fill(
      this.element,
      h(
        "header",
        {},
        h("h2", {}, "Selected range"),
        h("button", { type: "button", onclick: () => this.view.show(range) }, "Zoom"),
        h("button", { type: "button", onclick: () => this.view.select(null), "aria-label": "Clear the selected range" }, "✕"),
      ),
      h("p", { class: "big" }, duration(Math.round(length(range))), h("span", { class: "note" }, ` from ${instant(range.from_ns, step)}`)),
      found && !isMissing(found) ? h("p", { class: "verdict-line" }, found.verdict_sentence) : null,
      trace.overview.groups.filter((group) => group.kind === "gpu").map((group) => this.device(trace, group.id, group.name, range)),
      this.counters(trace, range),
      this.bytes(found),
      this.kernels(trace, range),
    );
  }

  /** Makes the busy share of a device and its idle time by cause; null where none of its work is loaded. */
  private device(trace: Trace, group: string, name: string, range: Range): HTMLElement | null {
    const lanes = trace.tracks
      .filter((track) => track.overview.group === group && track.kind === "work" && track.has(range))
      .flatMap((track) => track.lanes);
    if (lanes.length === 0) return null;
    // Queues that are not loaded may be busy, too.
    const other = trace.tracks.some((track) => track.overview.group === group && track.kind === "work" && !track.has(range) && track.overview.rows !== 0);
    const busy_ns = unionBusy(lanes, range);
    const gaps = trace.tracks.filter((track) => track.overview.group === group && track.kind === "gaps" && track.has(range));
    const causes = partsIn(gaps.flatMap((track) => track.lanes), range).filter((total) => total.total_ns > 0);
    const explained = causes.reduce((sum, total) => sum + total.total_ns, 0);
    const rest = length(range) - busy_ns - explained;
    const element = h(
      "div",
      { class: "device-share", "data-busy-ns": busy_ns.toFixed(0), "data-idle-ns": explained.toFixed(0) },
      h("h3", { class: "clip", title: name }, name),
      h("p", {}, h("b", {}, share(shareOf(busy_ns, range))), ` busy, ${duration(Math.round(busy_ns))}`, other ? h("span", { class: "note" }, " by the queues that are loaded") : null),
      h(
        "ul",
        { class: "causes" },
        causes.map((total) =>
          h(
            "li",
            { "data-cause": trace.text(total.key), "data-total-ns": total.total_ns.toFixed(0) },
            swatch(trace.causes.colour(trace.text(total.key))),
            h("span", { class: "clip" }, trace.causes.name(trace.text(total.key))),
            h("span", { class: "number" }, duration(Math.round(total.total_ns))),
            h("span", { class: "number note" }, share(shareOf(total.total_ns, range))),
          ),
        ),
        rest > 0.5
          ? h(
              "li",
              { title: "Before the first work, after the last, or in the warm-up that the analysis leaves out." },
              swatch("transparent"),
              h("span", { class: "clip" }, gaps.length > 0 ? "outside of the analysed time" : "idle; causes not loaded"),
              h("span", { class: "number" }, duration(Math.round(rest))),
              h("span", { class: "number note" }, share(shareOf(rest, range))),
            )
          : null,
      ),
    );
    return element;
  }

  /** Lists the statistics of the counters that are loaded, which are those of the tracks in sight. */
  private counters(trace: Trace, range: Range): HTMLElement | null {
    const rows = trace.tracks.flatMap((track) => {
      const found = track.overview.counter && track.counter?.in(range);
      return found ? [{ track, found }] : [];
    });
    if (rows.length === 0) return null;
    return h(
      "div",
      { class: "range-counters" },
      h("h3", {}, "Counters in it", h("span", { class: "note" }, " mean (least to most)")),
      h(
        "dl",
        { class: "fields" },
        rows.flatMap(({ track, found }) => [h("dt", { title: track.overview.counter?.source ?? null }, track.overview.counter?.name), h("dd", { "data-counter": track.id }, statisticsText(found, track.overview.counter?.unit ?? "count"))]),
      ),
    );
  }

  /** Says how many bytes the transfers move that start in the range. */
  private bytes(found: RangeFindings | Missing | null): HTMLElement | null {
    if (this.source.file) return h("p", { class: "note" }, "To see the bytes of transfers in a range, open the trace with `gapscope view`.");
    if (!found) return h("p", { class: "note" }, "Loading bytes and verdict…");
    if (isMissing(found)) return h("p", { class: "problem" }, found.missing);
    const transfers = found.transfers.reduce((sum, row) => sum + row.count, 0);
    if (transfers === 0) return h("p", { class: "note", "data-bytes": "0" }, "No recorded transfer starts in it.");
    return h(
      "p",
      { "data-bytes": found.transfer_bytes ?? "unknown" },
      h("b", {}, found.transfer_bytes === null ? "unknown" : bytes(Number(found.transfer_bytes))),
      ` by ${plural(transfers, "transfer", "transfers")} that start in it`,
    );
  }

  /** Lists the work that starts in the range by name, the names with the most time first. */
  private kernels(trace: Trace, range: Range): HTMLElement {
    const absent = trace.tracks.filter((track) => track.kind === "work" && !track.has(range) && track.overview.rows !== 0);
    const lanes = trace.tracks.filter((track) => track.kind === "work" && track.has(range)).flatMap((track) => track.lanes);
    const totals = startingIn(lanes, range);
    const events = totals.reduce((sum, total) => sum + total.count, 0);
    const sum_ns = totals.reduce((sum, total) => sum + total.total_ns, 0);
    return h(
      "div",
      { class: "range-kernels", "data-events": events },
      h("h3", {}, `${plural(events, "piece of work starts", "pieces of work start")} in it`, absent.length > 0 ? h("span", { class: "note" }, ` on the queues that are loaded; ${plural(absent.length, "queue is", "queues are")} not`) : null),
      h(
        "ul",
        { class: "causes" },
        totals.slice(0, MAX_KERNELS).map((total) =>
          h(
            "li",
            { title: trace.text(total.key) },
            swatch(this.appearance.nameColour(trace, total.key, "kernel")),
            h("span", { class: "whole" }, trace.text(total.key)),
            h("span", { class: "number" }, `${count(total.count)} ×`),
            h("span", { class: "number" }, duration(total.total_ns)),
            h("span", { class: "number note" }, share(sum_ns > 0 ? total.total_ns / sum_ns : NaN)),
          ),
        ),
      ),
      totals.length > MAX_KERNELS ? h("p", { class: "note" }, `and ${plural(totals.length - MAX_KERNELS, "more", "more")}`) : null,
    );
  }
}
