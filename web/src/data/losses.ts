// Tells in sentences which files and columns of a trace cannot be read.

import type { UnreadTable } from "../generated/protocol.ts";


/** Returns the sentences: one for each column, and one for all files with the same reason. */
export function unreadSentences(unread: readonly UnreadTable[]): string[] {
  const columns = unread.filter(({ column }) => column !== null).map((one) => `${unreadText(one)}.`);
  const files = unread.filter(({ column }) => column === null);
  const reasons = [...new Set(files.map(({ reason }) => reason))];
  const filesWith = (reason: string): string => files.flatMap((one) => (one.reason === reason ? [one.file] : [])).join(", ");
  return [...columns, ...reasons.map((reason) => `${filesWith(reason)} cannot be read (${reason}).`)];
}

/** Tells of one file or column without the full stop. */
function unreadText({ file, column, reason }: UnreadTable): string {
  return `${column === null ? file : `column ${column} of ${file}`} cannot be read (${reason})`;
}
