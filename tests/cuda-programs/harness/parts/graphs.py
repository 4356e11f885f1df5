"""Graphs whose bodies the device runs as often as it decides, and what CUPTI itself says of them."""

import json
from collections import Counter, defaultdict

from .. import machine
from ..processes import program
from ..registry import part

GRAPH_LAUNCHES = {"plain": 1, "loop": 1, "nested": 1, "untaken": 1, "only_loop": 1, "pair": 2, "only_loops": 2}


@part("conditional")
def conditional(bench, result):
    """Loops and branches in graphs: every kernel of a body belongs to the launch of its graph."""
    command = program("conditional")
    alone = bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    facts = ran.facts
    result.equal("what could not be made", facts["failures"], {})
    result.equal("counts are those by construction", facts["counted"], facts["expected"])
    result.equal("counts are those of a run alone", facts["counted"], alone.facts["counted"])
    for name, region in facts["regions"].items():
        span = trace.within(region["begin_ns"], region["end_ns"])
        result.equal(f"{name}: kernels", span.kernels, region["kernels"])
        launches = facts["launches"] * GRAPH_LAUNCHES[name]
        if name.startswith("only_loop"):
            # Bodies of launches that are called ahead, with no other work between them, go to the last of these.
            result.check(f"{name}: graph launches", 0 < span.command_buffers <= launches, span.command_buffers, f"1 to {launches}")
        else:
            result.equal(f"{name}: graph launches", span.command_buffers, launches)
    latencies, without = trace.launched_before()
    result.equal("kernels without a launch call", without, 0)
    result.equal("kernels before their launch call", sum(ns < 0 for ns in latencies), 0)
    result.equal("nothing lost", trace.lost_work, [])
    report = trace.report()
    result.measure("verdict", report["verdict"])
    result.measure("idle by cause", {gap["cause"]: gap["total_ns"] for gap in report["gaps"]})


@part("graph-records")
def graph_records(bench, result):
    """What CUPTI alone says of conditional graphs: which numbers their records share with their launches."""
    library = machine.build("graph_records", bench.scratch, shared=True)
    for name, options in (("nodes", {}), ("nodes, device graphs", {"GRAPH_DEVICE": "1"}), ("whole", {"GRAPH_WHOLE": "1"})):
        path = bench.file(".jsonl")
        ran = bench.alone(
            program("conditional", 4),
            CUDA_INJECTION64_PATH=str(library),
            GRAPH_CUPTI=str(machine.cupti()),
            GRAPH_REPORT=str(path),
            **options,
        )
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        result.equal(f"{name}: what CUPTI refused", [line for line in lines if "failed" in line], [])
        launches = [line for line in lines if line.get("call", "").startswith("cuGraphLaunch") and "enters" in line]
        records = [line for line in lines if "record" in line]
        wanted = {line["correlation"] for line in launches}
        result.measure(f"{name}: graph launches", [[line["correlation"], line["exec_id"]] for line in launches][:12])
        for region, times in ran.facts["regions"].items():
            inside = [line for line in records if times["begin_ns"] <= line.get("start", 0) < times["end_ns"]]
            result.measure(f"{name}: {region}: records, by construction", [len(inside), times["kernels"]])
            joined = Counter((line["record"], line.get("name"), line.get("graph"), line.get("correlation") in wanted,
                              line.get("correlation") == 0) for line in inside)  # fmt: skip
            result.measure(f"{name}: {region}: record, kernel, graph, correlation is a launch's, is 0: times",
                           [[*key, count] for key, count in joined.items()])  # fmt: skip
            result.measure(f"{name}: {region}: first records, by start",
                           [[line["record"], line.get("name"), line.get("graph"), line.get("node"), line.get("correlation"),
                             line.get("stream"), line.get("launch_type"), line.get("channel"), line.get("by_device")]
                            for line in sorted(inside, key=lambda line: line["start"])][:20])  # fmt: skip
        callbacks = defaultdict(list)
        for line in lines:
            if "callback" in line:
                callbacks[line["callback"]].append({key: value for key, value in line.items() if key != "callback"})
        result.measure(f"{name}: callbacks", {number: len(lines) for number, lines in callbacks.items()})
        result.note(f"{name}: {path.name} has all lines; --keep keeps it")


