"""More programs of several ranks: loaders, checkpoints, power, processors, and a rank that comes late once."""

from __future__ import annotations

import random

from several_ranks import BLAMED, RanksScenario, train
from trace_writer import TraceWriter

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def with_a_loader() -> list[TraceWriter]:
    """Returns four ranks, of which the second waits for its data loader for 2.5 ms in each step."""
    noise = random.Random(4)
    ranks = train(
        4, 80, lambda number, step: 6000 + noise.gauss(0, 20), lambda number, step: 2500 if number == 1 else 0
    )
    works = sorted(ranks[1].rows["dispatches"], key=lambda row: row["start_ns"])
    for before, after in zip(works, works[1:]):
        ended = (before["start_ns"] + before["duration_ns"]) / 1000
        if after["start_ns"] / 1000 - ended > 1500:
            ranks[1].range(LOADER, ended + 5, after["start_ns"] / 1000 - ended - 60, "operator")
    return ranks


def with_checkpoints() -> list[TraceWriter]:
    """Returns four ranks, of which the first saves a checkpoint of 30 ms after each ten steps."""
    noise = random.Random(4)
    return train(
        4,
        100,
        lambda number, step: 6000 + noise.gauss(0, 30),
        lambda number, step: 30_000 if number == 0 and step % 10 == 9 else 0,
    )


def late_once() -> list[TraceWriter]:
    """Returns four ranks, of which the last comes 2 s late to one step in the middle."""
    noise = random.Random(4)
    return train(
        4,
        100,
        lambda number, step: 6000 + noise.gauss(0, 30),
        lambda number, step: 2_000_000 if number == 3 and step == 50 else 0,
    )


def with_a_power_cap() -> list[TraceWriter]:
    """Returns four ranks, of which the last has less power."""
    ranks = train(4, 100, lambda number, step: 9600 if number == 3 else 8000)
    for number, trace in enumerate(ranks):
        trace.counter("SM clock", "hertz", [(0, 1650e6 if number == 3 else 1980e6)])
    ranks[3].counter("clock limited: power cap", "percent", [(0, 100)])
    return ranks


def short_of_processors() -> list[TraceWriter]:
    """Returns four ranks, of which the third's host submits late, and tasks wait for the processors of its machine."""
    ranks = train(4, 100, lambda number, step: 8000, lambda number, step: 1500 if number == 2 else 0)
    values = [(step * 100_000.0, 90.0) for step in range(11)]
    ranks[2].counter(
        "machine stalled on cpu (some)", "percent", values, None, "/proc/pressure/cpu", lasts=100_000
    )
    return ranks


OTHER_RANKS = [
    RanksScenario(
        "rank_that_loads_data",
        "rank 1 is late, since it waits for its data loader",
        with_a_loader,
        says=(r"Rank 1 arrived last at 80 of 80", r"it loaded data", r"Do first: load the data of rank 1 ahead"),
    ),
    RanksScenario(
        "rank_that_saves_checkpoints",
        "rank 0 is late at each tenth step, by more than chance",
        with_checkpoints,
        says=(r"Rank 0 arrived last at", r"Do first: find out why rank 0 is late"),
    ),
    RanksScenario(
        "rank_that_is_late_once",
        "rank 3 comes 2 s late to one collective: said, and no rank is late beyond chance otherwise",
        late_once,
        says=(r"Rank 3 came 2\.00 s after rank \d to one collective", r"of all skew"),
    ),
    RanksScenario(
        "rank_with_a_power_cap",
        "rank 3 is late, since a power limit holds its clock down",
        with_a_power_cap,
        says=(r"Rank 3 arrived last", r"because of its power limit", r"Do first: give the GPU of rank 3 the power"),
    ),
    RanksScenario(
        "rank_short_of_processors",
        "rank 2 is late, and tasks on its machine waited for a processor, which those of the others did not",
        short_of_processors,
        says=(r"Rank 2 arrived last", r"tasks on its machine waited for a processor for"),
        never_says=(r"the trace does not show why",),
    ),
    RanksScenario(
        "one_late_rank_of_sixteen",
        "rank 11 of 16 is late, since it computes for longer",
        lambda: train(16, 60, lambda number, step: 6600 if number == 11 else 6000),
        says=(r"Rank 11 arrived last at 60 of 60",),
        never_says=tuple(pattern.replace(r"\d+", r"(?!11)\d+") for pattern in BLAMED[:2]),
    ),
]
