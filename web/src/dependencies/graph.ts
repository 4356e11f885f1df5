// A graph of dependencies, with the edges at each node. Nodes are dispatches and transfers in order of execution,
// with ids that count from the trace's first; an edge leads from a node to a later one that depends on it.

import type { Dependencies, DependencyBarrier, DependencyEdge, DependencyNode, DependencySubmission } from "../generated/protocol.ts";


/** A dependency of one node on another. */
export interface Edge extends DependencyEdge {
  /** The place among the graph's edges. */
  index: number;
  /** The bytes that it is about, as a number. */
  size: number;
  /** Whether it joins two nodes that follow each other on the critical path. */
  critical: boolean;
}

/** A recorded barrier. */
export interface Barrier extends DependencyBarrier {
  index: number;
}

/** The element of a graph that is picked or pointed at. */
export type Pick = { kind: "node"; id: number } | { kind: "edge"; index: number } | { kind: "barrier"; index: number };

/** An answer about dependencies, which may be a part of the trace's, with indices to look up its elements. */
export class DependencyGraph {
  readonly edges: Edge[];
  readonly barriers: Barrier[];
  readonly submissions: Map<number, DependencySubmission>;
  /** The edges to and from each node, by its id. */
  private readonly before = new Map<number, Edge[]>();
  private readonly after = new Map<number, Edge[]>();
  private readonly critical: Set<number>;
  /** The node of each row, by a text such as `dispatches.17`. */
  private readonly byPlace = new Map<string, number>();
  /** The bytes of the largest edge, at least 1. */
  readonly largest: number;

  constructor(readonly answer: Dependencies) {
    const path = answer.critical_path?.nodes ?? [];
    this.critical = new Set(path);
    const next = new Map(path.slice(1).map((node, at) => [path[at], node]));
    this.edges = answer.edges.map((edge, index) => ({ ...edge, index, size: Number(edge.bytes), critical: next.get(edge.from) === edge.to }));
    this.barriers = answer.barriers.map((barrier, index) => ({ ...barrier, index }));
    this.submissions = new Map(answer.submissions.map((one) => [one.number, one]));
    for (const edge of this.edges) {
      push(this.before, edge.to, edge);
      push(this.after, edge.from, edge);
    }
    for (const { id, place } of answer.nodes) if (place) this.byPlace.set(`${place.table}.${place.row}`, id);
    this.largest = this.edges.reduce((most, { size }) => Math.max(most, size), 1);
  }

  get nodes(): readonly DependencyNode[] {
    return this.answer.nodes;
  }

  /** Returns a node by id; undefined for one outside of this part. */
  node(id: number): DependencyNode | undefined {
    return this.answer.nodes[id - this.answer.first];
  }

  /** Returns the edges from the nodes that a node waits for. */
  waitsFor(id: number): readonly Edge[] {
    return this.before.get(id) ?? [];
  }

  /** Returns the edges to the nodes that wait for a node. */
  neededBy(id: number): readonly Edge[] {
    return this.after.get(id) ?? [];
  }

  isCritical(id: number): boolean {
    return this.critical.has(id);
  }

  /** Returns the id of the node of a row of a trace; undefined where this part does not have it. */
  at(table: string, row: number): number | undefined {
    return this.byPlace.get(`${table}.${row}`);
  }

  /**
   * Finds the node or edge that was picked in an earlier graph of the same trace, by the rows of its nodes; null
   * where it is not here, and for a barrier.
   */
  again(pick: Pick | null, earlier: DependencyGraph): Pick | null {
    const here = (id: number): number | undefined => {
      const place = earlier.node(id)?.place;
      return place ? this.at(place.table, place.row) : undefined;
    };
    if (pick?.kind === "node") {
      const id = here(pick.id);
      return id === undefined ? null : { kind: "node", id };
    }
    if (pick?.kind !== "edge") return null;
    const edge = earlier.edges[pick.index];
    const [from, to] = [here(edge.from), here(edge.to)];
    const found = this.edges.find((one) => one.from === from && one.to === to && one.kind === edge.kind);
    return found ? { kind: "edge", index: found.index } : null;
  }

  /**
   * Returns the nodes before and after a barrier, if they are of the same submission. The position of a barrier is the number
   * of nodes before it, and so the id of the node after it.
   */
  around(barrier: Barrier): { before: DependencyNode | undefined; after: DependencyNode | undefined } {
    const inside = (node: DependencyNode | undefined): DependencyNode | undefined => (node?.submission === barrier.submission ? node : undefined);
    return { before: inside(this.node(barrier.position - 1)), after: inside(this.node(barrier.position)) };
  }

  /** Returns the picked element with its neighbours, which are highlighted: ids of nodes and indices of edges. */
  near(pick: Pick): { nodes: Set<number>; edges: Set<number> } {
    if (pick.kind === "edge") {
      const edge = this.edges[pick.index];
      return { nodes: new Set([edge.from, edge.to]), edges: new Set([edge.index]) };
    }
    if (pick.kind === "barrier") {
      const { before, after } = this.around(this.barriers[pick.index]);
      return { nodes: new Set([before, after].flatMap((node) => (node ? [node.id] : []))), edges: new Set() };
    }
    const edges = [...this.waitsFor(pick.id), ...this.neededBy(pick.id)];
    return { nodes: new Set([pick.id, ...edges.flatMap(({ from, to }) => [from, to])]), edges: new Set(edges.map(({ index }) => index)) };
  }
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** Returns the strongest edge: critical before other edges, RAW before other kinds, then by bytes. */
export function strongest(edges: readonly Edge[]): Edge | undefined {
  return edges.reduce<Edge | undefined>((best, edge) => (best && strength(best) >= strength(edge) ? best : edge), undefined);
}

function strength(edge: Edge): number {
  return (edge.critical ? 4e18 : 0) + (edge.kind === "RAW" ? 2e18 : 0) + Math.min(edge.size, 1e18);
}
