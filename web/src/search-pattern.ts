// Turns what the reader types into a pattern that texts are matched against.

import { errorMessage } from "./error-message.ts";

/**
 * A test of texts, a sentence about an invalid expression, or null without a search. `errors` returns the typing errors with which a
 * text has what was typed, infinity for too many; it is null for expressions and for texts that are too short for it.
 */
export type Pattern = { matches: (text: string) => boolean; errors: ((text: string) => number) | null } | { problem: string } | null;

/** The letters for each typing error that is tolerated, and the most errors. */
const LETTERS_PER_ERROR = 4;
const MAX_ERRORS = 2;

/**
 * Parses a regular expression. It ignores case unless it has a capital letter outside of escapes such as `\S`.
 * Returns `null` for an empty text.
 */
export function pattern(typed: string): Pattern {
  if (typed === "") return null;
  try {
    const expression = new RegExp(typed, /\p{Lu}/u.test(typed.replace(/\\./g, "")) ? "u" : "iu");
    return { matches: (text) => expression.test(text), errors: similar(typed) };
  } catch (error) {
    return { problem: reason(error) };
  }
}

/** Returns a function that counts the typing errors of a text that has `typed` somewhere in it; null where `typed` is an expression or too short. */
function similar(typed: string): ((text: string) => number) | null {
  const wanted = typed.trim().toLowerCase();
  const most = Math.min(MAX_ERRORS, Math.floor(wanted.length / LETTERS_PER_ERROR));
  if (most === 0 || /[\\^$*+?()[\]{}|]/.test(typed)) return null;
  return (text) => {
    const errors = typingErrors(wanted, text.toLowerCase());
    return errors <= most ? errors : Infinity;
  };
}

/**
 * Returns the least number of typing errors with which a word stands somewhere in a text: letters that are missing, too many or wrong, or
 * two that are swapped. This is Sellers' algorithm, with the swaps of the optimal string alignment.
 */
export function typingErrors(word: string, text: string): number {
  const { length } = word;
  // The errors of each start of the word, where it ends at the present letter of the text, and one and two letters before.
  let [before, last, now] = [new Uint16Array(length + 1), Uint16Array.from({ length: length + 1 }, (_, i) => i), new Uint16Array(length + 1)];
  let least = last[length];
  for (let at = 0; at < text.length && least > 0; at += 1) {
    // The word may begin anywhere.
    now[0] = 0;
    for (let i = 1; i <= length; i += 1) {
      let errors = last[i - 1] + (word[i - 1] === text[at] ? 0 : 1);
      errors = Math.min(errors, last[i] + 1, now[i - 1] + 1);
      if (i > 1 && at > 0 && word[i - 1] === text[at - 1] && word[i - 2] === text[at]) errors = Math.min(errors, before[i - 2] + 1);
      now[i] = errors;
    }
    least = Math.min(least, now[length]);
    [before, last, now] = [last, now, before];
  }
  return least;
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
