// The keys of the page and their actions.

/** What a key does; the meanings below say it in words. */
export type Action =
  | "pan-left"
  | "pan-right"
  | "zoom-in"
  | "zoom-out"
  | "scroll-up"
  | "scroll-down"
  | "fit"
  | "fit-selection"
  | "back"
  | "next-gap"
  | "previous-gap"
  | "later-gap"
  | "earlier-gap"
  | "next-event"
  | "previous-event"
  | "search"
  | "clear"
  | "measure-screen"
  | "note"
  | "help";

/** An action with all keys that do it. */
export interface KeyBinding {
  action: Action;
  /** The keys as the help dialog lists them. */
  keys: string[];
  meaning: string;
}

export const KEYS: readonly KeyBinding[] = [
  { action: "zoom-in", keys: ["w", "+", "="], meaning: "zoom in" },
  { action: "zoom-out", keys: ["s", "-"], meaning: "zoom out" },
  { action: "pan-left", keys: ["a", "ArrowLeft"], meaning: "pan left" },
  { action: "pan-right", keys: ["d", "ArrowRight"], meaning: "pan right" },
  { action: "scroll-up", keys: ["ArrowUp"], meaning: "scroll the tracks up" },
  { action: "scroll-down", keys: ["ArrowDown"], meaning: "scroll the tracks down" },
  { action: "fit", keys: ["f", "Home"], meaning: "show everything" },
  { action: "fit-selection", keys: ["e"], meaning: "zoom to the selection" },
  { action: "back", keys: ["b", "Backspace"], meaning: "back to the previous view" },
  { action: "next-gap", keys: ["n"], meaning: "costliest of the listed gaps, then the next by cost" },
  { action: "previous-gap", keys: ["p"], meaning: "previous gap by cost" },
  { action: "later-gap", keys: ["j"], meaning: "next gap in time with at least 1 % of the longest one's length" },
  { action: "earlier-gap", keys: ["k"], meaning: "previous gap in time" },
  { action: "next-event", keys: ["."], meaning: "next event of the lane" },
  { action: "previous-event", keys: [","], meaning: "previous event of the lane" },
  { action: "measure-screen", keys: ["r"], meaning: "select the visible range" },
  { action: "note", keys: ["m"], meaning: "add a note here" },
  { action: "search", keys: ["/"], meaning: "search" },
  { action: "clear", keys: ["Escape"], meaning: "clear selection and search" },
  { action: "help", keys: ["?"], meaning: "show these keys" },
];

const BY_KEY = new Map(KEYS.flatMap(({ action, keys }) => keys.map((key) => [key, action] as const)));

/** The parts of a keyboard event that decide the action. */
export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/**
 * Returns the action of a key, also of its lower-case letter; undefined for other keys, and with Control, Alt or the
 * system's key, which belong to the browser.
 */
export function actionOf(pressed: Pressed): Action | undefined {
  if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return undefined;
  return BY_KEY.get(pressed.key) ?? BY_KEY.get(pressed.key.toLowerCase());
}

/** Returns the name of a key as keyboards show it. */
export function keyName(key: string): string {
  return { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" }[key] ?? (key.length === 1 ? key.toUpperCase() : key);
}
