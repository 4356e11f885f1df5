// Turns whatever was thrown into a sentence for the reader.

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
