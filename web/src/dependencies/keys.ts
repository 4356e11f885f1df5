// The keys of the dependency graph and their actions.

/** What keys do in the graph; `meaning` below says it in words. */
export type GraphAction = "earlier" | "later" | "previous" | "next" | "zoom-in" | "zoom-out" | "left" | "right" | "up" | "down" | "fit" | "next-finding" | "previous-finding" | "go" | "clear";

export const GRAPH_KEYS: readonly { action: GraphAction; keys: string[]; meaning: string }[] = [
  { action: "earlier", keys: ["ArrowLeft"], meaning: "go to what it waits for" },
  { action: "later", keys: ["ArrowRight"], meaning: "go to what waits for it" },
  { action: "previous", keys: ["ArrowUp", ","], meaning: "previous command" },
  { action: "next", keys: ["ArrowDown", "."], meaning: "next command" },
  { action: "next-finding", keys: ["n"], meaning: "next hazard or needless barrier" },
  { action: "previous-finding", keys: ["p"], meaning: "previous hazard or needless barrier" },
  { action: "zoom-in", keys: ["w", "+", "="], meaning: "zoom in" },
  { action: "zoom-out", keys: ["s", "-"], meaning: "zoom out" },
  { action: "left", keys: ["a"], meaning: "move left" },
  { action: "right", keys: ["d"], meaning: "move right" },
  { action: "up", keys: ["i"], meaning: "move up" },
  { action: "down", keys: ["k"], meaning: "move down" },
  { action: "fit", keys: ["f", "Home"], meaning: "show everything" },
  { action: "go", keys: ["Enter"], meaning: "show it in the timeline" },
  { action: "clear", keys: ["Escape"], meaning: "clear the selection" },
];

const BY_KEY = new Map(GRAPH_KEYS.flatMap(({ action, keys }) => keys.map((key) => [key, action] as const)));

/** Returns the action of a key; undefined for other keys, and while Control, Alt or the command key is down. */
export function graphAction(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): GraphAction | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  return BY_KEY.get(event.key) ?? BY_KEY.get(event.key.toLowerCase());
}
