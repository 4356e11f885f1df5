"""Clock truth: times of the device against stamps that the program itself took around each launch."""

import json
from array import array
from statistics import median

from .. import machine
from ..processes import Failed
from ..registry import part

LAUNCHES = 1_000_000
# Launches of the drift's measurement, each awaited, and how long a window of it is.
AWAITED, WINDOW_NS = 1_000_000, 100_000_000
# Launches without any wait between them, and the pause before each.
FREE, PAUSE_NS = 30_000, 1_000_000


@part("clock", limit_s=200)
def clock(bench, result):
    """10^6 launches: no kernel before its call or after its wait; trace at once; nothing lost."""
    launches = machine.build("launches", bench.scratch)
    stamped(bench, result, launches)
    ran, trace, ending = bench.recorded([launches, LAUNCHES, 1000], report=True)
    exit_to_report_ms = (ran.ended_ns - ending["ended_ns"]) / 1e6
    result.measure("exit to printed report ms", exit_to_report_ms)
    result.measure("bytes a launch on disk, unstamped", trace.bytes / (LAUNCHES + 1000))
    result.measure("peak KiB of the program", ending["peak_kib"])


def stamped(bench, result, launches):
    """Compares a recording with the stamps of the program."""
    stamps_path = bench.file(".stamps")
    ran, trace, ending = bench.recorded([launches, LAUNCHES, 1000, stamps_path], "--no-report")
    exit_to_trace_ms = (ran.ended_ns - ending["ended_ns"]) / 1e6
    result.at_most("ms from exit to a trace", exit_to_trace_ms, 1000)
    result.equal("nothing lost", trace.lost_work, [])
    region = ran.facts["regions"]["launches"]
    starts, durations = trace.columns("dispatches", "start_ns", "duration_ns")
    result.equal("kernels", len(starts), LAUNCHES + 1000)
    result.equal("kernels without a time", sum(start is None for start in starts), 0)
    timed = sorted((start, start + duration) for start, duration in zip(starts, durations)
                   if start is not None and duration is not None and start >= region["begin_ns"])  # fmt: skip
    result.equal("kernels in the region", len(timed), LAUNCHES)
    result.equal("kernels that end after the region", sum(end > region["end_ns"] for _, end in timed), 0)
    stamps = array("q")
    with open(stamps_path, "rb") as file:
        stamps.fromfile(file, 2 * LAUNCHES)
    # One stream: kernels start in the order of their launches.
    latencies = [start - stamps[2 * index] for index, (start, _) in enumerate(timed[:LAUNCHES])]
    late = [stamps[2 * index + 1] - end for index, (_, end) in enumerate(timed[:LAUNCHES])]
    if latencies:
        result.equal("kernels that start before the program called", sum(ns < 0 for ns in latencies), 0)
        result.equal("kernels that end after the program had waited", sum(ns < 0 for ns in late), 0)
        ordered = sorted(latencies)
        result.measure("call to start ns: least, median, p99",
                       [ordered[0], ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]])  # fmt: skip
        result.measure("end to return of the wait ns: least", min(late))
    own, without = trace.launched_before()
    result.equal("kernels without a launch call", without, 0)
    result.equal("kernels before the recorded launch call", sum(ns < 0 for ns in own), 0)
    error_ns = trace.report()["clock_error_ns"]
    result.measure("clock error ns", error_ns)
    result.check("the clock has a bound", error_ns is not None, error_ns)
    result.measure("bytes a launch on disk", trace.bytes / (LAUNCHES + 1000))
    result.measure("exit to trace ms", exit_to_trace_ms)


