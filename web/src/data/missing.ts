// The reason that stands in place of an answer that cannot be had.

export interface Missing {
  missing: string;
}

export function isMissing(answer: unknown): answer is Missing {
  return typeof answer === "object" && answer !== null && "missing" in answer;
}
