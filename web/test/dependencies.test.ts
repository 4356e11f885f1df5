// Tests the dependency graph: its layout, its camera, and its words.

import { describe, expect, test } from "vitest";
import { DataSource } from "../src/data/source.ts";
import { type Camera, fitted, kept, opening, revealing, upright, zoomedAt } from "../src/dependencies/camera.ts";
import { curveOf, distance, pointOn } from "../src/dependencies/curve.ts";
import { PickDetails } from "../src/dependencies/details.ts";
import { DependencyFindings } from "../src/dependencies/findings-list.ts";
import { DependencyGraph, type Pick } from "../src/dependencies/graph.ts";
import { GRAPH_KEYS, graphAction } from "../src/dependencies/keys.ts";
import { type Layout, layoutOf, NODE } from "../src/dependencies/layout.ts";
import type { Dependencies, DependencyBarrier, DependencyEdge, DependencyNode, EdgeKind, Need } from "../src/generated/protocol.ts";
import { FakeAnswers, json } from "./fake-answers.ts";
import { fake, fakeDocument } from "./fake-dom.ts";

fakeDocument();

function node(id: number, more: Partial<DependencyNode> = {}): DependencyNode {
  const accesses = [{ buffer: `b${id}`, binding: [0, 1, 0] as [number, number, number], direction: "write" as const, bytes: "64", reason: null }];
  return { id, kind: "dispatch", name: `k${id}`, labels: [], submission: 0, read_bytes: "64", written_bytes: "64", exact: true, beyond: null, duration_ns: null, accesses, access_count: 1, place: null, ...more };
}

function edge(from: number, to: number, kind: EdgeKind = "RAW", bytes = 64, more: Partial<DependencyEdge> = {}): DependencyEdge {
  return { from, to, kind, bytes: String(bytes), exact: true, ordered_by: "barrier", hazard: null, buffers: [`b${from}`], buffer_count: 1, ...more };
}

function barrier(position: number, need: Need = "needed", submission = 0): DependencyBarrier {
  return { position, submission, command: position, need, reason: null };
}

function answer(nodes: DependencyNode[], edges: DependencyEdge[], barriers: DependencyBarrier[] = [], more: Partial<Dependencies> = {}): Dependencies {
  const submissions = [...new Set(nodes.map(({ submission }) => submission))].map((number) => ({ number, name: null, queue: "queue 0", called_ns: null, device_ns: null }));
  return {
    first: nodes[0]?.id ?? 0,
    node_count: nodes.length,
    nodes,
    edge_count: edges.length,
    edges,
    edges_left_out: 0,
    edges_outside: 0,
    hazard_count: edges.filter(({ hazard }) => hazard === "certain").length,
    possible_hazard_count: 0,
    barrier_count: barriers.length,
    needless_count: barriers.filter(({ need }) => need === "needless").length,
    barriers,
    submissions,
    critical_path: null,
    cut_at: null,
    unknown: null,
    remarks: [],
    ...more,
  };
}

/** A graph in which 1 and 2 depend on 0, and 3 on both. */
const DIAMOND = answer([0, 1, 2, 3].map((id) => node(id)), [edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)], [barrier(1), barrier(2, "needless"), barrier(3)]);

function places(layout: Layout): [column: number, lane: number][] {
  return [...layout.nodes.values()].map(({ column, lane }) => [column, lane]);
}

