// Gives the costliest names of work colours of their own. A slot is the index of a colour in the palette; all other names share the slot `REST`. The
// cost of a name is the sum of the durations of its work, over all open traces, so that a name has the same colour in each.

import type { Trace, Track } from "./data/trace.ts";
import { REST } from "./draw/palette.ts";

export type NameKind = "kernel" | "label";

/** The cost of each name in one trace, and the state of the trace in which it was counted. */
interface NameCosts {
  /** The number of tracks whose work was counted. */
  tracks: number;
  /** The number of those tracks that have only slices. */
  sliced: number;
  /** The strings of the trace, and how many there were. */
  strings: readonly string[];
  count: number;
  /** The cost of each name in nanoseconds. */
  of: Map<string, number>;
}

/** The slots that were given to kernels, or to labels. */
interface SlotDecision {
  /** The sum of the traces' change counters at the time of the decision. */
  changes: number;
  costs: Map<Trace, NameCosts>;
  /** The slot of each name that has a colour of its own. */
  own: ReadonlyMap<string, number>;
  /** The slots by index in a trace's strings, for the traces that were asked for. */
  slots: Map<Trace, Uint8Array>;
}

/** Decides which names have colours of their own, and decides again when traces have loaded more work or names. */
export class ColourSlots {
  private readonly decisions: Record<NameKind, SlotDecision> = { kernel: undecided(), label: undecided() };
  private settled = false;

  constructor(private readonly traces: readonly Trace[]) {}

  /** Returns the slot of each string of a trace. */
  slotsOf(trace: Trace, by: NameKind): Uint8Array {
    const { own, slots } = this.decision(by);
    let found = slots.get(trace);
    if (!found) {
      found = new Uint8Array(trace.strings.length).fill(REST);
      for (let i = 0; i < found.length; i += 1) found[i] = own.get(trace.strings[i]) ?? REST;
      slots.set(trace, found);
    }
    return found;
  }

  /**
   * Makes each name keep its colour from now on unless a costlier one needs it. Before that, the order in which answers arrive makes no
   * difference, so that a trace that is opened again has the same colours.
   */
  settle(): void {
    this.decision("kernel");
    this.decision("label");
    this.settled = true;
  }

  private decision(by: NameKind): SlotDecision {
    const decision = this.decisions[by];
    // This runs for each lane that is drawn, and most often nothing has changed.
    let changes = 0;
    for (const trace of this.traces) changes += trace.changes;
    if (changes === decision.changes) return decision;
    decision.changes = changes;
    const counted = this.traces.filter((trace) => count(decision.costs, trace, by));
    if (counted.length === 0) return decision;
    decision.own = assigned(summed([...decision.costs.values()]), this.settled ? decision.own : new Map());
    decision.slots = new Map();
    return decision;
  }
}

function undecided(): SlotDecision {
  return { changes: -1, costs: new Map(), own: new Map(), slots: new Map() };
}

/**
 * Counts the costs of a trace's names, unless they are known for its tracks and strings; returns true where it counted. Rows that a live track has
 * gained since change no colours.
 */
function count(costs: Map<Trace, NameCosts>, trace: Trace, by: NameKind): boolean {
  const { strings } = trace;
  const there = ({ state, coarse, labels }: Track): boolean => (state === "ready" ? by === "kernel" || labels !== null : by === "kernel" && coarse !== null);
  const ready = trace.tracks.filter((track) => track.kind === "work" && there(track));
  const known = costs.get(trace);
  const sliced = ready.filter(({ coarse }) => coarse !== null).length;
  if (known && known.tracks === ready.length && known.sliced === sliced && known.strings === strings && known.count === strings.length) return false;
  const sums = new Float64Array(strings.length);
  for (const track of ready) {
    if (track.coarse) {
      // The event that ran longest in a slice stands for all that ran in it.
      const { lanes, slice_ns } = track.coarse;
      for (const { busy, key } of lanes) busy.forEach((share, i) => key[i] < sums.length && (sums[key[i]] += (share / 255) * slice_ns));
      continue;
    }
    track.lanes.forEach((lane, number) => {
      const keys = by === "kernel" ? lane.key : track.labels?.[number];
      if (!keys) return;
      for (let i = 0; i < lane.count; i += 1) if (keys[i] < sums.length) sums[keys[i]] += lane.duration_ns[i];
    });
  }
  const of = new Map<string, number>();
  // Transfers have a colour of their own.
  sums.forEach((cost, name) => cost > 0 && !(by === "kernel" && trace.isTransfer(name)) && of.set(strings[name], cost));
  costs.set(trace, { tracks: ready.length, sliced, strings, count: strings.length, of });
  return true;
}

function summed(costs: readonly NameCosts[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { of } of costs) for (const [name, cost] of of) sums.set(name, (sums.get(name) ?? 0) + cost);
  return sums;
}

/** Assigns slots to the costliest names. A name that had a slot keeps it unless a costlier name needs it. */
export function assigned(costs: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): Map<string, number> {
  const costOf = (name: string): number => costs.get(name) ?? 0;
  const costliest = new Set([...costs.keys()].sort((a, b) => costOf(b) - costOf(a)).slice(0, REST));
  const coming = [...costliest].filter((name) => !before.has(name));
  const cheap = [...before.keys()].filter((name) => !costliest.has(name)).sort((a, b) => costOf(a) - costOf(b));
  const own = new Map(before);
  for (const name of cheap.slice(0, Math.max(0, before.size + coming.length - REST))) own.delete(name);
  const taken = new Set(own.values());
  const free = Array.from({ length: REST }, (_, slot) => slot).filter((slot) => !taken.has(slot));
  coming.forEach((name, number) => own.set(name, free[number]));
  return own;
}
