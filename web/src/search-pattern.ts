// Turns what the reader types into a pattern that texts are matched against.

import { errorMessage } from "./error-message.ts";

/** A test of texts, a sentence about an invalid expression, or null without a search. */
export type Pattern = { matches: (text: string) => boolean } | { problem: string } | null;

/**
 * Parses a regular expression. It ignores case unless it has a capital letter outside of escapes such as `\S`.
 * Returns `null` for an empty text.
 */
export function pattern(typed: string): Pattern {
  if (typed === "") return null;
  try {
    const expression = new RegExp(typed, /\p{Lu}/u.test(typed.replace(/\\./g, "")) ? "u" : "iu");
    return { matches: (text) => expression.test(text) };
  } catch (error) {
    return { problem: reason(error) };
  }
}

function reason(error: unknown): string {
  return `This is not a regular expression: ${errorMessage(error).replace(/^Invalid regular expression: /, "")}`;
}

/** Returns 1 for each text that matches, and 0 for the others. */
export function marks(texts: readonly string[], matches: (text: string) => boolean): Uint8Array {
  return Uint8Array.from(texts, (text) => (matches(text) ? 1 : 0));
}

/** Returns a regular expression that matches exactly this text. */
export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
