"""Several ranks: a trace a rank, one clock, collectives with their skew, its cause, and their bandwidths."""

import json
import sys

from .. import machine
from ..processes import program
from ..registry import part
from ..trace import traces_under

STEPS = 30
# Rank 1 sleeps 30 ms in its late steps, so that rank 0's collective takes about as long.
LATE_NS = 20_000_000
# What CUDA's events and the kernels' own times may differ by, of work of some milliseconds.
TIMES_DIFFER = 0.1
BANDWIDTHS_DIFFER = 0.15


@part("ranks", limit_s=480, needs=["torch"], gpus=2)
def ranks(bench, result):
    """torchrun with two ranks or more: a late host, a late device, messages, bandwidths, groups; gloo on one GPU."""
    gpus = machine.gpu_count()
    result.measure("GPUs", gpus)
    world = 4 if gpus >= 4 else 2
    facts, trace, traces = scene(bench, result, world, "host-late", STEPS, alone=True)
    _own_traces(result, facts, traces)
    report = trace.report()
    said = {key: value for key, value in report.items() if "rank" in key or "collective" in key}
    result.check("the report speaks of ranks", any(said.values()), sorted(said))
    result.measure("backend", facts[0]["backend"])
    result.measure("NCCL", facts[0]["nccl"])
    if facts[0]["backend"] != "nccl":
        result.unchecked("collectives of NCCL", "there is one GPU: gloo")
        return
    _host_late(result, facts, traces, report)
    _compute_late(bench, result, world)
    _messages(bench, result, world)
    _bandwidth(bench, result, world)
    for name in ("groups", "split"):
        if world < 4:
            result.unchecked(f"{name}: two groups without skew inside", "there are fewer than four GPUs")
            continue
        _groups(bench, result, world, name)


