"""Hardware counters against what programs are known to do, what sampling costs, and what is refused."""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from statistics import median

from ..processes import Failed, program
from ..registry import part
from .relay import NSYS

ACTIVE, READ, WRITTEN = "SMs active", "DRAM read", "DRAM written"
TENSOR, CLOCK = "tensor pipe active", "SM clock, sampled"
# Dense bf16 operations of a multiprocessor of Hopper in a clock: 989.4 TFLOP/s / (132 × 1.83 GHz), by its data sheet.
FLOP_A_CLOCK = 4096


class Samples:
    """The samples of a trace's counters."""

    def __init__(self, trace):
        names = dict(zip(*trace.columns("counters", "id", "name")))
        self.sources = dict(zip(*trace.columns("counters", "name", "source")))
        self.of = {}
        columns = trace.columns("counter_values", "counter", "start_ns", "duration_ns", "value")
        for counter, start, duration, value in zip(*columns):
            if duration is not None:
                self.of.setdefault(names[counter], []).append((start, start + duration, float(value)))
        for rows in self.of.values():
            rows.sort()

    def need(self, name):
        if name not in self.of:
            raise Failed(f"the trace has no samples of {name}")
        return self.of[name]

    def integral(self, name, start_ns, end_ns):
        """Of value × seconds, and how many seconds of the time are sampled."""
        total, seconds = 0.0, 0.0
        for begin, end, value in self.need(name):
            overlap = (min(end, end_ns) - max(begin, start_ns)) / 1e9
            if overlap > 0:
                total += value * overlap
                seconds += overlap
        return total, seconds


def lost(trace):
    return [f"{loss['count']}: {loss['reason']}" for loss in trace.losses if "hardware counters" in loss["what"]]


def unmeasured(trace):
    return [f"{one['what']}: {one['reason']}" for one in trace.manifest.get("unmeasured", []) if "hardware" in one["what"]]


def span(facts, name):
    region = facts["regions"][name]
    return region["begin_ns"], region["end_ns"]


@part("counters", limit_s=80, needs=["torch"])
def counters(bench, result):
    """Bytes of copies, operations of products, and starts of kernels by hardware counters."""
    ran, trace, _ = bench.recorded(program("counted", "clone", "steps", "matmul"), "--no-report", "--counters")
    facts, said = ran.facts, unmeasured(trace)
    result.measure("not sampled", said)
    samples = Samples(trace)
    result.measure("sources", samples.sources.get(ACTIVE))
    result.measure("samples lost", lost(trace))
    for name, wanted in {READ: facts["bytes"], WRITTEN: facts["bytes"]}.items():
        start, end = span(facts, "clone")
        got, seconds = samples.integral(name, start, end)
        result.measure(f"{name}: bytes of the copies", got / wanted)
        result.at_least(f"{name}: share of the time that is sampled", seconds * 1e9 / (end - start), 0.99)
        result.within(f"{name}: bytes of the copies", got, wanted, 0.01)
    starts(result, trace, samples, *span(facts, "steps"))
    products(bench, result)


def starts(result, trace, samples, begin_ns, end_ns):
    """Where activity steps up, from the sample in which it does, against the record of the kernel."""
    rows = samples.need(ACTIVE)
    kernels = [start for start in trace.columns("dispatches", "start_ns")[0] if start and begin_ns <= start < end_ns]
    apart = []
    for start in sorted(kernels):
        at = next((i for i, (begin, end, _) in enumerate(rows) if begin <= start < end), None)
        if at is None or not 0 < at < len(rows) - 1:
            continue
        (_, _, before), (begin, end, value), (_, _, after) = rows[at - 1 : at + 2]
        # Idle before, full behind: what is between is where it began. One that begins within a µs of an edge may be in the next.
        if before < 1 and after > 90:
            apart.append((end - value / after * (end - begin) - start) / 1e3)
    result.at_least("kernels with a clear start", len(apart), 10)
    if apart:
        result.measure("step of SM activity after the kernel's start, us: least, median, most",
                       [round(f(apart), 2) for f in (min, median, max)])  # fmt: skip
        result.at_most("median of that, us, without its sign", abs(median(apart)), 3)


def products(bench, result):
    names = ",".join([ACTIVE, TENSOR, CLOCK, READ])
    ran, trace, _ = bench.recorded(program("counted", "matmul"), "--no-report", f"--counters={names}")
    facts, samples = ran.facts, Samples(trace)
    result.measure("samples lost, products", lost(trace))
    start, end = span(facts, "matmul")
    # Cycles of each sample: its share of those that its clock had.
    clocks = {begin: value for begin, _, value in samples.need(CLOCK)}
    cycles, sampled = 0.0, 0.0
    for begin, until, value in samples.need(TENSOR):
        overlap = (min(until, end) - max(begin, start)) / 1e9
        if overlap > 0 and begin in clocks:
            cycles += value / 100 * clocks[begin] * overlap
            sampled += overlap
    wanted = facts["flop"] / (FLOP_A_CLOCK * facts["multiprocessors"])
    result.measure("tensor-active cycles of the FLOPs'", cycles / wanted)
    result.measure("share of the time that is sampled, products", sampled * 1e9 / (end - start))
    if "H100" in facts["device"] or "H200" in facts["device"]:
        result.within("tensor-active cycles of the FLOPs'", cycles, wanted, 0.02)


