"""What sampling costs the host's work, by many short comparisons: the speed of a shared machine changes by more than that."""

import os
import signal
import subprocess
import sys
import time
from statistics import median

from ..machine import cupti
from ..processes import Failed, program
from ..registry import part
from ..trace import traces_under
from .counters import SECONDS_TO_START, gapscope_beside, lost, samplers, worked_s
from .relay import Runner, alone

# Launches that are timed at once, about a millisecond, and for how long they are timed while something is on or off.
LAUNCHES, PHASE_S = 200, 0.05
# A cost is told when it is known to this to either side.
WIDTH = 0.005


@part("counters-tiny", limit_s=200, needs=["torch"])
def tiny(bench, result):
    """Tiny launches while the sampler, and while the hardware that samples, is off and on every 50 ms."""
    runner = Runner(bench, "program", alone, ["launch_costs"])
    try:
        runner.answer(120)
        runner.work("tiny", 1000)
        # The starts and the ends, of which the hardware's takes long.
        seconds = (bench.left() - 40) / 3
        tell(result, "the sampler's process", paused_sampler(bench, result, runner, seconds), 1.005)
        tell(result, "the hardware", hardware(result, runner, seconds), 1.005)
        tell(result, "nothing", nothing(runner, min(seconds, bench.left() - 5)), None)
    finally:
        runner.kill()


def tell(result, what, ratios, most):
    """The median of ratios with an interval that holds it in 95 of 100 cases, whatever their distribution."""
    if len(ratios) < 8:
        raise Failed(f"{what}: only {len(ratios)} comparisons")
    ratios, half = sorted(ratios), 0.98 * len(ratios) ** 0.5
    lower, upper = (ratios[min(max(round(len(ratios) / 2 + side * half), 0), len(ratios) - 1)] for side in (-1, 1))
    row = {"ratio": round(median(ratios), 4), "lower": round(lower, 4), "upper": round(upper, 4), "comparisons": len(ratios)}
    result.measure(what, row)
    if most is None:
        return
    if upper - lower > 2 * WIDTH:
        result.unchecked(f"tiny launches, {what}", f"the ratio is known to {(upper - lower) / 2:.2%} only")
    else:
        result.at_most(f"tiny launches, {what}: ratio", row["ratio"], most)


def alternating(runner, seconds, switch):
    """The launches' times while something is on, by the mean of those before and after it, while it is off."""
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until or len(times) % 2 == 0:
        switch(len(times) % 2 == 1)
        each, phase = [], time.monotonic() + PHASE_S
        while time.monotonic() < phase:
            each.append(runner.work("tiny", LAUNCHES))
        times.append(median(each))
    return [2 * times[at] / (times[at - 1] + times[at + 1]) for at in range(1, len(times) - 1, 2)]


def paused_sampler(bench, result, runner, seconds):
    """The work of its process, which is stopped half the time: what waited it does while it is on, so twice as much as else."""
    process, check = gapscope_beside("--counters")(bench, SECONDS_TO_START + seconds + 1)
    try:
        time.sleep(SECONDS_TO_START)
        found = samplers()
        if len(found) != 1:
            raise Failed(f"there are {len(found)} samplers")
        sampler = found[0]
        begin, worked = time.monotonic_ns(), worked_s(sampler)
        ratios = alternating(runner, seconds, lambda on: os.kill(sampler, signal.SIGCONT if on else signal.SIGSTOP))
        os.kill(sampler, signal.SIGCONT)
        end = time.monotonic_ns()
        result.measure("cores of the sampler that is stopped half the time", round((worked_s(sampler) - worked) * 1e9 / (end - begin), 3))
        process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    check(begin, end)
    path = max(bench.scratch.glob("*.gapscope"))
    result.measure("samples lost", [lost(trace) for trace in traces_under(bench.gapscope, path)])
    return ratios


def hardware(result, runner, seconds):
    """The GPU counts, and writes samples into the host's memory, which nobody reads."""
    words = program("hardware_samples", cupti())
    samples = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:

        def answer():
            line = other.stdout.readline().strip()
            if not line:
                raise Failed(f"hardware_samples ended with {other.wait()}")
            return line

        def switch(on):
            if not on and not samples:
                # It is not on yet.
                return samples.append(0)
            print("on" if on else "off", file=other.stdin, flush=True)
            line = answer()
            if not on:
                samples.append(int(line))

        try:
            answer()
            ratios = alternating(runner, seconds, switch)
        finally:
            other.kill()
    # Half of what comes in the time at 10 kHz.
    result.at_least("samples that the hardware took each time", min(samples[1:], default=0), PHASE_S * 10_000 / 2)
    return ratios


def nothing(runner, seconds):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as other:
        try:
            return alternating(runner, seconds, lambda on: other.send_signal(signal.SIGCONT if on else signal.SIGSTOP))
        finally:
            other.kill()
