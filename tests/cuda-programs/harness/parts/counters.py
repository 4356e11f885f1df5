"""Hardware counters against what programs are known to do, what sampling costs, and what is refused."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from statistics import median, quantiles

from ..processes import Failed, program
from ..registry import part
from ..trace import traces_under
from .relay import Runner, alone, found_nsys

ACTIVE, READ, WRITTEN = "SMs active", "DRAM read", "DRAM written"
PCIE_READ, PCIE_WRITTEN = "PCIe read", "PCIe written"
TENSOR, CLOCK = "tensor pipe active", "SM clock, sampled"
# Bytes of data that a packet of PCIe may have.
PAYLOADS = (128, 256, 512)
# Dense bf16 operations of a multiprocessor of Hopper in a clock: 989.4 TFLOP/s / (132 × 1.83 GHz), by its data sheet.
FLOP_A_CLOCK = 4096


class Samples:
    """The samples of a trace's counters, or of those of one device: counters of several have the same names."""

    def __init__(self, trace, device=None):
        rows = zip(*trace.columns("counters", "id", "name", "source", "device"))
        rows = [row for row in rows if device in (None, row[3])]
        names = {key: name for key, name, _, _ in rows}
        self.sources = {name: source for _, name, source, _ in rows}
        self.of = {}
        columns = trace.columns("counter_values", "counter", "start_ns", "duration_ns", "value")
        for counter, start, duration, value in zip(*columns):
            if duration is not None and counter in names:
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
    transfers(bench, result)


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


def transfers(bench, result):
    """PCIe's counters have the packets' headers besides: of a transfer to the GPU 12 bytes each, and 16 of each request for one; from it 16."""
    ran, trace, _ = bench.recorded(program("counted", "upload", "download"), "--no-report", f"--counters={PCIE_READ},{PCIE_WRITTEN}")
    facts, samples = ran.facts, Samples(trace)
    result.measure("samples lost, transfers", lost(trace))
    result.measure("not sampled, transfers", unmeasured(trace))
    known, payload = facts["transferred_bytes"], None
    for region, there, back, header in (("upload", PCIE_READ, PCIE_WRITTEN, 12), ("download", PCIE_WRITTEN, PCIE_READ, 16)):
        start, end = span(facts, region)
        got, seconds = samples.integral(there, start, end)
        result.measure(f"{region}: {there}, {back}, of the bytes", [got / known, samples.integral(back, start, end)[0] / known])
        result.at_least(f"{region}: share of the time that is sampled", seconds * 1e9 / (end - start), 0.99)
        # Which of PCIe's sizes of packets is used the first way tells; the others differ by more than 1 %.
        payload = payload or min(PAYLOADS, key=lambda size: abs(known * (1 + header / size) - got))
        result.within(f"{region}: {there}, with headers of {payload} bytes each", got, known * (1 + header / payload), 0.01)


# What is timed at once: how many of it.
PIECES = {"tiny": 1000, "graph": 1, "decode": 20}
# A sampler's start, and how long the program then works beside it.
SECONDS_TO_START, SECONDS_OF_WORK = 2.5, 1.5
# Tiny launches are the host's work, whose speed changes from piece to piece: of those pieces the least are compared.
QUANTILES = {"tiny": 0.1, "graph": 0.5, "decode": 0.5}
# Beside nothing pieces may take this share longer or shorter; where they differ more, a cost cannot be told.
MAX_NOISE = 0.02


@part("counters-cost", limit_s=300, needs=["torch"])
def cost(bench, result):
    """Tiny launches, a GPT's step as a graph and decoding in one process, while a sampler beside it comes and goes; that of nsys too."""
    ways = {"--counters": gapscope_beside("--counters"), "--counters=wide": gapscope_beside("--counters=wide"), "nothing": idle}
    if nsys := found_nsys(result):
        ways["nsys --gpu-metrics-devices"] = nsys_beside(nsys)
    runner = Runner(bench, "program", alone, ["launch_costs"])
    try:
        runner.answer(120)
        for what, count in PIECES.items():
            runner.work(what, count)
        ratios, longest, rounds = {}, 0.0, 0
        while ways and bench.left() > longest * 1.15 + 5:
            before = bench.left()
            for name, way in list(ways.items()):
                watch = Watch()
                try:
                    beside = round_beside(bench, runner, way)
                except Failed as failure:
                    result.check(name, False, str(failure))
                    del ways[name]
                    continue
                finally:
                    watch.stop()
                if watch.cores:
                    result.measure(f"{name}: sampler's cores, MiB", [round(watch.cores, 2), round(watch.peak_kib / 1024)])
                for what, ratio in beside.items():
                    ratios.setdefault((what, name), []).append(ratio)
            longest, rounds = max(longest, before - bench.left()), rounds + 1
    finally:
        runner.kill()
    result.note(f"{rounds} rounds; a ratio is of pieces beside the sampler to those before and after, at {QUANTILES} of them; median and quartiles of rounds")
    for (what, name), each in ratios.items():
        if len(each) < 3:
            continue
        low, middle, high = quantiles(each, n=4, method="inclusive")
        row = {"ratio": round(middle, 4), "lower": round(low, 4), "upper": round(high, 4)}
        result.measure(f"{what}, {name}", row)
        if name == "--counters":
            # What nothing beside it costs is what cannot be told.
            base = ratios.get((what, "nothing"), [])
            noise = max((abs(ratio - 1) for ratio in quantiles(base, n=4, method="inclusive")), default=1) if len(base) > 2 else 1
            if noise > MAX_NOISE:
                result.unchecked(f"{what}: cost of --counters", f"beside nothing it differs by {noise:.1%}")
            else:
                result.at_most(f"{what}: cost of --counters", row["ratio"] - 1, 0.005 + noise)


