// The page's colours. Those of causes of idle time come with the trace and are strong; work of the GPU is calm beside
// them. A slot is an index in the colours of work.

export type Theme = "light" | "dark";

/** The colours of work, low in chroma so that causes stand out. The last one is for all other names. */
const WORK: Record<Theme, readonly string[]> = {
  light: ["#6f94c4", "#8fb3a4", "#a796c9", "#c7a98a", "#7fb0c4", "#b8909e", "#9aa86f", "#8f9fd6", "#c3b476", "#86a1a8", "#b59cc0", "#aab2bd"],
  dark: ["#5b82b8", "#6f9c8b", "#8d7bb5", "#b08f6d", "#609bb3", "#a3778a", "#85955a", "#7586c4", "#a8985a", "#6c8991", "#9a7fa8", "#6d7683"],
};

/** The colours of parts of the time: all computing, whichever kernel it is; transfers, in the bar, on the tracks and in the legend; and others that have no cause of idle time. No kernel or cause has one of them. */
export const PARTS = { compute: "#3a5a86", transfer: "#70c890", communication: "#e67fb4", peers: "#f4c2dc", imbalance: "#5f5836" } as const;

/** All colours of kernels and labels, for comparing them with others. */
export const ALL_WORK: readonly string[] = [...WORK.light, ...WORK.dark];

/** The number of colours of work, including the one for all other names. */
export const WORK_SLOTS = WORK.light.length;
/** The slot of the colour for all other names. */
export const REST = WORK_SLOTS - 1;

/** The colours of one theme. `strong` is for strong lines, `faint` for less important text, and `host` for calls; `slow` is for steps that take longer than most. */
export interface Colours {
  background: string;
  panel: string;
  lane: string;
  line: string;
  strong: string;
  text: string;
  faint: string;
  accent: string;
  selection: string;
  dimmed: string;
  host: string;
  hostWait: string;
  marker: string;
  counter: string;
  note: string;
  step: string;
  slow: string;
  work: readonly string[];
}

const COLOURS: Record<Theme, Colours> = {
  light: {
    background: "#ffffff",
    panel: "#f6f7f9",
    lane: "#f3f5f8",
    line: "#e3e7ec",
    strong: "#c6ccd5",
    text: "#1b2430",
    faint: "#5d6876",
    accent: "#1f5fd0",
    selection: "rgba(31, 95, 208, 0.13)",
    dimmed: "#dfe3e9",
    host: "#9db4cf",
    hostWait: "#d3d9e1",
    marker: "#c9d6ea",
    counter: "#7f9cc6",
    note: "#b3367a",
    step: "#d9dee6",
    slow: "#e2574c",
    work: WORK.light,
  },
  dark: {
    background: "#14181e",
    panel: "#1b2027",
    lane: "#1a1f26",
    line: "#2a313a",
    strong: "#414b57",
    text: "#e6eaf0",
    faint: "#98a3b1",
    accent: "#6ea3ff",
    selection: "rgba(110, 163, 255, 0.17)",
    dimmed: "#2a313a",
    host: "#4f6a8c",
    hostWait: "#37404b",
    marker: "#34455e",
    counter: "#5d7fb3",
    note: "#f08bc0",
    step: "#333c47",
    slow: "#e2574c",
    work: WORK.dark,
  },
};

export function colours(theme: Theme): Colours {
  return COLOURS[theme];
}

/** Returns dark or white, whichever is more readable on a colour `#rrggbb`. */
export function inkOn(colour: string): string {
  return luminance(colour) > 0.19 ? "#10151c" : "#ffffff";
}

/** Returns the relative luminance of a colour `#rrggbb` as WCAG 2 defines it, from 0 to 1. */
export function luminance(colour: string): number {
  const channel = (at: number): number => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

/** Assigns slots: the costliest names get a colour of their own; the rest, and all without cost, share the last. */
export function workSlots(costs: ArrayLike<number>): Uint8Array {
  const order = Array.from({ length: costs.length }, (_, i) => i)
    .filter((key) => costs[key] > 0)
    .sort((a, b) => costs[b] - costs[a] || a - b);
  const slots = new Uint8Array(costs.length).fill(REST);
  order.slice(0, REST).forEach((key, rank) => (slots[key] = rank));
  return slots;
}

/** Mixes `part` of one colour `#rrggbb` with the rest of another. */
export function mixed(one: string, other: string, part: number): string {
  const channel = (at: number): string =>
    Math.round(parseInt(one.slice(at, at + 2), 16) * part + parseInt(other.slice(at, at + 2), 16) * (1 - part))
      .toString(16)
      .padStart(2, "0");
  return `#${channel(1)}${channel(3)}${channel(5)}`;
}
