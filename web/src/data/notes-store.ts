// Loads the reader's notes on a trace and saves changes to them. The server keeps them in the trace's folder.

import { errorMessage } from "../error-message.ts";
import type { Missing, Note, NotesAnswer } from "../generated/protocol.ts";
import { isMissing } from "./missing.ts";
import type { DataSource } from "./source.ts";

export class NotesStore {
  /** All notes, in order of time. */
  all: readonly Note[] = [];
  /** Why notes cannot be written; null where they can. */
  unwritable: string | null = "The notes are still loading.";
  /** Why the notes could not be loaded or saved; empty otherwise. */
  problem = "";
  private revision = "";
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly trace: number,
    private readonly source: DataSource,
  ) {}

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private take(answer: NotesAnswer | Missing): void {
    if (isMissing(answer)) {
      this.unwritable = answer.missing;
    } else {
      this.all = inOrder(answer.notes);
      this.revision = answer.revision;
      this.unwritable = answer.unwritable;
    }
    for (const listener of this.listeners) listener();
  }

  async load(): Promise<void> {
    this.take(await this.source.notes(this.trace).catch((error: unknown) => ({ missing: errorMessage(error) })));
  }

  /** Adds a note, or replaces another with it. */
  save(note: Note, instead: Note | null): Promise<boolean> {
    return this.replace([...this.all.filter((one) => one !== instead), note]);
  }

  remove(note: Note): Promise<boolean> {
    return this.replace(this.all.filter((one) => one !== note));
  }

  /** Saves all notes. If they were changed elsewhere meanwhile, it loads those instead and overwrites nothing. */
  private async replace(notes: readonly Note[]): Promise<boolean> {
    try {
      const answer = await this.source.replaceNotes(this.trace, { revision: this.revision, notes: inOrder(notes) });
      this.problem = "";
      this.take(answer);
      return true;
    } catch (error) {
      this.problem = errorMessage(error);
      await this.load();
      return false;
    }
  }
}

function inOrder(notes: readonly Note[]): Note[] {
  return [...notes].sort((a, b) => a.from_ns - b.from_ns || (a.to_ns ?? a.from_ns) - (b.to_ns ?? b.from_ns));
}
