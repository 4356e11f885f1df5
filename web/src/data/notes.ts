// The notes of a trace as the server sends and takes them.

/** What a reader noted at a moment, or of a range. */
export interface Note {
  from_ns: number;
  /** `null` of a moment. */
  to_ns: number | null;
  text: string;
}

export interface NotesAnswer {
  /** Changes with the notes. */
  revision: string;
  notes: Note[];
  /** Why none can be written. */
  unwritable: string | null;
}
