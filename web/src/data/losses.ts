// What a trace lacks: what was lost while it was recorded, and what of it cannot be read.

import type { UnreadTable } from "../generated/protocol.ts";


/** What could not be read, in sentences: files with one reason in one. */
export function unreadSentences(unread: readonly UnreadTable[]): string[] {
  const columns = unread.filter(({ column }) => column !== null).map((one) => `${unreadText(one)}.`);
  const files = unread.filter(({ column }) => column === null);
  const reasons = [...new Set(files.map(({ reason }) => reason))];
  const filesWith = (reason: string): string => files.flatMap((one) => (one.reason === reason ? [one.file] : [])).join(", ");
  return [...columns, ...reasons.map((reason) => `${filesWith(reason)} cannot be read (${reason}).`)];
}

/** One of them, in half a sentence. */
function unreadText({ file, column, reason }: UnreadTable): string {
  return `${column === null ? file : `column ${column} of ${file}`} cannot be read (${reason})`;
}