describe("the layout", () => {
  test("puts a command to the right of its dependencies, and chains into lanes", () => {
    expect(places(layoutOf(new DependencyGraph(DIAMOND), "dependencies"))).toEqual([
      [0, 0],
      [1, 0],
      [1, 1],
      [2, 0],
    ]);
  });
  test("by barriers puts work that no barrier separates in one column", () => {
    const recorded = layoutOf(new DependencyGraph(DIAMOND), "barriers");
    expect(places(recorded).map(([column]) => column)).toEqual([0, 1, 2, 3]);
    const apart = answer([node(0), node(1), node(2)], [], [barrier(2)]);
    expect(places(layoutOf(new DependencyGraph(apart), "barriers")).map(([column]) => column)).toEqual([0, 0, 1]);
    expect(places(layoutOf(new DependencyGraph(apart), "dependencies")).map(([column]) => column)).toEqual([0, 0, 0]);
  });
  test("never lets two nodes, or the frames of two submissions, lie on each other", () => {
    const nodes = Array.from({ length: 60 }, (_, id) => node(id, { submission: Math.floor(id / 7) }));
    const edges = nodes.flatMap(({ id }) => [id - 1 - (id % 3), id - 5].filter((from) => from >= 0).map((from) => edge(from, id)));
    const { nodes: placed, frames } = layoutOf(new DependencyGraph(answer(nodes, edges)), "dependencies");
    expect(new Set([...placed.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(60);
    expect(frames.length).toBe(9);
    for (const [at, frame] of frames.entries()) {
      const next = frames[at + 1];
      if (next) expect(next.x).toBeGreaterThan(frame.x + frame.width);
      for (const one of placed.values()) {
        const inside = one.x >= frame.x && one.x + NODE.width <= frame.x + frame.width && one.y >= frame.y && one.y + NODE.height <= frame.y + frame.height;
        expect(inside).toBe(one.node.submission === frame.submission);
      }
    }
  });
  test("gives each queue a band of its own", () => {
    const nodes = [0, 1, 2, 3].map((id) => node(id, { submission: id % 2 }));
    const two = answer(nodes, [edge(0, 2)], [], {
      submissions: [0, 1].map((number) => ({ number, name: null, queue: `queue ${number}`, called_ns: null, device_ns: null })),
    });
    const { bands, nodes: placed } = layoutOf(new DependencyGraph(two), "dependencies");
    expect(bands.map(({ name }) => name)).toEqual(["queue 0", "queue 1"]);
    for (const { node, y } of placed.values()) expect(y > bands[1].y).toBe(node.submission === 1);
  });
  test("puts barriers between commands, those at one place as one mark with the worst need", () => {
    const graph = new DependencyGraph(answer([node(0), node(1)], [edge(0, 1)], [barrier(0, "outside"), barrier(1), barrier(1, "needless"), barrier(2, "outside")]));
    const { marks, nodes } = layoutOf(graph, "dependencies");
    expect(marks.map(({ need, barriers }) => [need, barriers.length])).toEqual([
      ["outside", 1],
      ["needless", 2],
      ["outside", 1],
    ]);
    const [first, second] = [...nodes.values()];
    expect(marks[1].x).toBeGreaterThan(first.x + NODE.width);
    expect(marks[1].x).toBeLessThan(second.x);
  });
  test("of a part begins with its first node", () => {
    const part = answer([node(7), node(8)], [edge(7, 8)]);
    const graph = new DependencyGraph(part);
    expect(graph.node(8)?.name).toBe("k8");
    expect(graph.node(6)).toBeUndefined();
    expect(places(layoutOf(graph, "dependencies"))).toEqual([
      [0, 0],
      [1, 0],
    ]);
  });
});

describe("the camera", () => {
  const drawing = { width: 10_000, height: 300 };
  const screen = { width: 1000, height: 600 };
  test("shows all of a graph, and opens a long one at its readable beginning", () => {
    const all = fitted(drawing, screen);
    expect(drawing.width * all.scale).toBeLessThanOrEqual(screen.width);
    expect(all.x).toBeLessThanOrEqual(0);
    const open = opening(drawing, screen);
    expect(open.scale).toBeGreaterThan(0.4);
    expect(open.x).toBeLessThan(0);
    expect(open.x).toBeGreaterThan(-100);
  });
  test("zooms about the pointer", () => {
    let camera: Camera = { x: 500, y: 20, scale: 0.5 };
    const at = (camera: Camera): [number, number] => [300 / camera.scale + camera.x, 200 / upright(camera, drawing, screen) + camera.y];
    const before = at(camera);
    for (const by of [1.5, 2, 0.2, 0.5, 3]) {
      camera = zoomedAt(camera, 300, 200, by, drawing, screen);
      expect(at(camera)[0]).toBeCloseTo(before[0], 6);
      expect(at(camera)[1]).toBeCloseTo(before[1], 6);
    }
  });
  test("keeps some of the graph in sight, and reveals a box", () => {
    const lost = kept({ x: 1e9, y: -1e9, scale: 1 }, drawing, screen);
    expect(lost.x).toBeLessThan(drawing.width);
    expect(lost.y).toBeGreaterThan(-screen.height);
    const box = { x: 7000, y: 100, width: 138, height: 48 };
    const shown = revealing({ x: 0, y: 0, scale: 0.05 }, box, drawing, screen);
    expect((box.x - shown.x) * shown.scale).toBeGreaterThan(0);
    expect((box.x + box.width - shown.x) * shown.scale).toBeLessThan(screen.width);
    // A box that is in sight does not move the camera.
    expect(revealing(shown, box, drawing, screen)).toEqual(shown);
  });
});

describe("an edge", () => {
  const { nodes } = layoutOf(new DependencyGraph(DIAMOND), "dependencies");
  const [a, b] = [nodes.get(0), nodes.get(2)];
  if (!a || !b) throw new Error("both are there");
  test("goes from the right of one node to the left of the other", () => {
    const curve = curveOf(a, b, "RAW");
    expect([curve.x1, curve.x2]).toEqual([a.x + NODE.width, b.x]);
    expect(pointOn(curve, 1)).toEqual({ x: curve.x2, y: curve.y2 });
    expect(curveOf(a, b, "WAR").y1).not.toBe(curve.y1);
  });
  test("is found at the place where it is drawn", () => {
    const curve = curveOf(a, b, "RAW");
    const { x, y } = pointOn(curve, 0.3);
    expect(distance(curve, x, y, 6)).toBeLessThan(1);
    expect(distance(curve, x, y + 40, 6)).toBeGreaterThan(6);
  });
});

describe("the words of a graph", () => {
  const HAZARD = answer(
    [node(0), node(1), node(2, { exact: false, accesses: [{ buffer: "table", binding: null, direction: "read", bytes: "4096", reason: "an address depends on data" }] })],
    [edge(0, 1, "RAW", 64, { hazard: "certain", ordered_by: "nothing" }), edge(1, 2, "WAR", 4096, { exact: false })],
    [barrier(2, "needless")],
    { critical_path: { nodes: [0, 1], node_count: 2, unit: "commands", length: "2", work: "3", parallelism: 1.5 } },
  );
  test("lists hazards, needless barriers and the largest dependencies, with links", () => {
    const picked: Pick[] = [];
    const findings = new DependencyFindings((pick) => picked.push(pick));
    findings.show(new DependencyGraph(HAZARD));
    const text = fake(findings.element).innerText;
    for (const said of ["Hazards 1", "0 k0 → 1 k1", "Needless barriers 1", "after 1 k1, before 2 k2", "2 commands of 3 commands", "1.50", "at most 4.00 KiB"]) expect(text).toContain(said);
    const buttons = fake(findings.element).all("button");
    for (const button of buttons) button.click();
    expect(picked).toEqual([
      { kind: "edge", index: 0 },
      { kind: "barrier", index: 0 },
      { kind: "node", id: 0 },
      { kind: "edge", index: 1 },
      { kind: "edge", index: 0 },
    ]);
  });
  test("without data says why, and never that there is none", () => {
    const findings = new DependencyFindings(() => undefined);
    findings.show(new DependencyGraph({ ...DIAMOND, unknown: "a recording has no barriers" }));
    const text = fake(findings.element).innerText;
    expect(text).toContain("Unknown: a recording has no barriers.");
    expect(text).not.toContain("None: every");
  });
  test("about hazards claims no more than is known", () => {
    const findings = new DependencyFindings(() => undefined);
    const says = (given: Dependencies): string => (findings.show(new DependencyGraph(given)), fake(findings.element).innerText);
    expect(says(DIAMOND)).toContain("None: every dependency of the window is ordered.");
    expect(says({ ...DIAMOND, edges: [edge(0, 1, "RAW", 64, { ordered_by: "unknown" })] })).toContain("None found. Of 1 dependency it is not known what orders it");
    expect(says({ ...DIAMOND, edges: [edge(0, 1, "RAW", 64, { ordered_by: "nothing", hazard: "possible" })] })).toContain("None is certain.");
    expect(says({ ...DIAMOND, node_count: 9 })).toContain("None found.");
  });
  test("of a node has its accesses, why they are not exact, and its neighbours as links", () => {
    const picked: (Pick | null)[] = [];
    const details = new PickDetails({ pick: (pick) => picked.push(pick), go: null });
    const graph = new DependencyGraph(HAZARD);
    details.show(graph, { kind: "node", id: 2 });
    const text = fake(details.element).innerText;
    for (const said of ["k2", "at most 64 B", "At most, since an address depends on data.", "table", "1 k1", "WAR at most 4.00 KiB: b1", "Nothing in the window."]) expect(text).toContain(said);
    details.show(graph, { kind: "node", id: 1 });
    expect(fake(details.element).innerText).toContain("hazard");
    expect(fake(details.element).innerText).toContain("Exactly these bytes.");
    fake(details.element)
      .all("button")
      .find((button) => button.innerText === "0 k0")
      ?.click();
    expect(picked).toEqual([{ kind: "node", id: 0 }]);
    details.show(graph, { kind: "edge", index: 0 });
    expect(fake(details.element).innerText).toContain("Nothing orders them: a hazard.");
    details.show(graph, { kind: "barrier", index: 0 });
    expect(fake(details.element).innerText).toContain("needless: after 1 k1, before 2 k2");
    details.show(graph, null);
    expect(fake(details.element).innerText).toBe("");
  });
  test("a node goes to its row of the timeline", () => {
    const gone: string[] = [];
    const details = new PickDetails({ pick: () => undefined, go: (table, row) => gone.push(`${table}.${row}`) });
    const placed = answer([node(0, { place: { table: "dispatches", row: 9, track: "q1.work", start_ns: 5 } })], []);
    const graph = new DependencyGraph(placed);
    details.show(graph, { kind: "node", id: 0 });
    fake(details.element)
      .all("button")
      .find((button) => button.innerText === "Timeline")
      ?.click();
    expect(gone).toEqual(["dispatches.9"]);
    expect(graph.at("dispatches", 9)).toBe(0);
    expect(graph.at("transfers", 9)).toBeUndefined();
  });
});

test("the neighbours of the picked element are known", () => {
  const graph = new DependencyGraph(DIAMOND);
  expect([...graph.near({ kind: "node", id: 1 }).nodes].sort()).toEqual([0, 1, 3]);
  expect([...graph.near({ kind: "edge", index: 3 }).nodes].sort()).toEqual([2, 3]);
  expect([...graph.near({ kind: "barrier", index: 1 }).nodes].sort()).toEqual([1, 2]);
});

test("no key has two meanings, and the browser keeps its own keys", () => {
  const keys = GRAPH_KEYS.flatMap(({ keys }) => keys);
  expect(new Set(keys).size).toBe(keys.length);
  const held = { ctrlKey: true, metaKey: false, altKey: false };
  expect(graphAction({ key: "ArrowLeft", ...held })).toBeUndefined();
  expect(graphAction({ key: "N", ctrlKey: false, metaKey: false, altKey: false })).toBe("next-finding");
});

test("the server is asked for a part by its range, its first node or a row", async () => {
  const answers = new FakeAnswers(new Map([["t/0/dependencies", json(DIAMOND)]]));
  const source = new DataSource(answers);
  await source.allDependencies(0, {});
  await source.allDependencies(0, { from_ns: 1.5, to_ns: 9.2, first: 40 });
  await source.allDependencies(0, { around: "dispatches.7" });
  expect(answers.asked).toEqual(["t/0/dependencies?", "t/0/dependencies?from=1&to=10&first=40", "t/0/dependencies?around=dispatches.7"]);
});