@part("counters-cost", limit_s=200, needs=["torch"])
def cost(bench, result):
    """Tiny launches, GPT steps and decoding: alone, recorded, and with counters, in turn; last, once, under nsys with its metrics."""
    ways = {
        "none": lambda command: bench.alone(command),
        "gapscope": lambda command: bench.recorded(command, "--no-report")[0],
        "--counters": lambda command: bench.recorded(command, "--no-report", "--counters")[0],
        "--counters=wide": lambda command: bench.recorded(command, "--no-report", "--counters=wide")[0],
    }
    command = program("counter_costs")
    times, longest = {name: [] for name in ways}, 0.0
    while bench.left() > longest * 1.15:
        before = bench.left()
        for name, way in ways.items():
            watch = Watch()
            try:
                times[name].append(way(command).facts["microseconds"])
            finally:
                watch.stop()
            if watch.cores:
                result.measure(f"{name}: sampler's cores, MiB", [round(watch.cores, 2), round(watch.peak_kib / 1024)])
        longest = max(longest, before - bench.left())
    nsys = next((str(path) for path in sorted(Path("/").glob(NSYS[1:]), reverse=True)), shutil.which("nsys"))
    if nsys:
        options = ["profile", "-t", "cuda", "-s", "none", "--gpu-metrics-devices=all", "-f", "true"]
        try:
            ran = bench.alone([nsys, *options, "-o", bench.file(".nsys"), *command])
            times["nsys, metrics"] = [ran.facts["microseconds"]]
        except Failed as failure:
            result.note(f"nsys has no figures: {failure}")
    else:
        result.note("nsys is not on this machine")
    result.note(f"{len(times['none'])} rounds; us a launch, step and token: median and least of all repetitions")
    for what in ("tiny", "gpt", "decode"):
        of = {name: [us for one in runs for us in one[what]] for name, runs in times.items()}
        for name, all_of_it in of.items():
            here = {"median": median(all_of_it), "least": min(all_of_it)}
            result.measure(f"{what} {name}", {
                **here, "of none": [round(here["median"] / median(of["none"]), 4), round(here["least"] / min(of["none"]), 4)]
            })  # fmt: skip
        beside = [round(how(of["--counters"]) / how(of["gapscope"]), 4) for how in (median, min)]
        result.measure(f"{what}: --counters / gapscope, median and least", beside)


class Watch:
    """The sampler's process, seen from outside: how many cores it takes while it runs, and the most memory."""

    def __init__(self):
        self.cores, self.peak_kib, self.over = 0.0, 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        first, tick = {}, os.sysconf("SC_CLK_TCK")
        while not self.over.wait(0.25):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    if b"sample-counters" not in (folder / "cmdline").read_bytes():
                        continue
                    fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                    worked = (int(fields[11]) + int(fields[12])) / tick
                    status = (folder / "status").read_text()
                except OSError:
                    continue
                now = time.monotonic()
                began, before = first.setdefault(folder.name, (now, worked))
                if now - began > 2:
                    self.cores = (worked - before) / (now - began)
                peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "x 0 kB")
                self.peak_kib = max(self.peak_kib, int(peak.split()[1]))

    def stop(self):
        self.over.set()
        self.thread.join()


@part("counters-refused", limit_s=50, needs=["torch"])
def refused(bench, result):
    """What a second sampler on a GPU is told, and that NVML stands in; what the driver says of permissions."""
    parameters = Path("/proc/driver/nvidia/params")
    said = parameters.read_text() if parameters.exists() else ""
    line = next((line for line in said.splitlines() if "RmProfilingAdminOnly" in line), "not said")
    result.measure("driver", f"{line}; user {os.getuid()}")
    outer = [bench.gapscope, "record", "-q", "--counters", "--no-report", "-o", str(bench.file(".gapscope")), "--"]
    variables = {name: value for name, value in {**os.environ, **bench.environment}.items() if value is not None}
    first = subprocess.Popen([*outer, *program("burn", 25)], env=variables,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        time.sleep(12)
        ran, trace, _ = bench.recorded(program("burn", 3), "--no-report", "--counters")
        second = unmeasured(trace)
        result.measure("the second is told", second)
        result.check("the second is told that the counters are in use", any("dcgmi" in one for one in second), second)
        samples = Samples(trace)
        stands_in = {name: len(rows) for name, rows in samples.of.items()}
        result.measure("samples that NVML gave", stands_in)
        for name in (ACTIVE, TENSOR):
            if name in samples.of:
                begin = ran.facts["begin_ns"]
                total, seconds = samples.integral(name, begin, ran.facts["end_ns"])
                result.measure(f"{name}, mean by {samples.sources[name]}", total / seconds if seconds else None)
    finally:
        first.terminate()
        first.wait()
