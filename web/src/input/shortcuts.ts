// What keys do on the page.

import type { Navigation } from "../navigation.ts";
import type { NotesPanel } from "../panels/notes.ts";
import type { Search } from "../searching.ts";
import type { Stage } from "../stage.ts";
import type { Tabs } from "../tabs.ts";
import { length, panned, type Range, zoomed } from "../time/range.ts";
import { eventRange, type View, wholeRange } from "../view.ts";
import { type Action, actionOf } from "./keys.ts";

/** What keys reach. */
export interface Reached {
  stage: Stage;
  navigation: Navigation;
  search: Search;
  /** Where the search is typed. */
  input: HTMLInputElement;
  tabs: Tabs;
  notes: NotesPanel;
  help: HTMLDialogElement;
  /** Whether something lies over the page that keys are for. */
  covered: () => boolean;
  say: (problem: string) => void;
}

export class Shortcuts {
  constructor(private readonly reached: Reached) {}

  key(event: KeyboardEvent): void {
    const { input, search, covered } = this.reached;
    const target = event.target as HTMLElement;
    const typing = target.matches("input, select, textarea") || covered();
    if (typing) {
      if (event.key === "Enter" && target === input) {
        event.preventDefault();
        search.step(!event.shiftKey);
      }
      if (event.key === "Escape" && target === input) {
        search.for("");
        target.blur();
      }
      return;
    }
    const action = actionOf(event);
    if (!action || (event.key.startsWith("Arrow") && target.closest("[role=tablist], .table"))) return;
    event.preventDefault();
    this.act(action);
  }

  private act(action: Action): void {
    const { stage, navigation, input, tabs, notes, help } = this.reached;
    const timeline = stage.timelines[0];
    const { view } = timeline;
    const middle = (view.range.from_ns + view.range.to_ns) / 2;
    const at_ns = view.hovered ? Math.max(view.range.from_ns, Math.min(eventRange(view.hovered).from_ns, view.range.to_ns)) : middle;
    const actions: Record<Action, () => void> = {
      "zoom-in": () => view.show(zoomed(view.range, at_ns, 0.6, view.bounds)),
      "zoom-out": () => view.show(zoomed(view.range, at_ns, 1 / 0.6, view.bounds)),
      "pan-left": () => view.show(panned(view.range, -0.2, view.bounds)),
      "pan-right": () => view.show(panned(view.range, 0.2, view.bounds)),
      "scroll-up": () => timeline.scrollBy(-60),
      "scroll-down": () => timeline.scrollBy(60),
      fit: () => view.fit(),
      "fit-selection": () => fitSelection(view),
      back: () => void view.back(),
      "next-gap": () => navigation.jump("cost", true),
      "previous-gap": () => navigation.jump("cost", false),
      "later-gap": () => navigation.jump("time", true),
      "earlier-gap": () => navigation.jump("time", false),
      "next-event": () => navigation.step(1),
      "previous-event": () => navigation.step(-1),
      "measure-screen": () => view.select(view.range),
      note: () => {
        tabs.show("notes");
        notes.begin();
      },
      search: () => input.focus(),
      clear: () => this.clear(view),
      help: () => help.showModal(),
    };
    actions[action]();
  }

  private clear(view: View): void {
    this.reached.say("");
    if (view.event) view.pick(null);
    else if (view.selection) view.select(null);
    else this.reached.search.for("");
  }
}

function fitSelection(view: View): void {
  const range: Range | null = view.event ? wholeRange(view.event) : view.selection;
  if (!range) return;
  const margin = Math.max(1, length(range) * 0.1);
  view.show({ from_ns: range.from_ns - margin, to_ns: range.to_ns + margin });
}
