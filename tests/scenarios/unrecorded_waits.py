"""Programs of several ranks whose hosts wait for communication by a flag in memory, which leaves no call in the trace."""

from __future__ import annotations

import random
from collections.abc import Callable

from joint_paths import JOINT_PATHS, JOINT_PROGRAMS, Ranks, joint_program
from several_ranks import RanksScenario
from trace_writer import TraceWriter


def reduced(
    computes: float,
    duration: float,
    more: Callable[[int, int], float] = lambda number, step: 0,
    late: Callable[[int, int], float] = lambda number, step: 0,
    size: int = 4,
    steps: int = 60,
) -> list[TraceWriter]:
    """Returns ranks whose hosts launch a step 0.25 ms after the all-reduce before it. Rank 0 runs a last kernel alone."""
    ranks, noise = Ranks(size), random.Random(31)
    for step in range(steps):
        for number in range(size):
            pause = 230 + noise.uniform(0, 40) if step else 0
            duration_here = computes + more(number, step) + noise.gauss(0, 10)
            ranks.compute(number, duration_here, 2, late=pause + late(number, step))
        end = ranks.reduce(duration)
        ranks.host = [end + 12] * size
    ranks.compute(0, 2000, 1, late=300)
    return ranks.traces


def in_turns(size: int, message: float, steps: int = 80) -> list[TraceWriter]:
    """Returns ranks in turns: each host launches after its message has come, for which its device spins in a receive."""
    ranks = Ranks(size)
    for step in range(steps):
        for number in range(size):
            ranks.compute(number, 2000, 2, late=100 if step or number else 0)
            after = (number + 1) % size
            end = ranks.send(number, after, message)
            ranks.computed[after] = max(ranks.computed[after], end)
            ranks.host[number] = ranks.host[after] = end + 10
    return ranks.traces


JOINT_PATHS += [
    RanksScenario(
        "one_slow_rank_without_recorded_waits",
        "the hosts wait for each all-reduce by a flag in memory, and three ranks for the fourth to compute: its device",
        lambda: reduced(1500, 200, lambda number, step: 3000 if number == 2 else 0),
        says=(
            r"DEVICE-BOUND +The critical path through all ranks runs through computing.* on rank 2",
            r"Do first: find out why rank 2",
        ),
    ),
    RanksScenario(
        "one_late_host_without_recorded_waits",
        "the same, and the host of rank 2 is late",
        lambda: reduced(2000, 200, late=lambda number, step: 5000 if number == 2 else 0),
        says=(r"HOST-BOUND +The critical path through all ranks waits for the host .* on rank 2",),
    ),
    RanksScenario(
        "changing_stragglers_without_recorded_waits",
        "the same, and another rank computes for longer in each step: computing",
        lambda: reduced(1500, 200, lambda number, step: 3000 if number == step * 7 % 4 else 0),
        says=(r"DEVICE-BOUND +The critical path",),
        never_says=(r"rank \d+ arrived last at", r"Do first: find out why rank"),
    ),
    RanksScenario(
        "slow_all_reduces_without_recorded_waits",
        "the same, and the all-reduces take longer than computing: communication",
        lambda: reduced(1500, 4000),
        says=(r"COMMUNICATION-BOUND +The critical path .*communication after the last arrivals",),
    ),
    RanksScenario(
        "ranks_in_turns_without_recorded_waits",
        "hosts of ranks in turns wait for each message by a flag in memory: computing",
        lambda: in_turns(4, 60),
        says=(r"DEVICE-BOUND +The critical path",),
    ),
]

JOINT_PROGRAMS += [
    joint_program(
        "one_slow_gpu_without_recorded_waits",
        "hosts wait for each all-reduce by a flag in memory, and three GPUs for the fourth to compute: the device",
        "device-bound",
        lambda: reduced(1500, 200, lambda number, step: 3000 if number == 2 else 0),
        r"on\s+GPU 2",
    ),
    joint_program(
        "slow_messages_without_recorded_waits",
        "GPUs in turns, whose hosts wait for each message by a flag in memory, and messages take longest: communication",
        "communication-bound",
        lambda: in_turns(2, 6000),
    ),
]
