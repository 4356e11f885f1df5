/** What an error says. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
