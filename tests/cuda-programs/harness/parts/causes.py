"""Planted causes of idle time: the report must name what was planted."""

from collections import Counter

from ..processes import Failed, program
from ..registry import part

# The verdict, and the cause that most of the idle time must have; None: not looked at.
PLANTED = {
    "host-sleep": (("host-bound",), ("host-late",)),
    "host-python": (("host-bound",), ("host-late",)),
    # Its pauses are about as long as the clock's error, within which the verdict may be unknown.
    "synchronise": (("sync-bound", "host-bound", "mixed", "unknown"), ("after-host-wait",)),
    "poll": (
        ("sync-bound", "host-bound", "device-bound", "latency-bound", "mixed"),
        ("after-host-wait", "submit-call", "launch-latency"),
    ),
    "allocate": (("host-bound",), ("host-allocate",)),
    "two-streams": (None, ("queue-handover", "other-queue")),
    "copies": (("transfer-bound",), None),
    "graph": (None, ("within-command-buffer", "graph-launch", "launch-latency")),
    "busy": (("device-bound",), None),
    "small-kernels": (("latency-bound",), None),
    # Its kernels are of one block, so that its busy time counts as latency.
    "slow-graph-launch": (("host-bound", "latency-bound", "mixed"), ("submit-call",)),
    # Before CUPTI 13.1 it is not recorded when host functions and host nodes ran.
    "host-function": (("host-bound", "latency-bound", "mixed", "unknown"), ("host-function",)),
    "host-node": (("host-bound", "latency-bound", "mixed", "unknown"), ("host-function", "unknown")),
    "wait-value": (("sync-bound", "host-bound", "latency-bound", "mixed"), ("external-wait",)),
    "event-order": (None, None),
    "default-stream-order": (None, None),
    "other-thread": (("sync-bound", "host-bound", "latency-bound", "mixed"), ("after-host-wait",)),
    "idle-polls": (("host-bound",), ("host-late",)),
    "slow-polls": (("sync-bound", "host-bound", "device-bound", "latency-bound", "mixed"), ("after-host-wait",)),
    "streams": (None, None),
}
# A handover takes about a microsecond, 400 times; the host is late once, before them, and longer than all of them.
BY_COUNT = {"two-streams"}


@part("causes", limit_s=400)
def causes(bench, result):
    """Planted causes of idle time, one program each: verdict, main cause, counts by construction."""
    for way in PLANTED:
        try:
            one(bench, result, way)
        except Failed as failure:
            result.check(way, False, str(failure))
    # Graphs as wholes.
    ran, trace, _ = bench.recorded(program("planted", "graph"), "--mode", "command-buffer")
    region = ran.facts["regions"]["graph"]
    span = trace.within(region["begin_ns"], region["end_ns"])
    result.equal("graphs as wholes: graph launches", span.command_buffers, ran.facts["graph_launches"])
    result.equal("graphs as wholes: kernels with times", span.kernels, 0)


