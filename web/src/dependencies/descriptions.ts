// Descriptions of nodes, edges and barriers of a dependency graph in words.

import type { DependencyAccess, DependencyNode } from "../generated/protocol.ts";
import { bytes, count } from "../time/format.ts";
import { KINDS, NEEDS } from "./appearance.ts";
import type { Barrier, DependencyGraph, Edge } from "./graph.ts";

/** Returns a node's id and name; only the id for a node outside of the loaded part. */
export function nodeName(node: DependencyNode | undefined, id: number): string {
  return node ? `${id} ${node.name}` : `${id}`;
}

/** Formats a size in bytes, such as `16.0 KiB`, or `at most 16.0 KiB` where only a bound is known. */
export function sizeText(size: string, exact: boolean): string {
  const text = bytes(Number(size));
  return exact || size === "0" ? text : `at most ${text}`;
}

/** Returns the kind of an edge and how many bytes it is about. */
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

/** Lists the buffers that an edge is about, and counts those that the answer leaves out. */
export function buffersOf(edge: Edge): string {
  const more = edge.buffer_count - edge.buffers.length;
  return edge.buffers.join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

/** Returns the binding of an access, such as `0.2` for set 0, binding 2, or `0.2[3]` in an array; empty for none. */
export function accessName(access: DependencyAccess): string {
  if (!access.binding) return "";
  const [set, binding, element] = access.binding;
  return `${set}.${binding}${element > 0 ? `[${element}]` : ""}`;
}

/** Says whether a barrier is needed, and between which nodes it stands. */
export function barrierText(graph: DependencyGraph, barrier: Barrier): string {
  const { before, after } = graph.around(barrier);
  const place = [before ? `after ${nodeName(before, before.id)}` : "", after ? `before ${nodeName(after, after.id)}` : ""].filter(Boolean).join(", ");
  return `${NEEDS[barrier.need].name}${place ? `: ${place}` : ""}`;
}
