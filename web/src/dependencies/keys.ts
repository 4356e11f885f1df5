// The keys of the dependency graph and their actions.

export type GraphAction = "earlier" | "later" | "previous" | "next" | "zoom-in" | "zoom-out" | "left" | "right" | "up" | "down" | "fit" | "next-finding" | "previous-finding" | "go" | "clear";

export const GRAPH_KEYS: readonly { action: GraphAction; keys: string[]; says: string }[] = [
  { action: "earlier", keys: ["ArrowLeft"], says: "go to what it waits for" },
  { action: "later", keys: ["ArrowRight"], says: "go to what waits for it" },
  { action: "previous", keys: ["ArrowUp", ","], says: "previous command" },
  { action: "next", keys: ["ArrowDown", "."], says: "next command" },
  { action: "next-finding", keys: ["n"], says: "next hazard or needless barrier" },
  { action: "previous-finding", keys: ["p"], says: "previous hazard or needless barrier" },
  { action: "zoom-in", keys: ["w", "+", "="], says: "zoom in" },
  { action: "zoom-out", keys: ["s", "-"], says: "zoom out" },
  { action: "left", keys: ["a"], says: "move left" },
  { action: "right", keys: ["d"], says: "move right" },
  { action: "up", keys: ["i"], says: "move up" },
  { action: "down", keys: ["k"], says: "move down" },
  { action: "fit", keys: ["f", "Home"], says: "show everything" },
  { action: "go", keys: ["Enter"], says: "show it in the timeline" },
  { action: "clear", keys: ["Escape"], says: "clear the selection" },
];

const BY_KEY = new Map(GRAPH_KEYS.flatMap(({ action, keys }) => keys.map((key) => [key, action] as const)));

export function graphAction(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): GraphAction | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  return BY_KEY.get(event.key) ?? BY_KEY.get(event.key.toLowerCase());
}
