"""Programs of several ranks whose late rank is known by construction: what a report on their folder must say."""

from __future__ import annotations

import math
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


def with_untimed_kernels(late: float = 0) -> list[TraceWriter]:
    """Returns four ranks, of which the kernels of the third have no times. It is late by so much."""
    ranks = train(4, 100, lambda number, step: 5000 + (late if number == 2 else 0))
    for row in ranks[2].rows["dispatches"]:
        if row["queue"] == 1:
            row["start_ns"] = row["duration_ns"] = None
    return ranks


def with_shifted_clock() -> list[TraceWriter]:
    """Returns three ranks, of which the third's times are 700 us late although its clock's error is stated as 1 us."""
    ranks = train(3, 80, lambda number, step: 6000)
    for row in ranks[2].rows["dispatches"]:
        row["start_ns"] += 700_000
    return ranks


def with_slow_network(late_ends: float = 1500) -> list[TraceWriter]:
    """Returns four ranks that arrive together at each all-reduce, of which the third ends it later."""
    ranks, start, noise = [rank(number, 4) for number in range(4)], 1000.0, random.Random(4)
    for _ in range(80):
        for number, trace in enumerate(ranks):
            trace.launch("gemm", start, start + 10, 6000 + noise.gauss(0, 20))
            longer = late_ends if number == 2 else 0
            collective(trace, start + 10, start + 6100, 900 + longer + noise.gauss(0, 20))
        start += 6200 + 900 + late_ends + 100
    return ranks


def neighbours(
    size: int = 6,
    steps: int = 60,
    takes: Callable[[int, int], float] = lambda low, high: 200,
    seed: int = 6,
    torch: bool = False,
) -> list[TraceWriter]:
    """Returns ranks in a ring that exchange messages with one neighbour and then the other; `takes` says how long. PyTorch's traces have
    no calls that make communicators, and say the group with each message."""
    empty = [TraceWriter(uuids=[f"{number + 1:032x}"]) for number in range(size)]
    ranks = empty if torch else [rank(number, size) for number in range(size)]
    noise, start = random.Random(seed), 1000.0
    for _ in range(steps):
        for number, trace in enumerate(ranks):
            trace.launch("stencil", start, start + 10, 900)
        at = start + 1000
        for turn in (0, 1):
            for low in range(turn, size, 2):
                pair = (low, (low + 1) % size)
                duration = takes(*pair) * math.exp(noise.gauss(0, 0.05))
                for number, peer in (pair, pair[::-1]):
                    trace = ranks[number]
                    facts = f"NCCL communicator ID=77, Message size [bytes]=1048576, Peer rank={peer}"
                    if torch:
                        facts += f", Group size={size}, Rank={number}"
                    trace.range("ncclGroupStart", at - 30, 1, "NCCL", "")
                    trace.range("ncclSend", at - 28, 1, "NCCL", facts)
                    trace.range("ncclRecv", at - 26, 1, "NCCL", facts)
                    trace.range("ncclGroupEnd", at - 24, 8, "NCCL", "")
                    trace.launch(SEND_RECEIVE, at - 22, at, duration, 2)
            at += 1000
        start = at + 20
    return ranks


def subgroups(late: int | None = None) -> list[TraceWriter]:
    """Returns four ranks in two pairs that reduce inside of their pair, as PyTorch's trace tells it, and one pair has more to do."""
    noise, traces, starts = random.Random(12), [], [1000.0, 1000.0]
    for number in range(4):
        traces.append(TraceWriter(uuids=[f"{number + 1:032x}"]))
    for step in range(80):
        for pair in (0, 1):
            own = traces[2 * pair : 2 * pair + 2]
            arrivals = []
            for member, trace in enumerate(own):
                number = 2 * pair + member
                usual = 4000 + 3000 * pair + noise.gauss(0, 30) + (800 if number == late else 0)
                trace.launch("gemm", starts[pair], starts[pair] + 10, usual)
                arrivals.append(starts[pair] + 12 + usual)
            for member, (trace, arrival) in enumerate(zip(own, arrivals)):
                group = f"NCCL communicator ID={71 + pair}, Message size [bytes]=4194304, Collective name=allreduce"
                facts = f"{group}, Group size=2, Rank={member}, Process Group Ranks=[{2 * pair},{2 * pair + 1}], Seq={step}"
                call = starts[pair] + 100
                trace.range("ncclAllReduce", call - 1, 8, "NCCL", facts)
                trace.launch(ALL_REDUCE, call, arrival, max(arrivals) + 300 - arrival, 2)
            starts[pair] = max(arrivals) + 320
    return traces


def broadcasts(lost: int | None = None) -> list[TraceWriter]:
    """Returns four ranks that receive broadcasts in each step; the recording of one lacks one of them."""
    ranks, noise, start = [rank(number, 4) for number in range(4)], random.Random(13), 1000.0
    for step in range(80):
        for number, trace in enumerate(ranks):
            trace.launch("gemm", start, start + 10, 3000 + noise.gauss(0, 20))
            if number != lost or step != 20:
                collective(
                    trace, start + 20, start + 3100, 200, "ncclBroadcast", "ncclDevKernel_Broadcast_RING_LL"
                )
        start += 3400
    return ranks


