// A value that may still be loading or be unavailable, with the sentence to show until then. Only a loaded value can be called empty.

import { unreadSentences } from "../data/losses.ts";
import { isMissing } from "../data/missing.ts";
import type { Findings, Missing } from "../generated/protocol.ts";

/** A value, or the message in place of one. */
export type Loadable<T> = { state: "loading" | "missing"; message: string } | { state: "loaded"; value: T };

/** The findings, why there are none, or `null` while the analyses run. */
export type FindingsSoFar = Findings | Missing | null;

/**
 * Returns what `pick` takes of the findings: with the message `loadingMessage` until they are loaded, and where it
 * returns null with what of the trace could not be read.
 */
export function part<T>(findings: FindingsSoFar, loadingMessage: string, pick: (findings: Findings) => T | null): Loadable<T> {
  if (findings === null) return { state: "loading", message: loadingMessage };
  if (isMissing(findings)) return { state: "missing", message: findings.missing };
  const value = pick(findings);
  if (value === null) return { state: "missing", message: ["Unknown.", ...unreadSentences(findings.unread)].join(" ") };
  return { state: "loaded", value };
}
