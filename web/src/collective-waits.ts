// Draws which rank waited for which at collectives, the operations in which all ranks of a program take part: a bar
// on a collective for as long as its rank waited, and from its end a line to the rank that came last. A skew is the
// time from the first arrival to the last. Ranks are timelines of their own, or queues in one trace.

import { setAttribute, svg } from "./dom.ts";
import type { Collective } from "./generated/protocol.ts";
import { duration } from "./time/format.ts";
import type { Timeline } from "./timeline/timeline.ts";

/** The least width of a wait that is drawn. */
const MIN_WAIT_PX = 3;
/** The most collectives that are drawn, those with the greatest skews first. */
const MAX_COLLECTIVES = 120;
const BAR_PX = 5;

/** A visible wait of one rank. */
export interface Wait {
  rank: number;
  /** The queue on which the rank ran the collective; null where it is not known. */
  queue: number | null;
  from_ns: number;
  to_ns: number;
  /** The rank that arrived last, and the queue on which it did. */
  last: number;
  last_queue: number | null;
  tooltip: string;
}

/** Returns the waits in a range that last at least `least_ns`, of the collectives with the greatest skews. */
export function waitsIn(collectives: readonly Collective[], from_ns: number, to_ns: number, least_ns: number): Wait[] {
  return collectives
    .filter(({ first_ns, skew_ns }) => skew_ns >= least_ns && first_ns < to_ns && first_ns + skew_ns > from_ns)
    .sort((a, b) => b.skew_ns - a.skew_ns)
    .slice(0, MAX_COLLECTIVES)
    .flatMap(({ kind, number, last_rank, arrivals, first_ns, skew_ns }) =>
      arrivals
        .filter(({ waited_ns }) => waited_ns !== null && waited_ns >= least_ns)
        .map(({ rank, queue, start_ns, waited_ns }) => ({
          rank,
          queue,
          from_ns: start_ns,
          to_ns: first_ns + skew_ns,
          last: last_rank,
          last_queue: arrivals.find((arrival) => arrival.rank === last_rank)?.queue ?? null,
          tooltip: `${kind} ${number}: rank ${rank} waited ${duration(waited_ns ?? 0)} for rank ${last_rank}`,
        })),
    );
}

/** The drawing over the timelines in a container. `show` is called with each new answer about ranks. */
export class CollectiveWaits {
  readonly element = svg("svg", { class: "collective-waits", "aria-hidden": "true" });
  private collectives: readonly Collective[] = [];
  private scheduled = 0;

  constructor(
    private readonly container: HTMLElement,
    /** Returns the timelines that are shown, each with its rank; the rank is null where one timeline has all ranks. */
    private readonly timelines: () => readonly { rank: number | null; timeline: Timeline }[],
  ) {
    // Scroll events of the tracks inside the timelines do not bubble, so they are captured.
    container.addEventListener("scroll", () => this.draw(), true);
    new ResizeObserver(() => this.draw()).observe(container);
  }

  /** Draws the waits of these collectives from now on. */
  show(collectives: readonly Collective[]): void {
    this.collectives = collectives;
    this.draw();
  }

  /** Draws two frames later, because the timelines move in the next one. */
  draw(): void {
    if (this.scheduled) return;
    this.scheduled = requestAnimationFrame(() => requestAnimationFrame(() => {
      this.scheduled = 0;
      this.drawNow();
    }));
  }

  private drawNow(): void {
    const all = this.timelines();
    const first = all[0]?.timeline;
    if (!first || this.collectives.length === 0) return this.element.replaceChildren();
    if (this.element.parentElement !== this.container) this.container.append(this.element);
    const { range } = first.view;
    const base = this.container.getBoundingClientRect();
    const canvas = first.canvas.getBoundingClientRect();
    const scale = canvas.width / (range.to_ns - range.from_ns);
    const x = (ns: number): number => Math.max(-1, Math.min(canvas.width + 1, (ns - range.from_ns) * scale));
    const tops = new Map<string, number | undefined>();
    const top = (rank: number, queue: number | null): number | undefined => {
      const key = `${rank} ${queue}`;
      if (!tops.has(key)) {
        const timeline = all.find((one) => one.rank === null || one.rank === rank)?.timeline;
        tops.set(key, timeline && middle(timeline, queue, base.top - this.container.scrollTop));
      }
      return tops.get(key);
    };
    const parts: SVGElement[] = [];
    const waits = waitsIn(this.collectives, range.from_ns, range.to_ns, MIN_WAIT_PX / scale);
    for (const { rank, queue, from_ns, to_ns, last, last_queue, tooltip } of waits) {
      const [own, other] = [top(rank, queue), top(last, last_queue)];
      if (own === undefined || other === undefined) continue;
      const [left, right] = [x(from_ns), x(to_ns)];
      const down = other > own;
      parts.push(
        svg("rect", { class: "wait", x: left, y: own - BAR_PX / 2, width: Math.max(1, right - left), height: BAR_PX, "data-rank": rank, "data-last": last, "data-from": from_ns, "data-to": to_ns }, svg("title", {}, tooltip)),
        svg("path", { class: "awaited", d: `M${right},${own}V${other + (down ? -5 : 5)}` }),
        svg("path", { class: "awaited-end", d: `M${right},${other}l-4,${down ? -7 : 7}h8z` }),
      );
    }
    setAttribute(this.element, "width", this.container.clientWidth);
    setAttribute(this.element, "height", this.container.scrollHeight);
    setAttribute(this.element, "data-waits", waits.length);
    this.element.replaceChildren(svg("g", { transform: `translate(${canvas.left - base.left},0)` }, ...parts));
  }
}

/** Returns the middle of a queue's track of work within the visible part, relative to `top`. A timeline that was never visible has no tracks: its own middle counts. */
function middle(timeline: Timeline, queue: number | null, top: number): number | undefined {
  const track = timeline.element.querySelector(`[data-track="q${queue}.work"]`) ?? timeline.element.querySelector(".kind-work");
  const head = (track ?? timeline.element).getBoundingClientRect();
  const body = timeline.canvas.parentElement?.parentElement?.getBoundingClientRect();
  if (!body) return undefined;
  return Math.max(body.top, Math.min((head.top + head.bottom) / 2, body.bottom)) - top;
}
