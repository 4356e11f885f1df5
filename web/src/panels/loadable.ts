// A value that may still be loading or be unavailable, with the sentence to show until then. Only a loaded value can be called empty.

import type { Findings } from "../data/findings.ts";
import { unreadSentences } from "../data/losses.ts";
import { isMissing, type Missing } from "../data/missing.ts";

export type Loadable<T> = { state: "coming" | "missing"; says: string } | { state: "there"; value: T };

/** The findings, why there are none, or `null` while the analyses run. */
export type FindingsSoFar = Findings | Missing | null;

/** Returns a part of the findings, `coming` until they are there, or what could not be read where a part depends on that. */
export function part<T>(findings: FindingsSoFar, coming: string, pick: (findings: Findings) => T | null): Loadable<T> {
  if (findings === null) return { state: "coming", says: coming };
  if (isMissing(findings)) return { state: "missing", says: findings.missing };
  const value = pick(findings);
  if (value === null) return { state: "missing", says: ["Unknown.", ...unreadSentences(findings.unread)].join(" ") };
  return { state: "there", value };
}
