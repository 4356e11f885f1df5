"""Planted causes of idle time: the report must name what was planted."""

from ..processes import Failed, program
from ..registry import part
from ..workbench import BY_CALLBACKS

# The verdict, and the cause that most of the idle time must have; None: not looked at.
PLANTED = {
    "host-sleep": (("host-bound",), ("host-late",)),
    "host-python": (("host-bound",), ("host-late",)),
    "synchronise": (("sync-bound", "host-bound", "mixed"), ("after-host-wait",)),
    "poll": (("sync-bound", "host-bound", "device-bound", "mixed"), ("after-host-wait", "submit-call", "launch-latency")),
    "allocate": (("host-bound",), ("host-allocate",)),
    "two-streams": (None, ("queue-handover", "other-queue")),
    "copies": (("transfer-bound",), None),
    "graph": (None, ("within-command-buffer", "graph-launch", "launch-latency")),
    "busy": (("device-bound",), None),
}
# A handover takes about a microsecond, 400 times; the host is late once, before them, and longer than all of them.
BY_COUNT = {"two-streams"}
# Programs that wait, or put events on streams: recorded again, with both told by callbacks.
WAITING = ["synchronise", "poll", "two-streams", "graph"]


@part("causes", limit_s=200)
def causes(bench, result):
    """Planted causes of idle time, one program each: verdict, main cause, counts by construction; both ways to tell waits."""
    for way in PLANTED:
        trace = tried(bench, result, way)
        if way in WAITING and trace:
            other = tried(bench, result, way, "by callbacks, ", BY_CALLBACKS)
            if other:
                same(result, way, trace, other)
    # Graphs as wholes.
    ran, trace, _ = bench.recorded(program("planted", "graph"), "--mode", "command-buffer")
    region = ran.told["regions"]["graph"]
    span = trace.within(region["begin_ns"], region["end_ns"])
    result.equal("graphs as wholes: graph launches", span.command_buffers, ran.told["graph_launches"])
    result.equal("graphs as wholes: kernels with times", span.kernels, 0)


def tried(bench, result, way, prefix="", environment=None):
    try:
        return one(bench, result, way, prefix, environment or {})
    except Failed as failure:
        result.check(prefix + way, False, str(failure))
        return None


def same(result, way, records, callbacks):
    """What is only known through waits and events is the same, however they are told."""

    def known(trace):
        return sum(on is not None for on in trace.columns("dependencies", "waits_for")[0])

    def awaited(trace):
        calls, queues = trace.columns("host_calls", "call", "queue")
        return sum(call == "wait-queue-idle" and queue is not None for call, queue in zip(calls, queues))

    result.equal(f"{way}: waits of streams, by callbacks and by records", known(callbacks), known(records))
    result.equal(f"{way}: waits for known streams, by callbacks and by records", awaited(callbacks), awaited(records))
    errors = [trace.report()["clock_error_ns"] for trace in (records, callbacks)]
    result.measure(f"{way}: clock error ns, by records and by callbacks", errors)


def one(bench, result, planted, prefix, environment):
    verdicts, wanted = PLANTED[planted]
    ran, trace, _ = bench.recorded(program("planted", planted), **environment)
    way, told = prefix + planted, ran.told
    report = trace.report()
    region = told["regions"][planted]
    span = trace.within(region["begin_ns"], region["end_ns"])
    result.equal(f"{way}: result", told["result"], 4)
    result.equal(f"{way}: nothing lost", trace.losses, [])
    if "kernels" in told:
        result.equal(f"{way}: kernels", span.kernels, told["kernels"])
    if "transfers" in told:
        result.equal(f"{way}: transfers", span.transfers, told["transfers"])
        result.equal(f"{way}: bytes", span.transfer_bytes, told["transfer_bytes"])
    if "asked" in told:
        calls, counts, starts = trace.columns("host_calls", "call", "count", "start_ns")
        polls = [count for call, count, start in zip(calls, counts, starts)
                 if call == "poll-event" and region["begin_ns"] <= start < region["end_ns"]]  # fmt: skip
        result.equal(f"{way}: polls", sum(polls), told["asked"])
        result.measure(f"{way}: rows of polls", len(polls))
        late = sum(gap["total_ns"] for gap in report["gaps"] if gap["cause"] == "host-late")
        all_idle = sum(gap["total_ns"] for gap in report["gaps"])
        result.at_most(f"{way}: share of idle time with a late host", late / all_idle if all_idle else 0, 0.3)
    if "graph_launches" in told:
        result.equal(f"{way}: graph launches", span.command_buffers, told["graph_launches"])
        result.equal(f"{way}: kernels in graphs", span.kernels, told["graph_kernels"])
    order = "count" if planted in BY_COUNT else "total_ns"
    gaps = sorted(report["gaps"], key=lambda gap: -gap[order])
    result.measure(way, [report["verdict"]] + [f"{gap['cause']} {gap['total_ns'] / 1e6:.2f} ms" for gap in gaps[:3]])
    if verdicts:
        result.one_of(f"{way}: verdict", report["verdict"], verdicts)
    if wanted:
        result.one_of(f"{way}: main cause", gaps[0]["cause"] if gaps else None, wanted)
    if "idle_ns" in told:
        of_cause = sum(gap["total_ns"] for gap in gaps if gap["cause"] in wanted)
        result.within(f"{way}: idle time of the cause", of_cause, told["idle_ns"], 0.1)
    return trace
