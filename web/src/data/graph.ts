// The folded graph of the data flow.

export interface GraphNode {
  id: number;
  name: string;
  label: string | null;
  count: number;
  total_ns: number | null;
  first_start_ns: number | null;
  kind: "dispatch" | "transfer" | "rest";
}

export interface GraphEdge {
  from: number;
  to: number;
  count: number;
  buffers: string[];
  bytes: string;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  folded: string;
  dispatches: number;
  considered: number;
}
