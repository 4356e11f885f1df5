// Turns whatever was thrown into a sentence for the reader.

/** Returns the message of an error, or the text of any other value. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
