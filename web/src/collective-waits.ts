// Who waits for whom, drawn between the timelines of ranks, or the queues of ranks in one trace: a bar on the collective for as long as its rank waited, and from its end
// a line to the rank that came last.

import type { Collective } from "./data/ranks.ts";
import { setAttribute, svg } from "./dom.ts";
import { duration } from "./time/format.ts";
import type { Timeline } from "./timeline/timeline.ts";

/** Waits narrower than this are not drawn. */
const MIN_WAIT_PX = 3;
/** Collectives that are drawn: those in sight with the greatest skews. */
const MAX_COLLECTIVES = 120;
const BAR_PX = 5;

/** A wait of one rank, in sight. */
export interface Wait {
  rank: number;
  queue: number | null;
  from_ns: number;
  to_ns: number;
  last: number;
  last_queue: number | null;
  says: string;
}

/** The waits in a range, those of the greatest skews; `least_ns`: shorter ones are left out. */
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
          says: `${kind} ${number}: rank ${rank} waited ${duration(waited_ns ?? 0)} for rank ${last_rank}`,
        })),
    );
}

export class CollectiveWaits {
  readonly element = svg("svg", { class: "collective-waits", "aria-hidden": "true" });
  private collectives: readonly Collective[] = [];
  private scheduled = 0;

  constructor(
    private readonly container: HTMLElement,
    /** The timelines that are shown, each with its rank; without one where all ranks are in it. */
    private readonly timelines: () => readonly { rank: number | null; timeline: Timeline }[],
  ) {
    // Tracks are scrolled inside their timelines.
    container.addEventListener("scroll", () => this.draw(), true);
    new ResizeObserver(() => this.draw()).observe(container);
  }

  show(collectives: readonly Collective[]): void {
    this.collectives = collectives;
    this.draw();
  }

  /** Draws at the next frame but one: the timelines move at the next. */
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
    for (const { rank, queue, from_ns, to_ns, last, last_queue, says } of waits) {
      const [own, other] = [top(rank, queue), top(last, last_queue)];
      if (own === undefined || other === undefined) continue;
      const [left, right] = [x(from_ns), x(to_ns)];
      const down = other > own;
      parts.push(
        svg("rect", { class: "wait", x: left, y: own - BAR_PX / 2, width: Math.max(1, right - left), height: BAR_PX, "data-rank": rank, "data-last": last, "data-from": from_ns, "data-to": to_ns }, svg("title", {}, says)),
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

/** The middle of a queue's track of work as far as it is in sight, below `top`; of a timeline that was not seen yet, its own. */
function middle(timeline: Timeline, queue: number | null, top: number): number | undefined {
  const track = timeline.element.querySelector(`[data-track="q${queue}.work"]`) ?? timeline.element.querySelector(".kind-work");
  const head = (track ?? timeline.element).getBoundingClientRect();
  const body = timeline.canvas.parentElement?.parentElement?.getBoundingClientRect();
  if (!body) return undefined;
  return Math.max(body.top, Math.min((head.top + head.bottom) / 2, body.bottom)) - top;
}