def half_lost(of: int = 2) -> list[TraceWriter]:
    """Returns equal ranks, of which one has lost the rows of the second half of its work; their launches are there."""
    ranks = noisy(4, 100, 5)
    trace = ranks[of]
    starts = sorted(row["start_ns"] for row in trace.rows["dispatches"])
    middle = starts[len(starts) // 2]
    trace.rows["dispatches"] = [row for row in trace.rows["dispatches"] if row["start_ns"] < middle]
    return ranks


def rotating_stragglers(size: int = 8, steps: int = 120) -> list[TraceWriter]:
    """Returns ranks of which two others are late in each step."""
    noise = random.Random(9)
    late = [set(noise.sample(range(size), 2)) for _ in range(steps)]
    return train(size, steps, lambda number, step: 9500 if number in late[step] else 8000)


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
        says=(
            r"rank 2",
            r"launched 1\.20 times as many kernels",
            r"Do first: give rank 2 as little work as the other ranks\. Without its lateness each of the other ranks would wait at most",
        ),
    ),
    RanksScenario(
        "rank_with_a_slow_clock",
        "rank 2 is late, since heat holds its clock down",
        with_slow_clock,
        says=(r"rank 2", r"thermal|heat|clock", r"Do first: cool the GPU of rank 2"),
    ),
    RanksScenario(
        "rank_whose_host_is_late",
        "rank 2 is late, since its host submits 1.5 ms later",
        lambda: train(4, 100, lambda number, step: 8000, lambda number, step: 1500 if number == 2 else 0),
        says=(r"rank 2", r"host", r"Do first: find out why rank 2 is late"),
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
    RanksScenario(
        "two_late_ranks",
        "ranks 2 and 6 are late, each since it launches 1.2 times as many kernels",
        lambda: train(
            8, 80, lambda number, step: 9600 if number in (2, 6) else 8000, kernels=lambda n: 12 if n in (2, 6) else 10
        ),
        says=(
            r"rank 2 is late: it arrived later than the median rank at 80 of 80.*launched 1\.20 times as many kernels",
            r"rank 6 is late: it arrived later than the median rank at 80 of 80.*launched 1\.20 times as many kernels",
        ),
        never_says=(r"rank [013457] is late",),
    ),
    RanksScenario(
        "rotating_stragglers",
        "two ranks are late in each step, and each time others: nobody is",
        rotating_stragglers,
        never_says=BLAMED,
    ),
    RanksScenario(
        "rank_without_times",
        "the kernels of rank 2 have no times, and the equal ones of others do: bound by the device, and rank 2 does not idle",
        with_untimed_kernels,
        says=(r"DEVICE-BOUND",),
        never_says=(r"rank 2 is idle", *BLAMED),
    ),
    RanksScenario(
        "late_rank_without_times",
        "rank 2 is late, and its kernels have no times: nobody knows whether its GPU idled",
        lambda: with_untimed_kernels(1500),
        says=(r"rank 2 arrived last", r"nothing that was measured ran on its GPU"),
        never_says=(r"its GPU idled", r"rank 2 is idle"),
    ),
    RanksScenario(
        "rank_with_a_shifted_clock",
        "the times of a rank are 700 us late: no rank waited for a known time",
        with_shifted_clock,
        says=(r"clocks of the ranks differ by more than their stated error",),
        never_says=(r"some were not recorded, and no skew", *BLAMED),
    ),
    RanksScenario(
        "rank_with_a_slow_network",
        "all arrive together and rank 2 ends 1.5 ms later: its network",
        with_slow_network,
        says=(r"rank 2 ends collectives later", r"network"),
        never_says=BLAMED,
    ),
    RanksScenario(
        "ends_that_differ_by_little",
        "all arrive together and rank 2 ends 10 us later: nothing worth telling",
        lambda: with_slow_network(10),
        never_says=(r"network", *BLAMED),
    ),
    RanksScenario(
        "neighbours_of_a_slow_rank",
        "messages with rank 3 take twice as long: its network",
        lambda: neighbours(takes=lambda low, high: 400 if 3 in (low, high) else 200),
        says=(r"SendRecv with rank 3 takes", r"its network"),
        never_says=BLAMED,
    ),
    RanksScenario(
        "neighbours_of_a_slow_rank_in_pytorch",
        "the same in a trace of PyTorch, where each message says its group",
        lambda: neighbours(takes=lambda low, high: 400 if 3 in (low, high) else 200, torch=True),
        says=(r"SendRecv with rank 3 takes", r"its network"),
        never_says=(r"which collectives of the ranks are one", *BLAMED),
    ),
    RanksScenario(
        "a_slow_link",
        "messages between ranks 2 and 3 take twice as long: it is not known whose network is slow",
        lambda: neighbours(takes=lambda low, high: 400 if (low, high) == (2, 3) else 200),
        says=(r"SendRecv among ranks 2, 3 takes",),
        never_says=BLAMED,
    ),
    RanksScenario(
        "equal_neighbours",
        "noise alone: no link is slow",
        lambda: neighbours(seed=7),
        never_says=(r"slower", *BLAMED),
    ),
    RanksScenario(
        "two_groups",
        "collectives of two groups of ranks are matched inside of their groups: nobody is late",
        subgroups,
        never_says=(r"cannot be one collective", r"not known", *BLAMED),
    ),
    RanksScenario(
        "late_in_its_group",
        "rank 1 is late in its group of two",
        lambda: subgroups(1),
        says=(r"rank 1 arrived last at",),
        never_says=(r"rank [023] arrived last", r"Do first: (?!what the report)"),
    ),
    RanksScenario(
        "a_lost_broadcast",
        "a recording lacks a broadcast: those that rest on their order blame nobody",
        lambda: broadcasts(1),
        says=(r"rest on their order alone",),
        never_says=BLAMED,
    ),
    RanksScenario(
        "half_of_a_rank_lost",
        "half of the work of a rank is lost: no rank is blamed, and the report says what is lost",
        half_lost,
        says=(r"no counterpart|not known|no known times|lost",),
        never_says=BLAMED,
    ),
    RanksScenario(
        "equal_broadcasts",
        "broadcasts of equal ranks: nobody is late",
        broadcasts,
        never_says=(r"rest on their order alone", *BLAMED),
    ),
]
