// What stands where data will be: that it comes, or why it does not. That there is none is said only when it is there.

import type { Findings } from "../data/findings.ts";
import { unreadSentences } from "../data/losses.ts";
import { isMissing, type Missing } from "../data/missing.ts";

export type Loadable<T> = { state: "coming" | "missing"; says: string } | { state: "there"; value: T };

/** What the analyses have found by now: `null` while they run. */
export type FindingsSoFar = Findings | Missing | null;

/** A part of the findings; `coming` is said until they are there, and where a part rests on what cannot be read, that. */
export function part<T>(findings: FindingsSoFar, coming: string, pick: (findings: Findings) => T | null): Loadable<T> {
  if (findings === null) return { state: "coming", says: coming };
  if (isMissing(findings)) return { state: "missing", says: findings.missing };
  const value = pick(findings);
  if (value === null) return { state: "missing", says: ["Unknown.", ...unreadSentences(findings.unread)].join(" ") };
  return { state: "there", value };
}
