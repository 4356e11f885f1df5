// Descriptions of nodes, edges and barriers in words.

import type { DependencyAccess, DependencyNode } from "../generated/protocol.ts";
import { bytes, count } from "../time/format.ts";
import { KINDS, NEEDS } from "./appearance.ts";
import type { Barrier, DependencyGraph, Edge } from "./graph.ts";

export function nodeName(node: DependencyNode | undefined, id: number): string {
  return node ? `${id} ${node.name}` : `${id}`;
}

/** Formats a size, such as `16.0 KiB` or `at most 16.0 KiB`. */
export function sizeText(size: string, exact: boolean): string {
  const text = bytes(Number(size));
  return exact || size === "0" ? text : `at most ${text}`;
}

export function edgeText(edge: Edge): string {
  return `${KINDS[edge.kind].name}, ${sizeText(edge.bytes, edge.exact)}`;
}

/** Says what orders the two ends of an edge, as the end of a sentence. */
export function orderText(edge: Edge): string {
  if (edge.hazard === "certain") return "nothing orders them: a hazard";
  if (edge.hazard === "possible") return "nothing orders them: possibly a hazard, since only bounds of their accesses are known";
  switch (edge.ordered_by) {
    case "barrier":
      return "ordered by barriers";
    case "semaphore":
      return "ordered by semaphores";
    case "nothing":
      return "nothing orders them, but both are atomic operations";
    default:
      return "it is not known what orders them";
  }
}

export function buffersOf(edge: Edge): string {
  const more = edge.buffer_count - edge.buffers.length;
  return edge.buffers.join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

export function accessName(access: DependencyAccess): string {
  if (!access.binding) return "";
  const [set, binding, element] = access.binding;
  return `${set}.${binding}${element > 0 ? `[${element}]` : ""}`;
}

export function barrierText(graph: DependencyGraph, barrier: Barrier): string {
  const { before, after } = graph.around(barrier);
  const place = [before ? `after ${nodeName(before, before.id)}` : "", after ? `before ${nodeName(after, after.id)}` : ""].filter(Boolean).join(", ");
  return `${NEEDS[barrier.need].name}${place ? `: ${place}` : ""}`;
}
