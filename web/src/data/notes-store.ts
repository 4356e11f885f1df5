// Loads the reader's notes on a trace and saves changes to them. The server keeps them in the trace's folder.

import { errorMessage } from "../error-message.ts";
import type { Missing, Note, NotesAnswer } from "../generated/protocol.ts";
import { isMissing } from "./missing.ts";
import type { DataSource } from "./source.ts";

/** The notes on one trace. `load` must be called first; until its answer nothing can be written. */
export class NotesStore {
  /** All notes, in order of time. */
  all: readonly Note[] = [];
  /** Why notes cannot be written; null where they can. */
  unwritable: string | null = "The notes are still loading.";
  /** Why the notes could not be loaded or saved; empty otherwise. */
  problem = "";
  /** Names the state of the notes from which `all` was made, for the server to notice changes elsewhere. */
  private revision = "";
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly trace: number,
    private readonly source: DataSource,
  ) {}

  /** Registers a callback that runs after each answer, also one that could not be had. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Holds an answer, or why there is none, and calls the listeners. */
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

  /** Loads the notes; a failure becomes the reason in `unwritable`. */
  async load(): Promise<void> {
    this.take(await this.source.notes(this.trace).catch((error: unknown) => ({ missing: errorMessage(error) })));
  }

  /** Adds a note in place of `instead`, or besides the others for null. Resolves to whether it was saved. */
  save(note: Note, instead: Note | null): Promise<boolean> {
    return this.replace([...this.all.filter((one) => one !== instead), note]);
  }

  /** Removes a note. Resolves to whether that was saved. */
  remove(note: Note): Promise<boolean> {
    return this.replace(this.all.filter((one) => one !== note));
  }

  /**
   * Saves these notes as all that there are, and resolves to whether it could. On a failure, such as a change
   * elsewhere meanwhile, it keeps the message in `problem` and loads the server's notes instead.
   */
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