@part("clock-drift", limit_s=200)
def clock_drift(bench, result):
    """How CUPTI's map of device times moves: where each launch is awaited, and where nothing is."""
    launches = machine.build("launches", bench.scratch)
    for name, count, batch, pause_ns in (("awaited", AWAITED, 1, 0), ("free", FREE, FREE, PAUSE_NS)):
        stamps_path = bench.file(".stamps")
        ran, trace, _ = bench.recorded([launches, count, batch, stamps_path, pause_ns], "--no-report")
        region = ran.facts["regions"]["launches"]
        starts, durations = trace.columns("dispatches", "start_ns", "duration_ns")
        timed = sorted((start, start + duration) for start, duration in zip(starts, durations)
                       if start is not None and duration is not None and start >= region["begin_ns"])  # fmt: skip
        if not result.equal(f"{name}: kernels in the region", len(timed), count):
            continue
        stamps = array("q")
        with open(stamps_path, "rb") as file:
            stamps.fromfile(file, 2 * count)
        # A time that is early or late by e has e at most start - call, and at least end - return.
        windows = {}
        for index, (start, end) in enumerate(timed):
            window = windows.setdefault(start // WINDOW_NS, [start - stamps[2 * index], end - stamps[2 * index + 1]])
            window[0] = min(window[0], start - stamps[2 * index])
            window[1] = max(window[1], end - stamps[2 * index + 1])
        # The first and the last are not whole.
        ordered = [windows[at] for at in sorted(windows)][1:-1]
        most, least = [window[0] for window in ordered], [window[1] for window in ordered]
        seconds = WINDOW_NS / 1e9 * len(ordered)
        result.measure(f"{name}: seconds", round(seconds, 1))
        measure(result, f"{name}: call to start, least of each window", most)
        if batch == 1:
            measure(result, f"{name}: return to end, most of each window", least)
            widths = [upper - lower for upper, lower in zip(most, least)]
            result.measure(f"{name}: ns that are left open in a window: least, median, most",
                           [min(widths), median(widths), max(widths)])  # fmt: skip
        result.measure(f"{name}: clock error ns, as the trace says", trace.report()["clock_error_ns"])


def measure(result, name, values):
    """Values of windows that follow each other: range, the greatest step, and the slope between the halves' medians."""
    if len(values) < 4:
        result.unchecked(name, "too few windows")
        return
    half = len(values) // 2
    slope = (median(values[half:]) - median(values[:half])) / (half * WINDOW_NS / 1e9)
    steps = [abs(after - before) for before, after in zip(values, values[1:])]
    result.measure(f"{name}: ns least, median, most", [min(values), median(values), max(values)])
    result.measure(f"{name}: greatest step ns, ns a second between halves", [max(steps), round(slope, 1)])


# Launches that are awaited one by one, and launches without any wait.
EVIDENCE = {"awaited": (200_000, 1), "free": (600_000, 600_000)}
ROUNDS = 3


@part("clock-evidence", limit_s=200)
def clock_evidence(bench, result):
    """What else could bound the device's times: when a kernel was submitted, when its record was delivered; and the cost."""
    launches = machine.build("launches", bench.scratch)
    library = machine.build("clock_evidence", bench.scratch, shared=True)
    for name, (count, batch) in EVIDENCE.items():
        spans = {False: [], True: []}
        for number in range(ROUNDS):
            for latency in (False, True):
                stamps_path, path = bench.file(".stamps"), bench.file(".json")
                ran = bench.alone(
                    [launches, count, batch, stamps_path],
                    CUDA_INJECTION64_PATH=str(library),
                    EVIDENCE_CUPTI=str(machine.cupti()),
                    EVIDENCE_REPORT=str(path),
                    EVIDENCE_LATENCY="1" if latency else None,
                )
                found = json.loads(path.read_text()) if path.exists() else {"failed": "it was not loaded"}
                if found["failed"]:
                    raise Failed(f"the evidence: {found['failed']} ({found.get('status')})")
                spans[latency].append(ran.facts["milliseconds"] * 1e6 / count)
                if number == ROUNDS - 1:
                    evidence(result, f"{name}, latency timestamps {'on' if latency else 'off'}", found, count)
        for latency, of in spans.items():
            result.measure(f"{name}: ns a launch, latency timestamps {'on' if latency else 'off'}, each round",
                           [round(ns) for ns in of])  # fmt: skip


def evidence(result, name, found, count):
    result.equal(f"{name}: kernels", found["kernels"], count + 1000)
    result.measure(f"{name}: kernels with the time of submission", found["with_submission"])
    if found["with_submission"]:
        result.equal(f"{name}: kernels that start before their submission", found["start_before_submission"], 0)
        for key in ("submission_to_start", "queued_to_submission"):
            result.measure(f"{name}: {key} ns: least, median, p99, most", found[key])
    # The first and the last window are not whole.
    for at, what in ((1, "submission to start"), (2, "end to delivery of the record")):
        least = sorted(window[at] for window in found["windows"][1:-1] if window[at] >= 0)
        if least:
            result.measure(f"{name}: {what} ns, least of a window of 100 ms: least, median, most",
                           [least[0], least[len(least) // 2], least[-1]])  # fmt: skip
            result.measure(f"{name}: windows with it", len(least))
