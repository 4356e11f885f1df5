// The name, note and title of a track.

import type { Track } from "../data/trace.ts";
import type { TrackOverview } from "../generated/protocol.ts";

/** What tracks of a kind show; empty where their own name says it. */
const KIND_NAMES: Record<TrackOverview["kind"], string> = {
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

export interface TrackNames {
  /** The name of the thread or queue; for other tracks, what they show. */
  name: string;
  /** What the track shows, where that is not its name. */
  note: string;
  /** The full description in one line. */
  title: string;
}

/**
 * Returns the words for a track: tracks of work, calls and a thread's labels bear the name of their queue or thread,
 * others that of what they show.
 */
export function trackNames({ kind, overview }: Track): TrackNames {
  const { counter } = overview;
  const what = counter?.name ?? KIND_NAMES[kind] ?? kind;
  const measured = counter ? `${counter.unit}, ${counter.source}` : "";
  const named = kind === "work" || kind === "calls" || kind === "thread-labels";
  const [name, note] = named ? [overview.name, what] : [what, measured];
  return { name, note, title: [overview.name, measured || what].filter(Boolean).join(" · ") };
}