def round_beside(bench, runner, way):
    """How many times as long each piece takes beside a sampler as before and after it."""
    before = pieces(runner)
    process, check = way(bench, SECONDS_TO_START + SECONDS_OF_WORK + 0.5)
    try:
        time.sleep(SECONDS_TO_START)
        # The clock of the samples.
        begin = time.monotonic_ns()
        during = pieces(runner)
        end = time.monotonic_ns()
        process.wait(bench.left())
    except subprocess.TimeoutExpired:
        raise Failed("it did not end") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    check(begin, end)
    after = pieces(runner)
    return {what: 2 * during[what] / (before[what] + after[what]) for what in PIECES}


def pieces(runner):
    """Nanoseconds of a piece of each kind: a quantile of many, done in turn."""
    times, until = {what: [] for what in PIECES}, time.monotonic() + SECONDS_OF_WORK
    while time.monotonic() < until:
        for what, count in PIECES.items():
            times[what].append(runner.work(what, count))
    return {what: sorted(each)[int(len(each) * QUANTILES[what])] for what, each in times.items()}


# A way starts an idle program for some seconds, with a sampler, and gives a function that says whether it sampled from a time to another.


def idle(bench, seconds):
    return started(bench, program("idle", seconds)), lambda _begin, _end: None


def gapscope_beside(option):
    def way(bench, seconds):
        path = bench.file(".gapscope")
        process = started(bench, [bench.gapscope, "record", "-q", "--no-report", option, "-o", path, "--", *program("idle", seconds)])

        def check(begin, end):
            found = traces_under(bench.gapscope, path)
            if not found:
                raise Failed("no trace was written")
            samples = Samples(found[0])
            if ACTIVE not in samples.of:
                raise Failed(f"it sampled nothing: {unmeasured(found[0])}")
            rows = samples.need(ACTIVE)
            if rows[0][0] > begin or rows[-1][1] < end:
                raise Failed(f"it sampled from {(rows[0][0] - begin) / 1e9:.1f} s after the work's begin to {(rows[-1][1] - end) / 1e9:.1f} s after its end")

        return process, check

    return way


def nsys_beside(nsys):
    def way(bench, seconds):
        folder = bench.file("")
        folder.mkdir()
        words = [nsys, "profile", "-t", "none", "-s", "none", "--cpuctxsw=none", "--gpu-metrics-devices=all", "-o", folder / "nsys"]
        process = started(bench, [*words, *program("idle", seconds)])

        def check(_begin, _end):
            # When it sampled is not looked at. Where libraries are missing it does not turn its stream into a report.
            most = max((file.stat().st_size for file in folder.glob("nsys.*")), default=0)
            if most < 100_000:
                raise Failed(f"it wrote {most} bytes")

        return process, check

    return way


def started(bench, words):
    variables = {name: str(value) for name, value in {**os.environ, **bench.environment}.items() if value is not None}
    return subprocess.Popen([str(word) for word in words], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip


def samplers():
    """The ids of the processes that sample counters."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"sample-counters" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def worked_s(process):
    """Seconds of processors that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watch:
    """The sampler's process, seen from outside: how many cores it takes while it runs, and the most memory."""

    def __init__(self):
        self.cores, self.peak_kib, self.over = 0.0, 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        first = {}
        while not self.over.wait(0.25):
            for process in samplers():
                try:
                    worked = worked_s(process)
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                now = time.monotonic()
                began, before = first.setdefault(process, (now, worked))
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
    outer = [bench.gapscope, "record", "-q", "--counters", "--no-report", "-o", bench.file(".gapscope"), "--"]
    first = started(bench, [*outer, *program("burn", 25)])
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
