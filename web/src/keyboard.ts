// Maps keys to actions of the page, unless the focused element uses the keys itself.

import { type Action, actionOf } from "./input/keys.ts";
import { Motion } from "./input/motion.ts";
import type { Navigation } from "./navigation.ts";
import type { Search } from "./search.ts";
import { length, panned, type Range, zoomed } from "./time/range.ts";
import type { TimelineStack } from "./timeline-stack.ts";
import { eventRange, type View, wholeRange } from "./view.ts";

/** The parts of the page that keys act on. */
export interface KeyboardParts {
  timelineStack: TimelineStack;
  navigation: Navigation;
  search: Search;
  /** The search box. */
  input: HTMLInputElement;
  help: HTMLDialogElement;
  sharing: HTMLDialogElement;
}

export interface KeyboardCallbacks {
  /** Opens the form for a note. */
  note: () => void;
  /** Clears the error message. */
  clearMessage: () => void;
}

/** The share of the visible length that zooming in leaves, that by which panning moves, and pixels of scrolling. */
const ZOOM_FACTOR = 0.6;
const PAN_SHARE = 0.2;
const SCROLL_PX = 60;

/** Handles the keys of the page, once `listen` was called. */
export class Keyboard {
  private readonly motion = new Motion();

  constructor(
    private readonly parts: KeyboardParts,
    private readonly callbacks: KeyboardCallbacks,
  ) {}

  listen(): void {
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keyup", (event) => this.motion.release(event.code));
    window.addEventListener("blur", () => this.motion.stop());
  }

  /** Handles a key: in a text field and while a dialog is open only those of the search box. */
  private key(event: KeyboardEvent): void {
    const { search, input, help, sharing } = this.parts;
    const target = event.target as HTMLElement;
    const typing = target.matches("input, select, textarea") || help.open || sharing.open;
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
    const move = this.motionOf(action);
    if (move) this.motion.press(event.code, event.repeat, move);
    else this.act(action);
  }

  /** Returns what an action that goes on while its key is held does for a part of a step; null for other actions. Zooming keeps the event under the pointer in place, or else the middle. */
  private motionOf(action: Action): ((steps: number) => void) | null {
    const [timeline] = this.parts.timelineStack.timelines;
    const { view } = timeline;
    const middle = (view.range.from_ns + view.range.to_ns) / 2;
    const at_ns = view.hovered ? Math.max(view.range.from_ns, Math.min(eventRange(view.hovered).from_ns, view.range.to_ns)) : middle;
    switch (action) {
      case "zoom-in":
        return (steps) => view.show(zoomed(view.range, at_ns, ZOOM_FACTOR ** steps, view.bounds));
      case "zoom-out":
        return (steps) => view.show(zoomed(view.range, at_ns, ZOOM_FACTOR ** -steps, view.bounds));
      case "pan-left":
        return (steps) => view.show(panned(view.range, -PAN_SHARE * steps, view.bounds));
      case "pan-right":
        return (steps) => view.show(panned(view.range, PAN_SHARE * steps, view.bounds));
      case "scroll-up":
        return (steps) => timeline.scrollBy(-SCROLL_PX * steps);
      case "scroll-down":
        return (steps) => timeline.scrollBy(SCROLL_PX * steps);
      default:
        return null;
    }
  }

  /** Does an action on the first timeline. */
  private act(action: Action): void {
    const { timelineStack, navigation, input, help } = this.parts;
    const [timeline] = timelineStack.timelines;
    const { view } = timeline;
    const actions: Partial<Record<Action, () => void>> = {
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
      note: () => this.callbacks.note(),
      search: () => input.focus(),
      clear: () => this.clear(view),
      help: () => help.showModal(),
    };
    actions[action]?.();
  }

  /** Clears the message, and the first that there is of picked event, selection and search. */
  private clear(view: View): void {
    this.callbacks.clearMessage();
    if (view.event) view.pick(null);
    else if (view.selection) view.select(null);
    else this.parts.search.for("");
  }
}

function fitSelection(view: View): void {
  const range: Range | null = view.event ? wholeRange(view.event) : view.selection;
  if (!range) return;
  const margin = Math.max(1, length(range) * 0.1);
  view.show({ from_ns: range.from_ns - margin, to_ns: range.to_ns + margin });
}
