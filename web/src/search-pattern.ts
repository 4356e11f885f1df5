// Search with regular expressions over texts.

import { errorMessage } from "./error-message.ts";

export type Pattern = { matches: (text: string) => boolean } | { problem: string } | null;

/** The pattern of what was typed: a regular expression, case ignored unless a capital is in it. `null` for nothing. */
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

/** For each text whether it matches. */
export function marks(texts: readonly string[], matches: (text: string) => boolean): Uint8Array {
  return Uint8Array.from(texts, (text) => (matches(text) ? 1 : 0));
}

/** The pattern of a text as it stands. */
export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