def scene(bench, result, world, name, count, alone=False):
    """Runs one scene. What each rank says of itself, the whole recording, and the traces of the ranks by number."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
    command = [*torchrun, *program("ranks", name, count)[1:]]
    if alone:
        bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    lines = (line for line in ran.stdout.splitlines() if line.startswith("{"))
    facts = {one["rank"]: one for one in map(json.loads, lines)}
    result.equal(f"{name}: ranks that reported their end", sorted(facts), list(range(world)))
    traces = {one.path.name: one for one in traces_under(bench.gapscope, trace.folder) if one.path != trace.folder}
    result.equal(f"{name}: traces of ranks", sorted(traces), [f"rank={rank}" for rank in range(world)])
    return facts, trace, traces


def _own_traces(result, facts, traces):
    boots = {(one.manifest["host"]["boot_id"], one.manifest["host"]["time_namespace"]) for one in traces.values()}
    result.check("one boot and one time namespace", len(boots) == 1 and None not in next(iter(boots)), sorted(boots))
    for rank, own in facts.items():
        one = traces[f"rank={rank}"]
        result.equal(f"rank {rank}: nothing lost", one.lost_work, [])
        markers = one.markers()
        result.equal(f"rank {rank}: ranges of the steps", sum(markers[f"step {step}"] for step in range(STEPS)), STEPS)
        region = own["regions"]["steps"]
        span = one.within(region["begin_ns"], region["end_ns"])
        # One multiplication a step, and with NCCL one collective.
        wanted = STEPS * (2 if own["backend"] == "nccl" else 1)
        result.equal(f"rank {rank}: kernels in the region of its own clock", span.kernels, wanted)


def _kind(report, name):
    found = [kind for kind in report["collectives"] if kind["kind"] == name]
    return found[0] if found else {"matched_count": 0, "counts": [], "unassigned_count": None, "skew": {"total_ns": None}}


def _host_late(result, facts, traces, report):
    world = len(facts)
    one = traces["rank=0"]
    ids, names = one.columns("kernels", "id", "name")
    collectives = {key for key, name in zip(ids, names) if "nccl" in name.lower()}
    rows = zip(*one.columns("dispatches", "kernel", "start_ns", "duration_ns"))
    region = facts[0]["regions"]["steps"]
    long = [ns for kernel, start, ns in rows if kernel in collectives and start >= region["begin_ns"] and ns > LATE_NS]
    late = len(facts[0]["late_steps"])
    result.equal("host-late: collectives in which rank 0 waited for rank 1", len(long), late)
    kind = _kind(report, "AllReduce")
    result.equal("host-late: matched by communicator", kind["matched_count"], STEPS + 1)
    result.equal("host-late: communicators not known", (kind["unassigned_count"], report["not_matched_because"]), (0, None))
    sizes = [one["size"] for one in report["communicators"] if one["complete"]]
    result.check("host-late: a complete communicator of all ranks", world in sizes, report["communicators"])
    straggler = report["straggler"] or {}
    result.equal("host-late: the straggler", straggler.get("rank"), 1)
    cause = straggler.get("cause") or {}
    result.equal("host-late: its cause", cause.get("what"), "host-late")
    result.at_least("host-late: its host was late by, ns", cause.get("longer_ns"), late * LATE_NS)
    result.measure("host-late: sentences", report["sentences"])
    result.measure("host-late: skew, ns", kind["skew"])


def _compute_late(bench, result, world):
    facts, trace, _ = scene(bench, result, world, "compute-late", STEPS)
    report = trace.report()
    straggler = report["straggler"] or {}
    result.equal("compute-late: the straggler", straggler.get("rank"), 1)
    cause = straggler.get("cause") or {}
    result.equal("compute-late: its cause", cause.get("what"), "compute")
    others = [own["computed_ns"] for rank, own in facts.items() if rank != 1]
    longer = facts[1]["computed_ns"] - sum(others) / len(others)
    # Warm-up steps have their own lateness, of the same kind.
    result.within("compute-late: it computed for longer, ns", cause.get("longer_ns"), longer * (1 + 3 / STEPS), 2 * TIMES_DIFFER)
    result.measure("compute-late: sentences", report["sentences"])
    result.measure("compute-late: all that it did for longer", straggler.get("longer"))


def _messages(bench, result, world):
    facts, trace, _ = scene(bench, result, world, "messages", STEPS)
    report = trace.report()
    kind = _kind(report, "SendRecv")
    # Those from 0 to 1, and the exchanges of each pair of neighbours.
    result.equal("messages: matched", kind["matched_count"], STEPS + STEPS * (world // 2))
    result.equal("messages: other rank not known", kind["unassigned_count"], 0)
    sizes = sorted({row["bytes"] for row in report["bandwidth"] if row["kind"] == "SendRecv"})
    result.equal("messages: sizes", sizes, sorted(facts[0]["bytes"]))
    result.measure("messages: bandwidths", [row for row in report["bandwidth"] if row["kind"] == "SendRecv"])
    result.measure("messages: sentences", report["sentences"])


def _bandwidth(bench, result, world):
    facts, trace, _ = scene(bench, result, world, "bandwidth", STEPS)
    report = trace.report()
    factor = {
        "AllReduce": 2 * (world - 1) / world,
        "AllGather": (world - 1) / world,
        "ReduceScatter": (world - 1) / world,
        "Broadcast": 1,
    }
    own = facts[0]
    for kind, mean_ns in own["mean_ns"].items():
        size = own["message_bytes"] * (world if kind in ("AllGather", "ReduceScatter") else 1)
        rows = [row for row in report["bandwidth"] if row["kind"] == kind and row["bytes"] == size]
        got = rows[0]["bus_bytes_per_s"] / 1e9 if rows else None
        wanted = size / mean_ns * factor[kind]
        result.within(f"bandwidth: bus of {kind}, GB/s, by CUDA's events", got, wanted, BANDWIDTHS_DIFFER)
    result.measure("bandwidth", report["bandwidth"])


def _groups(bench, result, world, name):
    facts, trace, _ = scene(bench, result, world, name, STEPS)
    report = trace.report()
    kind = _kind(report, "AllReduce")
    found = {tuple(row["ranks"]): row for row in report["communicators"]}
    for group in facts[0]["groups"]:
        row = found.get(tuple(group), {})
        result.check(f"{name}: the communicator of {group}", row.get("complete"), list(found))
        # One more before the steps.
        result.at_least(f"{name}: collectives of {group}", row.get("matched_count"), STEPS + 1)
    result.equal(f"{name}: communicators not known", kind["unassigned_count"], 0)
    # Matched by order alone the second group would be late in each of them.
    planted = STEPS * facts[0]["late_ns"]
    in_groups = [row for row in report["longest"] if row["kind"] == "AllReduce" and row["communicator"] not in _world(report, world)]
    worst = max((row["skew_ns"] for row in in_groups), default=0)
    result.at_most(f"{name}: the greatest skew inside a group, ns", worst, facts[0]["late_ns"])
    result.measure(f"{name}: skew, ns, of {planted} between the groups", kind["skew"])
    result.measure(f"{name}: sentences", report["sentences"])


def _world(report, world):
    return {row["communicator"] for row in report["communicators"] if len(row["ranks"]) == world}
