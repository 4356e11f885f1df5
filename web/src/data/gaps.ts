// Idle time: gaps, and what they cost by cause.

/** The device of a track of gaps; null where the track is not one. */
export function deviceOfGaps(track: string | null): number | null {
  const found = /^g(\d+)\.gaps$/.exec(track ?? "");
  return found && Number(found[1]);
}
