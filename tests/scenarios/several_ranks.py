"""Programs of several ranks whose late rank is known by construction: what a report on their folder must say."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trace_writer import TraceWriter

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
SEND_RECEIVE = "ncclDevKernel_SendRecv"

BLAMED = (r"rank \d+ arrived last", r"rank \d+ (is|was) late", r"waits? for rank \d+")


@dataclass(frozen=True)
class RanksScenario:
    """A program of several ranks, with what its report must and must not say."""

    name: str
    text: str
    """The right answer in a phrase, for the documentation."""
    ranks: Callable[[], list[TraceWriter]]
    says: tuple[str, ...] = ()
    never_says: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Writes the folder of all ranks."""
        ranks = self.ranks()
        end = max(rank.last_ns for rank in ranks) / 1000 + 1000
        head = TraceWriter(devices=0)
        head.queues = []
        head.ranks = list(range(len(ranks)))
        head.write(folder, end)
        for number, rank in enumerate(ranks):
            rank.rank = (number, len(ranks))
            rank.write(folder / f"rank={number}", end)


def rank(number: int, size: int) -> TraceWriter:
    """Returns an empty rank that has joined a communicator."""
    trace = TraceWriter(uuids=[f"{number + 1:032x}"])
    trace.range(
        "ncclCommInitRankConfig",
        0,
        5,
        "NCCL",
        f"NCCL communicator ID=77, No. of ranks={size}, Rank={number}, CUDA device={number}",
    )
    return trace


def collective(
    trace: TraceWriter,
    call: float,
    start: float,
    duration: float,
    function: str = "ncclAllReduce",
    kernel: str = ALL_REDUCE,
    facts: str = "Message size [bytes]=4194304",
    queue: int = 2,
) -> None:
    """Adds a collective to a rank, with NCCL's range around its call."""
    trace.range(function, call - 1, 8, "NCCL", f"NCCL communicator ID=77, {facts}")
    trace.launch(kernel, call, start, duration, queue)


def train(
    size: int,
    steps: int,
    computes: Callable[[int, int], float],
    late: Callable[[int, int], float] = lambda number, step: 0,
    kernels: Callable[[int], int] = lambda number: 10,
    all_reduce: float = 300,
) -> list[TraceWriter]:
    """Returns ranks that compute and then reduce. `computes` and `late` take a rank and a step; they return how long
    the rank computes and how long after the others its host begins."""
    ranks, start = [rank(number, size) for number in range(size)], 1000.0
    for step in range(steps):
        arrivals = []
        for number, trace in enumerate(ranks):
            begins, count = start + late(number, step), kernels(number)
            duration = computes(number, step) / count
            for kernel in range(count):
                trace.launch("gemm", begins + kernel * 6, begins + 10 + kernel * duration, duration - 0.5)
            arrivals.append(begins + 10 + count * duration)
        end = max(arrivals) + all_reduce
        for number, (trace, arrival) in enumerate(zip(ranks, arrivals)):
            collective(trace, start + late(number, step) + 100, arrival + 1, end - arrival - 1)
        start = end + 20
    return ranks


def noisy(size: int, steps: int, seed: int, usual: float = 8000, spread: float = 80) -> list[TraceWriter]:
    """Returns equal ranks whose computing varies at random."""
    noise = random.Random(seed)
    return train(size, steps, lambda number, step: usual + noise.gauss(0, spread))


def with_slow_clock() -> list[TraceWriter]:
    """Returns four ranks, of which the third is hot and computes with slower clocks."""
    ranks = train(4, 100, lambda number, step: 9500 if number == 2 else 8000)
    for number, trace in enumerate(ranks):
        trace.counter("SM clock", "hertz", [(0, 1667e6 if number == 2 else 1980e6)])
    ranks[2].counter("clock limited: hardware thermal slowdown", "percent", [(0, 100)])
    ranks[2].counter("GPU temperature", "celsius", [(0, 92)])
    return ranks


def pipeline(stages: int = 4, batches: int = 8, steps: int = 20) -> list[TraceWriter]:
    """Returns the stages of a healthy pipeline: each receives early and waits for the stage before it."""
    ranks, forward, start = [rank(number, stages) for number in range(stages)], 2000, 1000
    for _ in range(steps):
        for number, trace in enumerate(ranks):
            for batch in range(batches):
                begins, call = start + (number + batch) * forward, start + batch * 30
                facts = "Message size [bytes]=1048576, Peer rank="
                if number > 0:
                    posted = start + 5 if batch == 0 else begins - 60
                    collective(
                        trace,
                        call,
                        posted,
                        begins - 10 - posted,
                        "ncclRecv",
                        SEND_RECEIVE,
                        f"{facts}{number - 1}",
                        1,
                    )
                trace.launch("forward", call + 12, begins, forward - 130)
                if number + 1 < stages:
                    collective(
                        trace,
                        call + 20,
                        begins + forward - 129,
                        60,
                        "ncclSend",
                        SEND_RECEIVE,
                        f"{facts}{number + 1}",
                        1,
                    )
        start += (batches + stages - 1) * forward
    return ranks


RANKS = [
    RanksScenario(
        "equal_ranks",
        "noise alone: nobody is late",
        lambda: noisy(4, 200, 3),
        never_says=BLAMED,
    ),
    RanksScenario(
        "eight_equal_ranks",
        "noise alone: nobody is late",
        lambda: noisy(8, 120, 5, 3000, 60),
        never_says=BLAMED,
    ),
    RanksScenario(
        "two_equal_ranks",
        "noise alone: nobody is late",
        lambda: noisy(2, 90, 8, 5000, 100),
        never_says=BLAMED,
    ),
    RanksScenario(
        "rank_with_more_work",
        "rank 2 is late, since it launches 1.2 times as many kernels",
        lambda: train(
            4, 100, lambda number, step: 9500 if number == 2 else 8000, kernels=lambda n: 12 if n == 2 else 10
        ),
        says=(r"rank 2", r"launched 1\.20 times as many kernels"),
    ),
    RanksScenario(
        "rank_with_a_slow_clock",
        "rank 2 is late, since heat holds its clock down",
        with_slow_clock,
        says=(r"rank 2", r"thermal|heat|clock"),
    ),
    RanksScenario(
        "rank_whose_host_is_late",
        "rank 2 is late, since its host submits 1.5 ms later",
        lambda: train(4, 100, lambda number, step: 8000, lambda number, step: 1500 if number == 2 else 0),
        says=(r"rank 2", r"host"),
    ),
    RanksScenario(
        "late_in_half_of_the_steps",
        "rank 1 is late in the second half",
        lambda: train(4, 120, lambda number, step: 7000 if number == 1 and step >= 60 else 5000),
        says=(r"rank 1",),
    ),
    RanksScenario(
        "healthy_pipeline",
        "a pipeline: no stage is late",
        pipeline,
        says=(r"pipeline",),
        never_says=(r"arrived last at",),
    ),
    RanksScenario(
        "short_pipeline",
        "a pipeline of three stages: no stage is late",
        lambda: pipeline(3, 5, 30),
        says=(r"pipeline",),
        never_says=(r"arrived last at",),
    ),
]
