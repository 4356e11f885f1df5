"""Programs of which several ranks or devices hold the others, and programs that one trace alone cannot judge. Their answers were written down
before they were asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from joint_paths import JOINT_PATHS, JOINT_PROGRAMS, on_machines, uncertain
from other_ranks import LOADER
from programs import Answer, Scenario, scenario
from questions import Question, alone
from several_ranks import ALL_REDUCE, BLAMED, RanksScenario, train
from trace_writer import TraceWriter

NOBODY = (*BLAMED, r"are late", r"take turns", r"Do first: find out why rank")


def late_hosts(
    size: int, late: Callable[[int, int], float], steps: int = 80, seed: int = 31, computes: float = 8000
) -> list[TraceWriter]:
    """Returns ranks whose hosts begin late by so much, by rank and step."""
    noise = random.Random(seed)
    return train(
        size,
        steps,
        lambda number, step: computes + noise.gauss(0, 20),
        lambda number, step: late(number, step) + noise.uniform(0, 20),
    )


def more_work(size: int, late: tuple[int, ...], steps: int = 60) -> list[TraceWriter]:
    """Returns ranks of which some launch 1.2 times as many kernels."""
    noise = random.Random(33)
    return train(
        size,
        steps,
        lambda number, step: (9600 if number in late else 8000) + noise.gauss(0, 20),
        kernels=lambda number: 12 if number in late else 10,
    )


def with_loaders(size: int, late: Callable[[int, int], float]) -> list[TraceWriter]:
    """Returns ranks that wait for their data loaders for as long as they are late."""
    ranks = late_hosts(size, late)
    for trace in ranks:
        works = sorted(trace.rows["dispatches"], key=lambda row: row["start_ns"])
        for before, after in zip(works, works[1:]):
            ended = (before["start_ns"] + before["duration_ns"]) / 1000
            if after["start_ns"] / 1000 - ended > 1200:
                trace.range(LOADER, ended + 5, after["start_ns"] / 1000 - ended - 60, "operator")
    return ranks


def cube(steps: int = 60) -> list[TraceWriter]:
    """Returns eight ranks that reduce in pairs along three axes after each step. The last one computes for twice as long."""
    ranks = [TraceWriter(uuids=[f"{number + 1:032x}"]) for number in range(8)]
    pairs = sorted({(axis, min(rank, rank ^ (1 << axis))) for axis in range(3) for rank in range(8)})
    names = {pair: f"NCCL communicator ID={number + 1}" for number, pair in enumerate(pairs)}
    for (axis, first), name in names.items():
        for place, rank in enumerate((first, first ^ (1 << axis))):
            joins = f"{name}, No. of ranks=2, Rank={place}, CUDA device={rank}"
            ranks[rank].range("ncclCommInitRankConfig", axis, 1, "NCCL", joins)
    free, host = [1000.0] * 8, 500.0
    for _ in range(steps):
        for rank, trace in enumerate(ranks):
            computes = 4000 if rank == 7 else 2000
            trace.launch("layer", host, free[rank] + 1, computes)
            free[rank] += computes + 1
        for axis, first in pairs:
            both, call = (first, first ^ (1 << axis)), host + 9 + axis * 10
            end = max(free[rank] for rank in both) + 100
            for rank in both:
                facts = f"{names[axis, first]}, Message size [bytes]=4194304"
                ranks[rank].range("ncclAllReduce", call - 1, 8, "NCCL", facts)
                ranks[rank].launch(ALL_REDUCE, call, free[rank] + 1, end - free[rank] - 1, 1)
                free[rank] = end
        host += 60
    return ranks


def allocating() -> list[TraceWriter]:
    """Returns four ranks, of which the third allocates memory for 3 ms before each step."""
    ranks = late_hosts(4, lambda number, step: 3000 if number == 2 else 0)
    trace = ranks[2]
    launches = sorted(row["start_ns"] / 1000 for row in trace.rows["submissions"])
    for before, after in zip(launches, launches[1:]):
        if after - before > 3500:
            trace.call("allocate-memory", after - 3000, 2990, "cudaMalloc")
    return ranks


def uneven_batches(steps: int = 60) -> list[TraceWriter]:
    """Returns two ranks that reduce the gradients of each layer beside the kernels of the next. Rank 1 has a batch of twice the size."""
    ranks = [TraceWriter(uuids=[f"{number + 1:032x}"]) for number in range(2)]
    name = "NCCL communicator ID=9"
    for number, trace in enumerate(ranks):
        joins = f"{name}, No. of ranks=2, Rank={number}, CUDA device={number}"
        trace.range("ncclCommInitRankConfig", 1, 1, "NCCL", joins)
    free, reduced, host = [1000.0, 1000.0], 0.0, 500.0
    for _ in range(steps):
        for _ in range(4):
            for number, trace in enumerate(ranks):
                computes = 2000 if number == 1 else 1000
                # The kernel of the next layer begins when a reduction that nobody is late for has ended.
                trace.launch("backward", host, free[number] + 150, computes, groups=1000 * (number + 1))
                free[number] += computes + 150
            starts = [max(free[number], reduced) + 1 for number in range(2)]
            reduced = max(starts) + 100
            for number, trace in enumerate(ranks):
                trace.range("ncclAllReduce", host + 9, 8, "NCCL", f"{name}, Message size [bytes]=4194304")
                trace.launch(ALL_REDUCE, host + 10, starts[number], reduced - starts[number], 2)
            host += 20
        # The optimiser waits for all gradients.
        free = [reduced + 1] * 2
    return ranks


JOINT_PATHS += [
    RanksScenario(
        "uneven_batches",
        "rank 1 has batches of twice the size, with reductions beside its kernels: more workgroups, and as many kernels",
        uneven_batches,
        says=(r"Do first: give rank 1 as little work", r"2\.\d+ times\s+as\s+many\s+workgroups"),
        never_says=(r"times\s+as\s+many\s+kernels",),
    ),
    RanksScenario(
        "a_cube_of_pairs",
        "rank 7 of a cube is late by 2 ms at each step, and costs that once, not once for each axis: at most 120 ms, 46 %",
        cube,
        says=(
            r"wait at most 1[12]\d ms \(4[5-7]\.\d % of\s+the\s+time\) less for rank 7",
            r"added\s+up\s+over\s+its\s+3\s+groups\s+of\s+ranks",
            r"its\s+GPU\s+worked\s+1[12]\d\s+ms\s+longer",
        ),
    ),
    RanksScenario(
        "one_rank_allocates",
        "rank 2 allocates before each step, which is the reason and what to mend",
        allocating,
        says=(r"Do first: on rank 2, allocate once and reuse",),
        never_says=(r"the trace does not show why",),
    ),
    RanksScenario(
        "two_late_alike_of_four",
        "ranks 1 and 2 of 4 are late alike: both are named, and one alone brings nothing",
        lambda: late_hosts(4, lambda number, step: 1500 if number in (1, 2) else 0),
        says=(
            r"Do first: find out why ranks 1 and 2 are late together",
            r"Without their lateness each of the other ranks would wait at most 1[12]\d ms",
            r"One of them alone would bring next to nothing",
        ),
        never_says=(r"find out why rank \d", r"rank [03] is late"),
    ),
    RanksScenario(
        "two_late_alike_of_eight",
        "ranks 2 and 5 of 8 are late alike: both are named, with the gain of both",
        lambda: late_hosts(8, lambda number, step: 2500 if number in (2, 5) else 0),
        says=(
            r"Ranks 2 and 5 are late together",
            r"Do first: find out why ranks 2 and 5 are late together",
            r"at most (19\d|20\d) ms",
        ),
        never_says=(r"find out why rank \d",),
    ),
    RanksScenario(
        "three_late_by_more_work_of_eight",
        "ranks 0, 3 and 6 of 8 launch more kernels: the three are named, with what to do",
        lambda: more_work(8, (0, 3, 6)),
        says=(r"Do first: give ranks 0, 3 and 6 as little work as the other ranks", r"are late together"),
    ),
    RanksScenario(
        "two_late_by_nearly_the_same",
        "rank 1 is late by 1.5 ms and rank 2 by 1.4 ms: both are named, and rank 1 alone brings 0.1 ms a step",
        lambda: late_hosts(4, lambda number, step: {1: 1500, 2: 1400}.get(number, 0)),
        says=(r"Do first: find out why ranks 1 and 2 are late", r"alone would bring (at most|next to nothing)"),
    ),
    RanksScenario(
        "two_late_by_very_different_times",
        "rank 1 is late by 3 ms and rank 2 by 0.3 ms: rank 1 is named alone",
        lambda: late_hosts(4, lambda number, step: {1: 3000, 2: 300}.get(number, 0)),
        says=(r"Do first: find out why rank 1 is late\.", r"less for rank 1"),
        never_says=(r"ranks 1 and 2 (are|take)",),
    ),
    RanksScenario(
        "two_in_turns_of_four",
        "ranks 1 and 2 of 4 are late at each second step: they take turns, and both are named",
        lambda: late_hosts(4, lambda number, step: 3000 if number == 1 + step % 2 else 0),
        says=(
            r"Ranks 1 and 2 take turns in being late",
            r"Do first: find out why ranks 1 and 2 are late in turns",
            r"at most 2[34]\d ms",
        ),
        never_says=(r"find out why rank \d",),
    ),
    RanksScenario(
        "two_in_halves_of_eight",
        "rank 2 of 8 is late in the first half and rank 6 in the second: they take turns",
        lambda: late_hosts(8, lambda number, step: 3000 if number == (2 if step < 40 else 6) else 0),
        says=(r"Ranks 2 and 6 take turns in being late", r"are late in turns", r"rank 2 is late.{0,200}most of it from"),
    ),
    RanksScenario(
        "three_in_turns_of_eight",
        "ranks 1, 3 and 5 of 8 are late at each third step: they take turns",
        lambda: late_hosts(8, lambda number, step: 3000 if number == (1, 3, 5)[step % 3] else 0, 90),
        says=(r"Ranks 1, 3 and 5 take turns in being late",),
    ),
    RanksScenario(
        "two_pairs_in_turns",
        "ranks 0 and 1 of 8 are late together at each second step, ranks 4 and 5 at the others: the four are late, not together",
        lambda: late_hosts(8, lambda number, step: 3000 if number // 2 == 2 * (step % 2) else 0),
        says=(r"Ranks 0, 1, 4, 5 are late:", r"Do first: find out why ranks 0, 1, 4, 5 are late\."),
        never_says=(r"are late together", r"take turns in being late"),
    ),
    RanksScenario(
        "one_always_and_one_at_each_second_step",
        "rank 1 is late by 2 ms throughout, and rank 3 by 4 ms at each second step: both are named",
        lambda: late_hosts(4, lambda number, step: {1: 2000, 3: 4000 * (step % 2)}.get(number, 0)),
        says=(r"Ranks 1 and 3 are late", r"Do first: find out why ranks 1 and 3 are late", r"alone would bring at most"),
        never_says=(r"are late together", r"take turns"),
    ),
    RanksScenario(
        "all_three_in_turns",
        "each of three ranks is late at each third step: nobody is",
        lambda: late_hosts(3, lambda number, step: 3000 if number == step % 3 else 0),
        says=(r"No rank is late by more than chance",),
        never_says=NOBODY,
    ),
    RanksScenario(
        "both_of_two_in_turns",
        "each of two ranks is late at each second step: neither is",
        lambda: late_hosts(2, lambda number, step: 3000 if number == step % 2 else 0),
        says=(r"No rank is late by more than chance",),
        never_says=NOBODY,
    ),
    RanksScenario(
        "two_late_within_the_clocks_error",
        "ranks 1 and 2 are late by 40 us, and the clocks err by 50 us: nobody is",
        lambda: uncertain(late_hosts(4, lambda number, step: 40 if number in (1, 2) else 0), 50_000),
        never_says=NOBODY,
    ),
    RanksScenario(
        "two_that_load_data_of_four",
        "ranks 0 and 3 wait for their data loaders: load the data of both ahead",
        lambda: with_loaders(4, lambda number, step: 2500 if number in (0, 3) else 0),
        says=(r"Do first: load the data of ranks 0 and 3 ahead", r"One of them alone would bring next to nothing"),
    ),
    RanksScenario(
        "two_that_load_data_in_turns",
        "ranks 4 and 5 of 8 wait for their data loaders in turns: load the data of both ahead",
        lambda: with_loaders(8, lambda number, step: 2500 if number == 4 + step % 2 else 0),
        says=(r"Ranks 4 and 5 take turns", r"Do first: load the data of ranks 4 and 5 ahead"),
    ),
    RanksScenario(
        "half_of_sixteen_late_alike",
        "ranks 8 to 15 of 16 are late alike: all of them are named",
        lambda: late_hosts(16, lambda number, step: 2500 if number >= 8 else 0, 50),
        says=(r"Do first: find out why ranks 8 to 15 are late together",),
        never_says=(r"find out why rank \d",),
    ),
]

def in_processes(traces: list[TraceWriter]) -> TraceWriter:
    """Returns the work of ranks as that of processes in one trace, each with a GPU and the calls that name its communicator."""
    size = len(traces)
    queues = [(4 * number + queue, number + 1) for number in range(size) for queue in range(1, 5)]
    merged = TraceWriter(devices=size, processes=size, queues=queues)
    for number, trace in enumerate(traces):
        process = {"process": number + 1, "thread": 70 + number}
        names = {row["id"]: row["name"] for row in trace.rows["kernels"]}
        texts = {row["id"]: row["text"] for row in trace.rows["labels"]}
        first = len(merged.rows["submissions"])
        for row in trace.rows["submissions"]:
            merged.add("submissions", **{**row, **process, "id": first + row["id"], "queue": row["queue"] + 4 * number})
        for row in trace.rows["dispatches"]:
            kernel = merged.kernel(names[row["kernel"]], number + 1)
            moved = {"kernel": kernel, "queue": row["queue"] + 4 * number, "submission": first + row["submission"]}
            merged.add("dispatches", **{**row, **moved})
        for row in trace.rows["markers"]:
            merged.add("markers", **{**row, **process, "label": merged.label(texts[row["label"]])})
        merged.last_ns = max(merged.last_ns, trace.last_ns)
    return merged


def merged_program(name: str, text: str, ranks: Callable[[], list[TraceWriter]], *says: str) -> Scenario:
    """Returns a program whose ranks are processes in one trace."""
    answer = Answer(
        text=text,
        verdicts=frozenset({"device-bound", "mixed"}),
        headline=(r"critical path through all ranks",),
        says=says,
        never_says=(r"find out why rank \d",),
    )
    return Scenario(name, answer, lambda: in_processes(ranks()))


def with_losses(ranks: list[TraceWriter]) -> list[TraceWriter]:
    """Returns ranks that have each lost work."""
    for trace in ranks:
        trace.losses.append({"what": "dispatches", "count": 5, "reason": "the log was full"})
    return ranks


JOINT_PROGRAMS += [
    merged_program(
        "two_late_gpus_of_four",
        "processes 1 and 2 in one trace compute for longer alike: both are named, with one verdict",
        lambda: more_work(4, (1, 2)),
        r"ranks 1 and 2 are late together",
        r"Do first: give ranks 1 and 2 as little work as the other ranks",
    ),
    merged_program(
        "gpus_late_in_turns_of_four",
        "processes 0 and 3 in one trace are late at each second step: they take turns",
        lambda: late_hosts(4, lambda number, step: 1500 if number == 3 * (step % 2) else 0),
        r"ranks 0 and 3 take turns",
    ),
]


def gpus(count: int) -> TraceWriter:
    """Returns an empty program that uses several GPUs, each with a queue of its number from 1 on."""
    return TraceWriter(devices=count, queues=[(number, number) for number in range(1, count + 1)])


@scenario(
    "one GPU of two has four times the work: the other is idle for that, and launching ahead brings nothing",
    "mixed device-bound",
    says=(r"Do first: move work from GPU 0 to GPU 1", r"GPU 0 holds the run: it was busy for 9\d\.\d %", r"at most .{3,20}\(3\d\.\d %\) shorter"),
    never_says=(r"Do first: (launch|synchronise|prepare)",),
)
def uneven_gpus() -> TraceWriter:
    trace = gpus(2)
    for step in range(200):
        start = step * 420
        trace.launch("k", start, start + 8, 400)
        trace.launch("k", start + 5, start + 13, 100, queue=2)
    return trace


@scenario(
    "the same, and the host waits for both GPUs in each step: the wait is no cause",
    "mixed device-bound",
    says=(r"Do first: move work from GPU 0 to GPU 1",),
    never_says=(r"Do first: synchronise",),
)
def uneven_gpus_with_waits() -> TraceWriter:
    trace = gpus(2)
    for step in range(200):
        start = step * 420
        trace.launch("k", start, start + 8, 400)
        trace.launch("k", start + 5, start + 13, 100, queue=2)
        trace.call("wait-queue-idle", start + 20, 389, "cudaStreamSynchronize", queue=1)
        trace.call("wait-queue-idle", start + 410, 2, "cudaStreamSynchronize", queue=2)
    return trace


@scenario(
    "one GPU of four has twice the work of each of the others: it holds the run",
    "mixed device-bound",
    says=(r"Do first: move work from GPU 2 to the other GPUs", r"the other 3 GPUs for a mean of 4\d\.\d %"),
)
def one_of_four_gpus_has_more() -> TraceWriter:
    trace = gpus(4)
    for step in range(100):
        start = step * 1860
        for queue in range(1, 5):
            trace.launch("k", start + queue * 10, start + queue * 10 + 8, 1800 if queue == 3 else 900, queue)
        trace.call("wait-queue-idle", start + 60, 1785, "cudaStreamSynchronize", queue=3)
    return trace


@scenario(
    "two GPUs of three are as busy: both hold the run, and none is blamed alone",
    "mixed device-bound",
    says=(r"Do first: move work from the 2 busiest GPUs to the others",),
    never_says=(r"GPU 1 holds",),
)
def two_of_three_gpus_hold() -> TraceWriter:
    trace = gpus(3)
    for step in range(100):
        start = step * 1860
        for queue in range(1, 4):
            trace.launch("k", start + queue * 10, start + queue * 10 + 8, 10 if queue == 3 else 1840, queue)
    return trace


@scenario(
    "a GPU hands each batch to another, whose part is a fifth as long: the first stage holds the run",
    "device-bound",
    says=(r"Do first: move work from GPU 0 to GPU 1",),
)
def uneven_stages_on_gpus() -> TraceWriter:
    trace = gpus(2)
    for step in range(100):
        start = 1000 + step * 994
        sent = trace.launch("front", start - 300, start, 990)
        received = trace.launch("back", start - 290, start + 998, 200, 2)
        trace.depends(received, on=sent)
    return trace


@scenario(
    "two GPUs work one after the other on each batch, by dependencies: they take turns",
    "mixed sync-bound",
    says=(r"Do first: let the GPUs work at the same time", r"The 2 GPUs take turns: one of them works for 9\d\.\d %"),
    never_says=(r"Do first: (launch|shorten)",),
)
def gpus_in_turns() -> TraceWriter:
    trace, last = gpus(2), None
    for step in range(100):
        start = 1000 + step * 1560
        front = trace.launch("front", start - 30, start, 800)
        if last is not None:
            trace.depends(front, on=last)
        last = trace.launch("back", start - 18, start + 808, 745, 2)
        trace.depends(last, on=front)
    return trace


@scenario(
    "four GPUs have as much work each, and the host is late with all: the host",
    "host-bound",
    "host-late",
    says=(r"Do first: launch ahead",),
    never_says=(r"move work from", r"take turns"),
)
def four_gpus_of_a_late_host() -> TraceWriter:
    trace = gpus(4)
    for step in range(100):
        for queue in range(1, 5):
            trace.launch("k", step * 1000 + queue * 10, step * 1000 + queue * 10 + 8, 300, queue)
    return trace


@scenario(
    "two GPUs are busy throughout: the kernel, and no other split",
    "device-bound",
    says=(r"Do first: make the kernel k faster",),
    never_says=(r"move work from", r"take turns"),
)
def even_busy_gpus() -> TraceWriter:
    trace = gpus(2)
    for step in range(100):
        for queue in (1, 2):
            trace.launch("k", step * 12 + 6 * (queue - 1), step * 990 + 20, 985, queue)
    return trace


def one_rank(number: int, late: float) -> Callable[[], TraceWriter]:
    """Returns the trace of one rank of four, of which rank 2 computes for longer."""

    def write() -> TraceWriter:
        trace = train(4, 60, lambda rank, step: 2000 + (late if rank == 2 else 0))[number]
        trace.rank = (number, 4)
        return trace

    return write


def waits_by_polling(computes: float, pause: float, kernels: int = 8, noise: float = 0) -> TraceWriter:
    """Returns a host that launches, polls mapped memory until the work has ended, and goes on after a pause."""
    trace, start, random_pause = TraceWriter(), 1000.0, random.Random(35)
    for _ in range(100):
        for kernel in range(kernels):
            trace.launch("gemm", start + kernel * 6, start + 10 + kernel * computes, computes - 1)
        start += 10 + kernels * computes + pause + random_pause.uniform(0, noise)
    return trace


def host_of_its_own() -> TraceWriter:
    """Returns a host whose own code takes three times as long as each kernel, and which waits for nothing."""
    trace = TraceWriter()
    for step in range(400):
        trace.launch("gemm", step * 300, step * 300 + 10, 100)
    return trace


def write_ranks(ranks: Callable[[], list[TraceWriter]]) -> Callable[[Path], None]:
    """Returns a function that writes a folder of ranks."""
    return lambda folder: RanksScenario("", "", ranks).write(folder / "program.gapscope")


CHANGED = ("what-if", "--set", "kernel:gemm=0.5x")

QUESTIONS = [
    Question(
        "one_rank_that_waits_for_another",
        "one rank's trace alone, which is mostly in collectives: it cannot tell waiting, and says what to bring",
        alone(one_rank(0, 6000)),
        ("report",),
        says=(r"Do first: bring the traces of all ranks into one folder", r"does not tell communication from waiting"),
        never_says=(r"communicate less|fewer bytes",),
    ),
    Question(
        "one_rank_of_four_in_full",
        "the same in the whole report: the advice says the same, with the number of ranks",
        alone(one_rank(1, 6000)),
        ("report", "--json"),
        says=(r"bring the traces of all 4 ranks into one folder", r'"hides_waits_for_ranks": true'),
        never_says=(r"communicate less|send fewer bytes|as soon as it is ready",),
    ),
    Question(
        "late_rank_alone",
        "the late rank's trace alone: its device, and nothing to bring",
        alone(one_rank(2, 6000)),
        ("report",),
        says=(r"DEVICE-BOUND",),
        never_says=(r"bring the traces",),
    ),
    Question(
        "host_that_polls",
        "a host polls mapped memory: the report says that the device holds the run, and no replay says that the host does",
        alone(lambda: waits_by_polling(1000, 20)),
        CHANGED,
        says=(r"may have waited for the device without a call",),
        never_says=(r"would take", r"host's own code"),
        exit_code=2,
    ),
    Question(
        "host_that_polls_in_the_report",
        "the same in the report: the device, with no slack",
        alone(lambda: waits_by_polling(1000, 20)),
        ("report", "--full"),
        says=(r"DEVICE-BOUND", r"may have waited for the device without a call"),
        never_says=(r"could be longer by so much",),
    ),
    Question(
        "host_that_polls_one_short_kernel",
        "a host polls for each kernel, and is back after 3 to 15 us: unknown",
        alone(lambda: waits_by_polling(400, 3, 1, 12)),
        CHANGED,
        says=(r"may have waited for the device without a call",),
        exit_code=2,
    ),
    Question(
        "host_with_code_of_its_own",
        "a host takes three times as long as each kernel: half of the kernel's time brings nothing",
        alone(host_of_its_own),
        CHANGED,
        says=(r"as long as before|0\.\d % less", r"host's own code"),
        never_says=(r"-0 %",),
    ),
    Question(
        "launches_ahead",
        "a host is far ahead of its device: half of the kernel's time is half of the run",
        alone(lambda: waits_ahead()),
        CHANGED,
        says=(r"(49|50)\.\d % less",),
    ),
    Question(
        "ranks_in_one_trace_explained",
        "an explanation of ranks in one trace names the rank of each time",
        alone(lambda: in_processes(late_hosts(4, lambda number, step: 1500 if number in (1, 2) else 0))),
        ("explain",),
        says=(
            r"Ranks 1 and 2 are late together",
            r"Do first: find out why ranks 1 and 2 are late together",
            r"By rank: rank [12] 1\d\d ms, rank [12] 1\d\d ms",
            r"is between .{0,200} on rank \d",
        ),
    ),
    Question(
        "ranks_whose_clocks_are_unknown",
        "clocks of machines do not compare: that is the one reason, and no other version of NCCL would help",
        write_ranks(lambda: on_machines(late_hosts(4, lambda number, step: 1500 if number == 1 else 0))),
        CHANGED,
        says=(r"The times of the ranks do not compare",),
        never_says=(r"2\.25", r"Rank 0:", r"could not be matched with"),
        exit_code=2,
    ),
    Question(
        "overlap_of_ranks_once",
        "what is not known of each rank is said once",
        write_ranks(lambda: with_losses(late_hosts(4, lambda number, step: 0))),
        CHANGED,
        says=(r"Ranks 0 to 3( \(with the figures of rank 0\))?: The recording lost",),
        never_says=(r"Rank 0: ", r"Rank 1: The recording"),
        exit_code=2,
    ),
    Question(
        "step_without_a_name",
        "an empty name of a step is refused in one sentence",
        alone(host_of_its_own),
        ("what-if", "--step", ""),
        says=(r"names nothing",),
        exit_code=2,
    ),
]


def waits_ahead() -> TraceWriter:
    """Returns a host that launches 1000 kernels of 0.1 ms far ahead of its device."""
    trace = TraceWriter()
    for step in range(1000):
        trace.launch("gemm", step * 6, 10 + step * 100.5, 100)
    return trace


def unrelated(folder: Path) -> None:
    """Writes a program, and another one that has none of its kernels."""
    waits_ahead().write(folder / "program.gapscope")
    other = TraceWriter()
    for step in range(1000):
        other.launch("conv", step * 6, 10 + step * 300.5, 300)
    other.write(folder / "other.gapscope")


QUESTIONS.append(
    Question(
        "prediction_against_another_program",
        "a prediction is compared with a trace of another program: said",
        unrelated,
        (*CHANGED, "--against", "FOLDER/other.gapscope"),
        says=(r"hardly a kernel in common \(0 % of their time\)",),
    )
)
