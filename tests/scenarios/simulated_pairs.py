"""Counts how often `gapscope diff` calls equal programs changed, and how often it sees a planted change.

`python simulated_pairs.py TRACE.gapscope... [--pairs N]` takes the dispatches of the traces, adds to the time of each noise of its kernel, drawn at
random in blocks of neighbours, disturbs the runs, and prints a table: for each disturbance the share of equal pairs of which any
figure is called changed, and of the pairs that are called slower or faster with all work made longer by 3, 10 and 50 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
from test_scenarios import GAPSCOPE
from trace_writer import TraceWriter

DISPATCHES = 1200
BLOCK = 20
"""The number of neighbouring dispatches that are drawn together."""
FACTORS = (1.0, 1.03, 1.1, 1.5)

Series = list[tuple[str, float]]
Times = Callable[[random.Random, Series], tuple[Series, float | None]]
"""Disturbs a run of dispatches (kernel, microseconds), and says for which share of the time tasks waited for a processor."""


def read_series(folder: str) -> Series:
    """Returns the dispatches of a trace in order of time."""
    kernels = pq.read_table(Path(folder) / "kernels.parquet").to_pylist()
    names = {kernel["id"]: kernel["name"] for kernel in kernels}
    rows = pq.read_table(Path(folder) / "dispatches.parquet").to_pylist()
    timed = [row for row in rows if row["start_ns"] is not None and row["duration_ns"]]
    timed.sort(key=lambda row: row["start_ns"])
    return [(names.get(row["kernel"], "unknown"), row["duration_ns"] / 1000) for row in timed]


def quiet(noise: random.Random, run: Series) -> tuple[Series, float | None]:
    """Runs differ by 1 % as a whole, as those of a quiet GPU do."""
    factor = math.exp(noise.gauss(0, 0.01))
    return [(kernel, us * factor) for kernel, us in run], None


def drift(noise: random.Random, run: Series) -> tuple[Series, float | None]:
    """The times of a run rise or fall by up to 4 % from its start to its end, as a GPU warms up."""
    slope = noise.uniform(-0.02, 0.02)
    run, _ = quiet(noise, run)
    return [(kernel, us * (1 + slope * (2 * at / len(run) - 1))) for at, (kernel, us) in enumerate(run)], None


def bursts(noise: random.Random, run: Series) -> tuple[Series, float | None]:
    """Up to three bursts of other work in a run make 20 to 100 dispatches take 1.5 to 4 times as long."""
    run, _ = quiet(noise, run)
    for _ in range(noise.randint(0, 3)):
        start, times = noise.randrange(len(run)), noise.uniform(1.5, 4)
        for at in range(start, min(start + noise.randint(20, 100), len(run))):
            run[at] = (run[at][0], run[at][1] * times)
    return run, None


def pressure(noise: random.Random, run: Series) -> tuple[Series, float | None]:
    """A software GPU whose processors other programs use for stretches of a tenth of the run, of which each takes up to two
    thirds of the processors."""
    busy, slowed, waited, total = noise.random(), [], 0.0, 0.0
    taken = 0.0
    for at, (kernel, us) in enumerate(run):
        if at % (len(run) // 10) == 0:
            taken = noise.uniform(0.1, 0.67) if noise.random() < busy else 0.0
        longer = us / (1 - taken)
        waited, total = waited + longer - us, total + longer
        slowed.append((kernel, longer))
    run, _ = quiet(noise, slowed)
    # What the kernel counts as waiting is less exact than the time that was lost.
    return run, min(1.0, waited / total * noise.uniform(0.8, 2))


CONDITIONS: list[tuple[str, Times]] = [
    ("quiet", quiet),
    ("drift", drift),
    ("bursts", bursts),
    ("pressure", pressure),
]


def noise_of(series: Series) -> dict[str, list[float]]:
    """Returns for each kernel how much the logarithms of the times of successive dispatches of about one size differ from their mean."""
    by_kernel: dict[str, list[float]] = {}
    last: dict[str, float] = {}
    for kernel, us in series:
        apart = math.log(us / last[kernel]) if kernel in last else 1.0
        if abs(apart) < math.log(2):
            by_kernel.setdefault(kernel, []).append(apart / math.sqrt(2))
        last[kernel] = us
    return by_kernel


def drawn(noise: random.Random, series: Series) -> Series:
    """Returns the program's dispatches in their order, each with noise of its kernel: neighbours keep their neighbours' noise."""
    by_kernel = noise_of(series)
    left: dict[str, list[float]] = {}
    run = []
    for at in range(DISPATCHES):
        kernel, us = series[at % len(series)]
        own = by_kernel.get(kernel, [0.0])
        if not left.get(kernel):
            start = noise.randrange(len(own))
            left[kernel] = [own[(start + place) % len(own)] for place in range(BLOCK)]
        run.append((kernel, us * math.exp(left[kernel].pop(0))))
    return run


def write(run: Series, waited: float | None, factor: float, folder: Path) -> None:
    """Writes a run whose work takes `factor` times as long."""
    trace, start = TraceWriter(), 1000.0
    if waited is not None:
        trace.devices[0]["name"] = "llvmpipe (LLVM 15.0.6, 256 bits)"
    for kernel, us in run:
        trace.launch(kernel, start - 8, start, us * factor, call_duration=3)
        start += us * factor + 2
    if waited is not None:
        name = "machine stalled on cpu (some)"
        trace.counter(name, "percent", [(0, 100 * waited)], None, "/proc/pressure/cpu", lasts=start)
    trace.write(folder)


def verdict(series: Series, times: Times, factor: float, seed: int) -> str:
    """Returns the verdict on a pair of runs."""
    noise = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        sides = [Path(folder) / f"{name}.gapscope" for name in ("before", "after")]
        for side, side_factor in zip(sides, (1.0, factor)):
            run, waited = times(noise, drawn(noise, series))
            write(run, waited, side_factor, side)
        command = [GAPSCOPE, "diff", "--json", *map(str, sides)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return str(json.loads(done.stdout)["verdict"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--pairs", type=int, default=100)
    options = parser.parse_args()
    all_series = [read_series(trace) for trace in options.traces]
    print("| disturbance |" + "".join(f" × {factor} |" for factor in FACTORS))
    print("|---|" + "---|" * len(FACTORS), flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, times in CONDITIONS:
            cells = []
            for factor in FACTORS:
                pairs = options.pairs if factor == 1.0 else max(1, options.pairs // 3)
                asked = [
                    pool.submit(verdict, all_series[seed % len(all_series)], times, factor, 1000 * seed + 7)
                    for seed in range(pairs)
                ]
                told = [future.result() for future in asked]
                wrong = "faster" if factor > 1 else None
                right = sum(one != "no-difference" if factor == 1.0 else one in ("slower", "faster") for one in told)
                cells.append(f"{right} of {pairs}" + (f" ({told.count(wrong)} faster)" if wrong in told else ""))
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
