// Reads the device from the id of a track of gaps, such as `g0.gaps`. A gap is a time in which a device was idle.

/** The device of a track of gaps; null where the track is not one. */
export function deviceOfGaps(track: string | null): number | null {
  const found = /^g(\d+)\.gaps$/.exec(track ?? "");
  return found && Number(found[1]);
}
