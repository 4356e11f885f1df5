// The names of the tracks, as elements beside the canvas.

import type { TrackOverview } from "../data/answers.ts";
import type { Trace, Track } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { count, of } from "../time/format.ts";
import type { Layout, Row } from "./layout.ts";

const WHAT: Record<TrackOverview["kind"], string> = {
  work: "",
  "command-buffers": "command buffers",
  labels: "labels in the work",
  "queue-labels": "labels on the queue",
  gaps: "idle time by cause",
  counter: "",
  calls: "GPU calls",
  "thread-labels": "labels of the thread",
  samples: "sampled code",
};

export class Headers {
  readonly element = h("div", { class: "headers", role: "group", "aria-label": "Tracks" });

  constructor(private readonly toggle: (group: string) => void) {}

  show(layout: Layout, trace: Trace): void {
    fill(this.element, layout.rows.map((row) => this.row(row, trace)));
    // At least as high as what is seen, so that the canvas beside it stays whole.
    this.element.style.height = `${layout.height}px`;
  }

  private row(row: Row, trace: Trace): HTMLElement {
    const element =
      row.what === "group"
        ? h(
            "button",
            {
              class: "group-name",
              type: "button",
              "aria-expanded": String(!row.closed),
              title: row.group.name,
              onclick: () => this.toggle(row.group.id),
            },
            h("span", { class: "fold", "aria-hidden": "true" }, row.closed ? "▸" : "▾"),
            h("span", { class: "clip" }, row.group.name),
          )
        : this.track(row.track, row.hidden_lanes, row.height, trace);
    element.style.top = `${row.top}px`;
    element.style.height = `${row.height}px`;
    return element;
  }

  private track(track: Track, hidden: number, height: number, trace: Trace): HTMLElement {
    const { overview } = track;
    const state = this.state(track, hidden, trace);
    const { counter } = overview;
    const what = counter?.name ?? WHAT[track.kind] ?? track.kind;
    const measured = counter ? `${counter.unit}, ${counter.source}` : "";
    const title = [overview.name, measured || what, state].filter(Boolean).join(" · ");
    // Threads are told apart by their names, other tracks by what they are.
    const named = track.kind === "work" || track.kind === "calls" || track.kind === "thread-labels";
    const [name, note] = named ? [overview.name, [what, state].filter(Boolean).join(", ")] : [what, [measured, state].filter(Boolean).join(", ")];
    return h(
      "div",
      { class: `track-name kind-${track.kind}`, title, "data-track": track.id, "data-lanes": track.lanes.length },
      h("span", { class: "clip" }, name),
      note && height >= 36 ? h("span", { class: "clip note" }, note) : null,
    );
  }

  private state(track: Track, hidden: number, trace: Trace): string {
    const said: string[] = [];
    if (typeof track.state === "object") said.push(track.summary ? "busy share only" : trace.overview.live ? "nothing yet" : track.state.missing);
    else if (track.state === "loading") said.push("loading…");
    else if (!track.isCounter && track.overview.rows !== null) said.push(of(track.overview.rows, "row", "rows"));
    if (track.overview.untimed > 0) said.push(`${count(track.overview.untimed)} untimed`);
    if (hidden > 0) said.push(`${of(hidden, "lane", "lanes")} not drawn`);
    if (track.kind === "work" && trace.overview.sampling_mode === "command-buffer") said.push("command buffers");
    return said.join(", ");
  }
}
