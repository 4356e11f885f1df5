// Colours and words for the parts of a dependency graph: its nodes are dispatches (executions of kernels) and
// transfers, its edges lead from a node to one that must run after it, and barriers are the recorded commands that
// make work wait. A barrier's need says whether it is needed.

import { type Colours, PARTS, type Theme, workSlots } from "../draw/palette.ts";
import type { DependencyNode, EdgeKind, Need } from "../generated/protocol.ts";
import type { DependencyGraph } from "./graph.ts";

/**
 * The colours of one theme. `critical` is for the critical path, `hazard` for dependencies that nothing orders, and
 * `frame` for what surrounds a submission.
 */
export interface GraphColours {
  edges: Record<EdgeKind, string>;
  critical: string;
  hazard: string;
  needless: string;
  barrier: string;
  frame: string;
}

const COLOURS: Record<Theme, GraphColours> = {
  light: { edges: { RAW: "#2f6fd6", WAR: "#b3700a", WAW: "#8c46b3" }, critical: "#1f5fd0", hazard: "#d01a3a", needless: "#c2490a", barrier: "#77828f", frame: "#f6f7f9" },
  dark: { edges: { RAW: "#6ea3ff", WAR: "#e0a544", WAW: "#c792e8" }, critical: "#8fb8ff", hazard: "#ff5c74", needless: "#ff9d5c", barrier: "#8c97a5", frame: "#1a1f26" },
};

export function graphColours(theme: Theme): GraphColours {
  return COLOURS[theme];
}

/** The kinds of edges. The meanings call the node that an edge leaves `the earlier one`. */
export const KINDS: Record<EdgeKind, { name: string; meaning: string }> = {
  RAW: { name: "read after write", meaning: "The later one reads what the earlier one wrote." },
  WAR: { name: "write after read", meaning: "The later one overwrites what the earlier one read." },
  WAW: { name: "write after write", meaning: "The later one overwrites what the earlier one wrote, and nothing read it in between." },
};

/** What the page says about each need. */
export const NEEDS: Record<Need, { name: string; meaning: string }> = {
  needed: { name: "needed", meaning: "It covers a dependency that no other barrier covers." },
  needless: { name: "needless", meaning: "Without this and all other needless barriers, every dependency of the window is still covered." },
  outside: { name: "at the edge", meaning: "It is not known whether it is needed: it is at the edge of its submission and may order other work." },
  host: { name: "for the host", meaning: "It is not known whether it is needed: it orders work for the host." },
  unknown: { name: "unknown", meaning: "It is not known whether it is needed." },
};

/**
 * The colours of nodes by kernel: the kernels that take most time in the graph have colours of their own. A dispatch
 * of unknown duration counts as 1 ns, so that without times the most frequent kernels have them.
 */
export class NodeColours {
  private readonly slots = new Map<string, number>();

  constructor(graph: DependencyGraph) {
    const costs = new Map<string, number>();
    for (const node of graph.nodes) if (isDispatch(node)) costs.set(node.name, (costs.get(node.name) ?? 0) + (node.duration_ns ?? 1));
    const names = [...costs.keys()];
    const slots = workSlots(names.map((name) => costs.get(name) ?? 0));
    names.forEach((name, at) => this.slots.set(name, slots[at]));
  }

  /** Returns the colour of a node; one that is neither a dispatch nor a transfer has the colour `strong`. */
  colourOf(node: DependencyNode, colours: Colours): string {
    if (node.kind !== null && !isDispatch(node)) return PARTS.transfer;
    const slot = isDispatch(node) ? this.slots.get(node.name) : undefined;
    return slot === undefined ? colours.strong : colours.work[slot];
  }
}

export function isDispatch(node: DependencyNode): boolean {
  return node.kind === "dispatch";
}
