// Builds the tree of a flame graph from samples in idle time, and lays it out. A node is a frame under its callers;
// its children are the frames that it called.

import type { IdleFilter, Code, IdleSamples } from "./code.ts";

/** A frame of code under its callers, with the idle time and the samples of all stacks that pass through it. */
export interface FlameNode {
  /** The number of the frame; -1 for the root. */
  frame: number;
  total_ns: number;
  samples: number;
  children: FlameNode[];
}

/** Builds the tree of the samples that pass a filter, outermost frames first and the greatest children first. Frames that run the program, but are not part of it, are left out. */
export function flame(idle: IdleSamples, asked: IdleFilter): FlameNode {
  const { code } = idle;
  const root: FlameNode = { frame: -1, total_ns: 0, samples: 0, children: [] };
  const children = new Map<FlameNode, Map<number, FlameNode>>();
  idle.each("sampled", asked, (sample, weight_ns) => {
    root.total_ns += weight_ns;
    root.samples += 1;
    let node = root;
    const frames = code.framesOf(sample);
    for (let at = frames.length - 1; at >= 0; at -= 1) {
      let known = children.get(node);
      if (!known) children.set(node, (known = new Map()));
      let child = known.get(frames[at]);
      if (!child) {
        known.set(frames[at], (child = { frame: frames[at], total_ns: 0, samples: 0, children: [] }));
        node.children.push(child);
      }
      child.total_ns += weight_ns;
      child.samples += 1;
      node = child;
    }
  });
  for (const node of [root, ...[...children.values()].flatMap((known) => [...known.values()])]) {
    node.children.sort((a, b) => b.total_ns - a.total_ns || b.samples - a.samples);
  }
  return { ...root, children: withoutRunners(root, code) };
}

/** Skips the outermost frames while they are common to all samples and not the program's own, such as those of a Python module that runs a program. */
function withoutRunners(root: FlameNode, code: Code): FlameNode[] {
  let { children } = root;
  while (children.length === 1 && children[0].samples === root.samples && !code.header.frames[children[0].frame].own && children[0].children.length > 0) ({ children } = children[0]);
  return hasOwn(children, code) ? children : root.children;
}

/** Returns whether one of these nodes is the program's own code. */
function hasOwn(nodes: readonly FlameNode[], code: Code): boolean {
  return nodes.some((node) => code.header.frames[node.frame].own);
}

/** The place of a node: left edge and width as shares of the whole width, and depth. */
export interface PlacedFrame {
  node: FlameNode;
  from: number;
  width: number;
  /** 0 for the root. */
  depth: number;
  parent: PlacedFrame | null;
  /** Whether the node encloses the one that is zoomed to. */
  around: boolean;
}

/**
 * Places the nodes of a tree, parents first: `zoomed` and the nodes around it are as wide as the drawing, and below
 * it each node takes its share of the time. Nodes narrower than `least`, a share of the width, are left out.
 */
export function placed(root: FlameNode, zoomed: FlameNode, least: number): PlacedFrame[] {
  const found: PlacedFrame[] = [];
  const path = pathTo(root, zoomed) ?? [root];
  let parent: PlacedFrame | null = null;
  for (const node of path) {
    parent = { node, from: 0, width: 1, depth: found.length, parent, around: node !== zoomed };
    found.push(parent);
  }
  const place = (inside: PlacedFrame): void => {
    let { from } = inside;
    for (const node of inside.node.children) {
      const width = inside.node.total_ns > 0 ? (inside.width * node.total_ns) / inside.node.total_ns : 0;
      if (width >= least) {
        const child: PlacedFrame = { node, from, width, depth: inside.depth + 1, parent: inside, around: false };
        found.push(child);
        place(child);
      }
      from += width;
    }
  };
  place(found[found.length - 1]);
  return found;
}

/** Returns the nodes from `from` down to `node`; null where `node` is not below it. */
function pathTo(from: FlameNode, node: FlameNode): FlameNode[] | null {
  if (from === node) return [from];
  for (const child of from.children) {
    const path = pathTo(child, node);
    if (path) return [from, ...path];
  }
  return null;
}