def one(bench, result, way):
    verdicts, wanted = PLANTED[way]
    ran, trace, _ = bench.recorded(program("planted", way))
    facts, report = ran.facts, trace.report()
    region = facts["regions"][way]
    span = trace.within(region["begin_ns"], region["end_ns"])
    result.equal(f"{way}: result", facts["result"], 4)
    result.equal(f"{way}: nothing lost", trace.lost_work, [])
    if "kernels" in facts:
        result.equal(f"{way}: kernels", span.kernels, facts["kernels"])
    if "transfers" in facts:
        result.equal(f"{way}: transfers", span.transfers, facts["transfers"])
        result.equal(f"{way}: bytes", span.transfer_bytes, facts["transfer_bytes"])
    if "stream_waits" in facts:
        known = sum(on is not None for on in trace.columns("dependencies", "waits_for")[0])
        result.equal(f"{way}: waits of streams for known work", known, facts["stream_waits"])
    if "asked" in facts:
        calls, counts, starts = trace.columns("host_calls", "call", "count", "start_ns")
        polls = [count for call, count, start in zip(calls, counts, starts)
                 if call == "poll-event" and region["begin_ns"] <= start < region["end_ns"]]  # fmt: skip
        result.equal(f"{way}: polls", sum(polls), facts["asked"])
        result.measure(f"{way}: rows of polls", len(polls))
        # Each row has polls of one outcome.
        found = rows_of(trace, region, "host_calls", "call", "poll-event", "result")
        result.equal(f"{way}: outcomes of polls", sorted(set(found) - {600}), [0])
        if wanted == ("host-late",):
            result.measure(f"{way}: rows of successful polls", sum(code == 0 for code in found))
        else:
            late = sum(gap["total_ns"] for gap in report["gaps"] if gap["cause"] == "host-late")
            all_idle = sum(gap["total_ns"] for gap in report["gaps"])
            result.at_most(f"{way}: share of idle time with a late host", late / all_idle if all_idle else 0, 0.3)
    if "graph_launches" in facts:
        result.equal(f"{way}: graph launches", span.command_buffers, facts["graph_launches"])
        result.equal(f"{way}: kernels in graphs", span.kernels, facts["graph_kernels"])
    for fact, kind in (("host_functions", "host-function"), ("wait_values", "wait-value")):
        if fact in facts:
            found = rows_of(trace, region, "submissions", "kind", kind, "duration_ns")
            result.equal(f"{way}: submissions of kind {kind}", len(found), facts[fact])
    if "host_nodes" in facts:
        found = rows_of(trace, region, "command_buffers", "timing", "measured", "host_functions")
        result.equal(f"{way}: host nodes of each graph", sorted(set(found), key=str), [facts["host_nodes"]])
    if "host_functions" in facts or "host_nodes" in facts:
        # CUPTI before 13.1 does not time them.
        timed = rows_of(trace, region, "host_calls", "call", "host-function", "duration_ns")
        result.measure(f"{way}: host functions with times", len(timed))
        result.measure(f"{way}: milliseconds in host functions", sum(timed) / 1e6)
    if "latency_at_most_ns" in facts:
        worst = [one["submit_to_start_idle"]["max_ns"] for one in report["launch_latency"]]
        result.measure(f"{way}: launch latency, most, ns", worst)
        result.at_most(f"{way}: launch latency ns", max((ns for ns in worst if ns), default=None),
                       facts["latency_at_most_ns"])  # fmt: skip
    if "stream_kinds" in facts:
        result.equal(f"{way}: kinds of streams", kinds_of_streams(trace, region), facts["stream_kinds"])
        result.measure(f"{way}: context, stream, kind of each queue",
                       [[queue["family"], queue["index"], queue.get("kind")] for queue in trace.manifest["queues"]])  # fmt: skip
    order = "count" if way in BY_COUNT else "total_ns"
    gaps = sorted(report["gaps"], key=lambda gap: -gap[order])
    result.measure(f"{way}: clock error ns", report["clock_error_ns"])
    result.measure(way, [report["verdict"]] + [f"{gap['cause']} {gap['total_ns'] / 1e6:.2f} ms" for gap in gaps[:3]])
    if verdicts:
        result.one_of(f"{way}: verdict", report["verdict"], verdicts)
    if wanted:
        result.one_of(f"{way}: main cause", gaps[0]["cause"] if gaps else None, wanted)
    if "idle_ns" in facts:
        of_cause = sum(gap["total_ns"] for gap in gaps if gap["cause"] in wanted)
        result.within(f"{way}: idle time of the cause", of_cause, facts["idle_ns"], 0.1)
    if wanted and "least_idle_ns" in facts:
        of_cause = sum(gap["total_ns"] for gap in gaps if gap["cause"] in wanted)
        result.at_least(f"{way}: idle time of the cause", of_cause, 0.9 * facts["least_idle_ns"])
    if "calls_ns" in facts:
        result.measure(f"{way}: milliseconds in launch calls, by the program's clock", facts["calls_ns"] / 1e6)


def rows_of(trace, region, table, column, value, wanted):
    """A column of the rows that began in the region and have this value in another column."""
    starts, values, found = trace.columns(table, "start_ns", column, wanted)
    inside = [start is not None and region["begin_ns"] <= start < region["end_ns"] for start in starts]
    return [one for at, one in enumerate(found) if inside[at] and values[at] == value]


def kinds_of_streams(trace, region):
    """By the number of kernels on a stream: its kind, as the trace says."""
    queues, starts = trace.columns("dispatches", "queue", "start_ns")
    counts = Counter(on for on, start in zip(queues, starts)
                     if start is not None and region["begin_ns"] <= start < region["end_ns"])  # fmt: skip
    kinds = {queue["id"]: queue.get("kind") for queue in trace.manifest["queues"]}
    # As JSON has it.
    return {str(counts[queue]): kinds.get(queue) for queue in sorted(counts, key=counts.get)}