@part("graph-nodes", needs=["torch"])
def graph_nodes(bench, result):
    """Graphs in every way in which they are made: each kernel has the ranges in which its node was made, inside the range of its launch."""
    command = program("graph_nodes")
    ran, trace, _ = bench.recorded(command)
    facts = ran.facts
    made = {int(blocks): what for blocks, what in facts["made"].items()}
    path = paths(trace)
    rows = zip(*trace.columns("dispatches", "groups_x", "label", "graph_node"))
    found = Counter((blocks, tuple(path(label)), node is not None) for blocks, label, node in rows if blocks in made)
    wrong, counts = [], Counter()
    for (blocks, labels, has_node), count in found.items():
        name, wanted = made[blocks]
        counts[name] += count
        if list(labels) != [f"launch of {name}", *wanted] or not has_node:
            wrong.append([blocks, labels, [f"launch of {name}", *wanted], has_node, count])
    result.equal("kernels with other labels than those of their nodes", wrong, [])
    nodes = Counter(name for name, _ in made.values())
    times = {name: facts["launches"] for name in nodes}
    wanted = {name: nodes[name] * times[name] for name in nodes}
    wanted["captured"] *= 2
    # The graph inside is there three times, and both bodies run in each round.
    wanted["inside"] = (3 * 3 + 2) * facts["launches"]
    wanted["loop"] = (2 + 2 * facts["loop"]) * facts["launches"]
    result.equal("kernels of each graph", dict(counts), wanted)
    result.equal("nothing lost", trace.lost_work, [])
    result.measure("rows of graph_nodes", len(trace.columns("graph_nodes", "node")[0]))


@part("graph-labels", limit_s=280, needs=["torch"])
def graph_labels(bench, result):
    """A decode of 32 layers, eager and in a graph: every kernel has the same module in both; what a capture and a replay cost."""
    command = program("graph_labels", 32, 10, 5)
    ways = {"recorded": (), "modules": ("--label-modules",), "both": ("--label-modules", "--label-ops")}
    times = {"alone": []}
    for _ in range(3):
        alone = bench.alone(command)
        times["alone"].append([alone.facts["capture_least_ms"], alone.facts["replay_least_us"]])
        for way, options in ways.items():
            ran, trace, _ = bench.recorded(command, *options)
            times.setdefault(way, []).append([ran.facts["capture_least_ms"], ran.facts["replay_least_us"]])
            result.equal(f"{way}: the result", ran.facts["result"], alone.facts["result"])
            result.check(f"{way}: the graph's result is the eager one", ran.facts["same"])
            if len(times[way]) > 1:
                continue
            regions = ran.facts["regions"]
            eager, graph = (kernels_by_label(trace, regions[name]) for name in ("eager", "graph"))
            result.equal(f"{way}: kernels by label, eager and in the graph", sorted((eager - graph) + (graph - eager)), [])
            result.measure(f"{way}: kernels, with different labels", [sum(graph.values()), len({labels for labels, _ in graph})])
            result.equal(f"{way}: nothing lost", trace.lost_work, [])
            rows = trace.report()["labels"]
            result.measure(f"{way}: labels with kernels in graphs", [[row["path"], row["in_graphs"]] for row in rows if row["in_graphs"]][:6])
        if bench.left() < 90:
            break
    result.measure("least ms of a capture, least us of a replay", times)


def paths(trace):
    """From a label to the texts from the outermost one on."""
    ids, texts, parents = trace.columns("labels", "id", "text", "parent")
    rows = {key: (text, parent) for key, text, parent in zip(ids, texts, parents)}

    def path(label):
        found = []
        while label is not None:
            text, label = rows[label]
            found.insert(0, text)
        return found

    return path


def kernels_by_label(trace, region):
    path = paths(trace)
    names = dict(zip(*trace.columns("kernels", "id", "name")))
    rows = zip(*trace.columns("dispatches", "start_ns", "kernel", "label"))
    return Counter(
        (" / ".join(path(label)), names[kernel])
        for start, kernel, label in rows
        if start is not None and region["begin_ns"] <= start < region["end_ns"]
    )
