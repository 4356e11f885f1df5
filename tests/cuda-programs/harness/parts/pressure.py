"""Clocks, their limits and temperature beside a burn, against nvidia-smi; and what asking for them costs."""

import shutil
import subprocess
import threading
import time
from pathlib import Path

from ..processes import Failed, program
from ..registry import part

SECONDS = 10
QUERY = "uuid,clocks.sm,temperature.gpu,clocks_event_reasons.active"
# Between two answers of gapscope's (0.3 s on an H100, whose driver takes over 2 ms for all), and as much again for how long the
# driver keeps a value.
APART_NS = 600_000_000
# NVML's bits and the counters that stand for them.
LIMITS = {
    0x1: "clock lowered: GPU idle",
    0x2: "clock limited: setting",
    0x4: "clock limited: power cap",
    0x8: "clock limited: hardware slowdown",
    0x10: "clock limited: sync boost",
    0x20: "clock limited: software thermal slowdown",
    0x40: "clock limited: hardware thermal slowdown",
    0x80: "clock limited: hardware power brake",
    0x100: "clock limited: display clock setting",
}
# The counter's error against nvidia-smi: clocks change by steps of 15 MHz, temperatures by one degree.
MHZ, CELSIUS = 31, 2
AGREE = 0.9


class Beside:
    """Does something again and again, until it is told to end."""

    def __init__(self, each, pause_s):
        self._each, self._pause_s, self._over = each, pause_s, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.wait(self._pause_s):
            self._each()


def ask_smi(answers):
    """What nvidia-smi says of each GPU, with the times between which it was asked."""
    before = time.monotonic_ns()
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    after = time.monotonic_ns()
    for line in done.stdout.splitlines() if done.returncode == 0 else []:
        uuid, clock, celsius, reasons = [cell.strip() for cell in line.split(",")]
        uuid = uuid.removeprefix("GPU-").replace("-", "")
        answers.append((before, after, uuid, float(clock), float(celsius), int(reasons, 16)))


def thread_cpu(found):
    """CPU time in nanoseconds of the thread that asks, by its name, and since when it was seen."""
    for comm in Path("/proc").glob("[0-9]*/task/[0-9]*/comm"):
        try:
            if comm.read_text().strip() == "conditions" and "gapscope" in (comm.parents[2] / "comm").read_text():
                cpu_ns = int((comm.parent / "schedstat").read_text().split()[0])
                first = found.get("first", (time.monotonic_ns(), cpu_ns))
                found.update(first=first, last=(time.monotonic_ns(), cpu_ns))
        except (OSError, ValueError):
            continue


def counters(trace, device):
    """Values of the counters of a device by name: (from when, value), the next one ends each."""
    names = {}
    for key, name, owner in zip(*trace.columns("counters", "id", "name", "device")):
        if owner == device:
            names[key] = name
    values = {name: [] for name in names.values()}
    for key, start, value in zip(*trace.columns("counter_values", "counter", "start_ns", "value")):
        if key in names:
            values[names[key]].append((start, float(value)))
    return {name: sorted(pairs) for name, pairs in values.items()}


def held(pairs, start_ns, end_ns):
    """The values that held at some time between two times."""
    ends = [start for start, _ in pairs[1:]] + [float("inf")]
    return [value for (start, value), end in zip(pairs, ends) if start <= end_ns and end >= start_ns]


@part("pressure", limit_s=150)
def pressure(bench, result):
    """Clocks, their limits and temperature during a burn of 10 s are those of nvidia-smi; the thread that asks costs little."""
    answers, cpu = [], {}
    if shutil.which("nvidia-smi"):
        ask_smi(answers)
    if not answers:
        raise Failed(f"NVIDIA's nvidia-smi does not answer: nvidia-smi --query-gpu={QUERY} --format=csv")
    answers.clear()
    with Beside(lambda: ask_smi(answers), 0.3), Beside(lambda: thread_cpu(cpu), 0.5):
        ran, trace, _ = bench.recorded(program("burn", SECONDS))
    compare(trace, ran.facts, answers, result)
    if cpu.get("first") and cpu["last"][0] > cpu["first"][0]:
        share = (cpu["last"][1] - cpu["first"][1]) / (cpu["last"][0] - cpu["first"][0])
        result.measure("CPU of the thread that asks, % of a core", 100 * share)
        result.at_most("CPU of the thread that asks, share of a core", share, 0.02)
    else:
        result.unchecked("CPU of the thread that asks", "its thread was not found")
    report = trace.report()
    result.measure("notes", [note["sentence"] for note in report.get("conditions", [])])
    result.measure("not measured", [f"{one['what']}: {one['reason']}" for one in report.get("unmeasured", [])])


def compare(trace, facts, answers, result):
    device = trace.manifest["devices"][0]
    values = counters(trace, device["id"])
    for name in ("SM clock", "memory clock", "GPU temperature", "GPU power", "device memory in use by all"):
        result.check(f"there is a counter: {name}", bool(values.get(name)), sorted(values))
    within = [one for one in answers if one[0] >= facts["begin_ns"] and one[1] <= facts["end_ns"] and one[2] == device["uuid"]]
    result.at_least("nvidia-smi answered during the burn", len(within), 5)
    agree = {"SM clock": 0, "GPU temperature": 0, "limits": 0}
    for before, after, _, clock, celsius, reasons in within:
        times = (before - APART_NS, after + APART_NS)
        clocks = [value / 1e6 for value in held(values.get("SM clock", []), *times)]
        agree["SM clock"] += bool(clocks) and min(clocks) - MHZ <= clock <= max(clocks) + MHZ
        degrees = held(values.get("GPU temperature", []), *times)
        agree["GPU temperature"] += any(abs(celsius - one) <= CELSIUS for one in degrees)
        agree["limits"] += all(limit_agrees(values.get(name), bool(reasons & bit), times) for bit, name in LIMITS.items())
    for name, count in agree.items():
        result.at_least(f"{name}: share of nvidia-smi's answers that agree", count / max(len(within), 1), AGREE)
    result.measure("nvidia-smi", [f"{clock:.0f} MHz {celsius:.0f} C {reasons:#x}" for _, _, _, clock, celsius, reasons in within])
    result.measure("rows of counters", {name: len(pairs) for name, pairs in values.items()})


def limit_agrees(pairs, is_on, times):
    """A limit without a counter never was on."""
    seen = held(pairs, *times) if pairs else [0.0]
    return (100.0 if is_on else 0.0) in seen
