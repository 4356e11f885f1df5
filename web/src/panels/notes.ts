// The panel of the reader's notes: a list that leads to their places, and a form to write them.

import type { NotesStore } from "../data/notes-store.ts";
import { fill, h } from "../dom.ts";
import type { Note } from "../generated/protocol.ts";
import { instant, plural } from "../time/format.ts";
import { length, type Range } from "../time/range.ts";
import type { View } from "../view.ts";

/** The most time that is shown before and after a note at a moment. */
const AROUND_NS = 1e6;
/** The text of a note without one. */
const WITHOUT_TEXT = "bookmark";

/** The panel of one trace's notes; it shows them anew after every change of the store. */
export class NotesPanel {
  readonly element = h("div", { class: "panel notes-panel" });
  private readonly head = h("div", { class: "panel-head" });
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly form = h("form", { class: "note-form", hidden: true, onsubmit: (event: Event) => void this.submit(event) });
  private readonly text = h("textarea", { rows: 2, maxlength: 10_000, placeholder: `Without a text it is a ${WITHOUT_TEXT}.`, "aria-label": "Text of the note", onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  private readonly where = h("b");
  private readonly list = h("ul", { class: "notes", "aria-label": "Notes" });
  /** The place of the note in the form, and the note that it replaces. */
  private writing: { range: Range; instead: Note | null } | null = null;

  constructor(
    private readonly view: View,
    private readonly notes: NotesStore,
    private readonly go: (note: Note) => void,
  ) {
    fill(this.form, this.where, this.text, h("button", { class: "primary" }, "Keep"), h("button", { type: "button", onclick: () => this.close() }, "Cancel"));
    fill(this.element, this.head, this.problem, this.form, this.list);
    notes.onChange(() => this.show());
    this.show();
  }

  private show(): void {
    const { all, unwritable, problem } = this.notes;
    fill(
      this.head,
      h("span", { role: "status" }, plural(all.length, "note", "notes")),
      unwritable === null ? h("button", { type: "button", onclick: () => this.begin() }, "New note") : h("span", { class: "note" }, unwritable),
      unwritable === null ? h("span", { class: "note" }, "at the selected range, the picked event, or the middle of the view; ", h("kbd", {}, "M")) : null,
    );
    this.problem.textContent = problem;
    this.problem.hidden = problem === "";
    this.element.dataset.notes = String(all.length);
    fill(this.list, all.map((note) => this.item(note)));
  }

  /** Makes the entry of a note, with buttons to change and remove it where that is possible. */
  private item(note: Note): HTMLElement {
    const place = placeText(note);
    const can = this.notes.unwritable === null;
    return h(
      "li",
      {},
      h("button", { type: "button", class: "note-place", title: "Go there", onclick: () => this.go(note) }, place),
      h("p", { class: "note-text" }, note.text),
      can ? h("button", { type: "button", "aria-label": `Change the note at ${place}`, onclick: () => this.open(rangeOf(note), note) }, "Change") : null,
      can ? h("button", { type: "button", "aria-label": `Remove the note at ${place}`, onclick: () => void this.notes.remove(note) }, "Remove") : null,
    );
  }

  /** Opens the form for a note at the selected range, the picked event, or the middle of the view. */
  begin(): void {
    if (this.notes.unwritable !== null) return;
    const { selection, event, range } = this.view;
    const picked = event?.track.lanes[event.lane];
    const at = event && picked ? picked.start_ns[event.index] : (range.from_ns + range.to_ns) / 2;
    const moment = Math.round(at);
    this.open(selection ? { from_ns: Math.round(selection.from_ns), to_ns: Math.round(selection.to_ns) } : { from_ns: moment, to_ns: moment }, null);
  }

  /** Opens the form for a note at a range, in place of `instead` where that is given. */
  private open(range: Range, instead: Note | null): void {
    this.writing = { range, instead };
    this.where.textContent = placeText(noteAt(range, ""));
    this.text.value = instead && instead.text !== WITHOUT_TEXT ? instead.text : "";
    this.form.hidden = false;
    this.text.focus();
  }

  private close(): void {
    this.writing = null;
    this.form.hidden = true;
    this.head.querySelector("button")?.focus();
  }

  private async submit(event: Event): Promise<void> {
    event.preventDefault();
    const { writing } = this;
    if (!writing) return;
    const text = this.text.value.trim() || WITHOUT_TEXT;
    // A note that could not be saved stays in the form.
    const kept = await this.notes.save(noteAt(writing.range, text), writing.instead);
    if (!kept) writing.instead = null;
    // The form may have another note by now.
    else if (this.writing === writing) this.close();
  }

  /** Saves with Enter and closes with Escape; Shift and Enter begin a line. */
  private key(event: KeyboardEvent): void {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.form.requestSubmit();
    }
    if (event.key === "Escape") this.close();
  }
}

/** Makes a note at a range, or at a moment where the range is empty. */
function noteAt({ from_ns, to_ns }: Range, text: string): Note {
  return { from_ns, to_ns: to_ns > from_ns ? to_ns : null, text };
}

/** Returns the range of a note; a moment has no length. */
export function rangeOf({ from_ns, to_ns }: Note): Range {
  return { from_ns, to_ns: to_ns ?? from_ns };
}

/** Describes the place of a note. */
export function placeText(note: Note): string {
  const range = rangeOf(note);
  const step_ns = note.to_ns === null ? 1000 : Math.max(1, length(range) / 1000);
  return note.to_ns === null ? instant(range.from_ns, step_ns) : `${instant(range.from_ns, step_ns)} to ${instant(range.to_ns, step_ns)}`;
}

/** Shows the place of a note, and selects its range. */
export function goToNote(view: View, note: Note): void {
  const range = rangeOf(note);
  const margin = note.to_ns === null ? Math.min(AROUND_NS, length(view.range) / 2) : length(range) * 0.2;
  view.show({ from_ns: range.from_ns - margin, to_ns: range.to_ns + margin });
  view.select(note.to_ns === null ? null : range);
}
