"""Programs of several ranks whose critical path is known by construction: what bounds them all together.

A queue of each rank runs work in its order. `Ranks` gives each rank two: one computes, and one communicates.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from programs import Answer, Scenario
from several_ranks import ALL_REDUCE, SEND_RECEIVE, RanksScenario, collective, rank
from trace_writer import TraceWriter

ALL_GATHER = "ncclDevKernel_AllGather_RING_LL"


class Ranks:
    """Ranks that are simulated: each has the time at which its streams are free."""

    def __init__(self, size: int) -> None:
        self.traces = [rank(number, size) for number in range(size)]
        self.computed = [1000.0] * size
        self.communicated = [1000.0] * size
        self.host = [0.0] * size
        self.last: list[int | None] = [None] * size

    def ahead(self, number: int) -> float:
        """Returns the time of the next call of a rank whose host runs ahead of its device."""
        self.host[number] += 12
        return self.host[number]

    def compute(self, number: int, duration: float, kernels: int = 4, after: float = 0, late: float = 0) -> None:
        """Computes on a rank. `after` is the end of communication that the work waits for; `late` is how long the host
        is late with it after its device is idle."""
        start = max(self.computed[number], after)
        for at in range(kernels):
            begins = start + 2
            call = self.ahead(number)
            if late and at == 0:
                call = start + late - 8
                begins = start + late
                self.host[number] = call
            elif call > begins - 3:
                call = self.host[number] = begins - 3
            self.traces[number].launch("gemm", call, begins, duration / kernels - 2)
            start = begins + duration / kernels - 2
        self.computed[number] = start

    def reduce(
        self,
        duration: float,
        members: list[int] | None = None,
        overlapped: bool = False,
        kernel: str = ALL_REDUCE,
        function: str = "ncclAllReduce",
    ) -> float:
        """Runs a collective, which each rank joins when its work is done, and returns its end."""
        members = members or list(range(len(self.traces)))
        arrivals = {at: max(self.computed[at], self.communicated[at]) + 3 for at in members}
        end = max(arrivals.values()) + duration
        for at, arrival in arrivals.items():
            call = min(self.ahead(at), arrival - 4)
            collective(self.traces[at], call, arrival, end - arrival, function, kernel)
            self.communicated[at] = end
            if not overlapped:
                self.computed[at] = end
        return end

    def send(self, sender: int, receiver: int, duration: float, posted: float | None = None) -> float:
        """Sends from a rank that has computed to one whose kernel waits from `posted` on, and returns the end."""
        facts = "Message size [bytes]=1048576, Peer rank="
        sent = self.computed[sender] + 3
        received = max(self.communicated[receiver] + 3, posted or 0)
        end = max(sent, received) + duration
        call = min(self.ahead(sender), sent - 4)
        collective(self.traces[sender], call, sent, end - sent, "ncclSend", SEND_RECEIVE, f"{facts}{receiver}")
        call = min(self.ahead(receiver), received - 4)
        collective(
            self.traces[receiver], call, received, end - received, "ncclRecv", SEND_RECEIVE, f"{facts}{sender}"
        )
        self.communicated[sender] = self.communicated[receiver] = end
        return end


def data_parallel(
    computes: Callable[[int, random.Random], float], duration: float, size: int = 4, steps: int = 60, late: float = 0
) -> list[TraceWriter]:
    """Returns ranks that compute, then reduce with nothing beside. The host of rank 2 may be late."""
    ranks, noise = Ranks(size), random.Random(21)
    for _ in range(steps):
        for number in range(size):
            ranks.compute(number, computes(number, noise), late=late if number == 2 else 0)
        ranks.reduce(duration)
    return ranks.traces


def synchronised(computes: float, duration: float, pause: float, size: int = 4, steps: int = 80) -> list[TraceWriter]:
    """Returns ranks that wait on the host for each all-reduce, and pause in Python before the next step."""
    ranks = Ranks(size)
    for _ in range(steps):
        for number in range(size):
            ranks.compute(number, computes, 1, late=pause + 20 if ranks.host[number] else 0)
        end = ranks.reduce(duration)
        for number, trace in enumerate(ranks.traces):
            begins = ranks.host[number] + 10
            trace.call("wait-queue-idle", begins, end + 12 - begins, "cudaStreamSynchronize", queue=2)
            ranks.host[number] = end + 12
    return ranks.traces


def sharded(kernels: float, gather: float, size: int = 4, steps: int = 120) -> list[TraceWriter]:
    """Returns ranks whose layers wait for gathers that run back to back beside them."""
    ranks = Ranks(size)
    for _ in range(steps):
        # The next gather does not wait for the layer before it.
        arrivals = [at + 1 for at in ranks.communicated]
        end = max(arrivals) + gather
        for number, arrival in enumerate(arrivals):
            facts = "Message size [bytes]=4194304"
            call = min(ranks.ahead(number), arrival - 4)
            collective(ranks.traces[number], call, arrival, end - arrival, "ncclAllGather", ALL_GATHER, facts)
            ranks.communicated[number] = end
            ranks.compute(number, kernels, 1, after=end)
    return ranks.traces


def overlapped(size: int = 4, steps: int = 50, slow: int | None = None) -> list[TraceWriter]:
    """Returns ranks that reduce each bucket beside the backward pass of the next."""
    ranks, noise = Ranks(size), random.Random(22)
    for _ in range(steps):
        for bucket in range(4):
            for number in range(size):
                more = 1.3 if number == slow else 1
                ranks.compute(number, more * (1500 + noise.gauss(0, 15)), 3)
            end = ranks.reduce(500, overlapped=bucket < 3)
        ranks.computed = [max(at, end) for at in ranks.computed]
    return ranks.traces


def one_forward_one_backward(stages: int = 4, batches: int = 8, steps: int = 12) -> list[TraceWriter]:
    """Returns the stages of a pipeline, each of which receives before it computes and spins meanwhile."""
    ranks = Ranks(stages)
    for _ in range(steps):
        for _ in range(batches):
            for stage in range(stages):
                ranks.compute(stage, 1000, 2)
                if stage + 1 < stages:
                    end = ranks.send(stage, stage + 1, 40)
                    ranks.computed[stage + 1] = max(ranks.computed[stage + 1], end)
        for _ in range(batches):
            for stage in reversed(range(stages)):
                ranks.compute(stage, 2000, 2)
                if stage > 0:
                    end = ranks.send(stage, stage - 1, 40)
                    ranks.computed[stage - 1] = max(ranks.computed[stage - 1], end)
    return ranks.traces


def in_turns(size: int = 2, steps: int = 80, message: float = 60) -> list[TraceWriter]:
    """Returns ranks of which one computes while the others spin in a receive: a model split by layers."""
    ranks = Ranks(size)
    for _ in range(steps):
        for number in range(size):
            ranks.compute(number, 2000)
            after = (number + 1) % size
            end = ranks.send(number, after, message)
            ranks.computed[after] = max(ranks.computed[after], end)
    return ranks.traces


def parameter_server(size: int = 4, steps: int = 60, copies: bool = False) -> list[TraceWriter]:
    """Returns workers that send gradients to rank 0, which updates for long, and then sends back."""
    ranks = Ranks(size)
    for _ in range(steps):
        for worker in range(1, size):
            ranks.compute(worker, 800)
        for worker in range(1, size):
            ranks.send(worker, 0, 80)
        ranks.computed[0] = max(ranks.computed[0], ranks.communicated[0])
        ranks.compute(0, 4000)
        for worker in range(1, size):
            end = ranks.send(0, worker, 80)
            ranks.computed[worker] = max(ranks.computed[worker], end)
            ranks.computed[0] = end
    return ranks.traces


def copy_bound(size: int = 4, steps: int = 60, slow: int | None = None) -> list[TraceWriter]:
    """Returns ranks that each copy a batch to their device, compute for a short time, and reduce."""
    ranks = Ranks(size)
    for _ in range(steps):
        for number, trace in enumerate(ranks.traces):
            start = ranks.computed[number] + 2
            duration = 6000 if slow in (None, number) else 2000
            call = min(ranks.ahead(number), start - 4)
            copy = trace.copy("host-to-device", call, start, duration, 100_000_000, queue=3)
            ranks.computed[number] = start + duration
            ranks.compute(number, 900, 1)
            kernel = trace.rows["dispatches"][-1]["submission"]
            trace.depends(kernel, copy)
        ranks.reduce(200)
    return ranks.traces


def tensor_parallel(size: int = 4, steps: int = 300, reduce: float = 90) -> list[TraceWriter]:
    """Returns ranks that reduce after each short layer."""
    ranks, noise = Ranks(size), random.Random(23)
    for _ in range(steps):
        for number in range(size):
            ranks.compute(number, 60 + noise.gauss(0, 2), 1)
        ranks.reduce(reduce)
    return ranks.traces


def uncertain(traces: list[TraceWriter], error_ns: int) -> list[TraceWriter]:
    """Returns ranks whose clocks have an error."""
    for trace in traces:
        for device in trace.devices:
            device["clock"]["error_ns"] = error_ns
    return traces


def on_machines(traces: list[TraceWriter]) -> list[TraceWriter]:
    """Returns ranks that each ran on a machine of its own."""
    for number, trace in enumerate(traces):
        trace.boot = f"machine-{number}"
    return traces


def late_of(size: int, late: tuple[int, ...], steps: int = 80, by: Callable[[int], float] = lambda number: 1600) -> list[TraceWriter]:
    """Returns ranks of which some have more to do."""
    ranks, noise = Ranks(size), random.Random(24 + size + len(late))
    for _ in range(steps):
        for number in range(size):
            more = by(number) if number in late else 0
            kernels = 12 if number in late else 10
            ranks.compute(number, 8000 + more + noise.gauss(0, 40), kernels)
        ranks.reduce(300)
    return ranks.traces


def spoken(verdict: str) -> tuple[str, ...]:
    """Returns the pattern of a joint verdict: the report begins with it."""
    return (rf"^.{{0,200}}{verdict}",)


def late_ranks(size: int, late: tuple[int, ...]) -> RanksScenario:
    """Returns a program of which some ranks are late, and what its report must say."""
    in_time = [str(number) for number in range(size) if number not in late]
    named = "".join(str(number) for number in range(size) if number not in late)
    return RanksScenario(
        f"{len(late)}_late_of_{size}",
        f"ranks {', '.join(map(str, late))} of {size} are late, each since it launches 1.2 times as many kernels",
        lambda: late_of(size, late),
        says=tuple(rf"rank {number} (is late|arrived last)" for number in late if len(late) <= 4)
        + (r"launched 1\.20 times as many kernels",)
        + spoken("DEVICE-BOUND"),
        never_says=(rf"rank [{named}] (is late|arrived last)",) if in_time else (),
    )


JOINT_PATHS = [
    RanksScenario(
        "one_slow_rank_of_four",
        "three ranks wait in all-reduces for the fourth to compute: bound by the device of rank 2",
        lambda: data_parallel(lambda number, noise: 9000 if number == 2 else 3000, 200),
        says=(r"DEVICE-BOUND +The critical path through all ranks runs through computing.* on rank 2",),
    ),
    RanksScenario(
        "one_late_host_of_four",
        "three ranks wait in all-reduces for the host of rank 2",
        lambda: data_parallel(lambda number, noise: 2000, 200, late=5000),
        says=(r"HOST-BOUND +The critical path through all ranks waits for the host .* on rank 2",),
    ),
    RanksScenario(
        "slow_all_reduces",
        "ranks arrive together and reduce for longer than they compute: communication",
        lambda: data_parallel(lambda number, noise: 2000 + noise.gauss(0, 20), 4000),
        says=(r"COMMUNICATION-BOUND +The critical path .*communication after the last arrivals",),
    ),
    RanksScenario(
        "reductions_that_hosts_wait_for",
        "hosts wait for each all-reduce, and spend 0.2 ms in Python before the next step: communication all the same",
        lambda: synchronised(1500, 6000, 230),
        says=(r"COMMUNICATION-BOUND +The critical path .*communication after the last arrivals",),
    ),
    RanksScenario(
        "late_hosts_that_wait_for_reductions",
        "the same with 20 ms in Python: the hosts",
        lambda: synchronised(1500, 3000, 20000),
        says=(r"HOST-BOUND +The critical path through all ranks waits for the host",),
    ),
    RanksScenario(
        "changing_stragglers",
        "another rank is last each time, and the others wait for it in the all-reduce: computing",
        lambda: data_parallel(lambda number, noise: noise.choice([2000, 2000, 2000, 8000]), 200),
        says=(r"DEVICE-BOUND +The critical path",),
    ),
    RanksScenario(
        "gathers_that_layers_wait_for",
        "each layer waits for its all-gather, and these run back to back beside the kernels: communication",
        lambda: sharded(700, 1000),
        says=(r"COMMUNICATION-BOUND +The critical path .* faster kernels would win at most",),
    ),
    RanksScenario(
        "gathers_behind_layers",
        "gathers run beside kernels that leave no pause: bound by the devices",
        lambda: sharded(1000, 985),
        says=(r"DEVICE-BOUND +The critical path",),
    ),
    RanksScenario(
        "reductions_beside_the_backward_pass",
        "all but the last bucket of each step is reduced beside computing: bound by the devices",
        overlapped,
        says=(r"DEVICE-BOUND +The critical path",),
        never_says=(r"rank \d+ arrived last", r"rank \d+ is late"),
    ),
    RanksScenario(
        "reductions_of_a_slow_rank",
        "the same, and rank 1 computes for 1.3 times as long: bound by its device",
        lambda: overlapped(slow=1),
        says=(r"DEVICE-BOUND +The critical path .* on rank 1", r"rank 1 arrived last"),
    ),
    RanksScenario(
        "one_forward_one_backward",
        "a pipeline whose stages spin in receives: the path runs through computing of one stage after the other",
        one_forward_one_backward,
        says=(r"DEVICE-BOUND +The critical path", r"stages of a pipeline"),
    ),
    RanksScenario(
        "two_ranks_in_turns",
        "one rank computes while the other spins in a receive: computing",
        in_turns,
        says=(r"DEVICE-BOUND +The critical path",),
    ),
    RanksScenario(
        "four_ranks_in_turns",
        "three of four ranks spin in receives at any time: computing",
        lambda: in_turns(4),
        says=(r"DEVICE-BOUND +The critical path",),
    ),
    RanksScenario(
        "slow_messages_in_turns",
        "ranks in turns, and each message takes longer than the computing: communication",
        lambda: in_turns(2, message=6000),
        says=(r"COMMUNICATION-BOUND +The critical path",),
    ),
    RanksScenario(
        "parameter_server",
        "workers wait in receives for the update of rank 0: bound by its device",
        parameter_server,
        says=(r"DEVICE-BOUND +The critical path .* on rank 0",),
    ),
    RanksScenario(
        "copies_on_all_ranks",
        "each rank waits for its copies to the device: transfers",
        copy_bound,
        says=(r"TRANSFER-BOUND +The critical path",),
    ),
    RanksScenario(
        "copies_on_one_rank",
        "the others wait in the all-reduce for the copies of rank 3: transfers",
        lambda: copy_bound(slow=3),
        says=(r"TRANSFER-BOUND +The critical path .* on rank 3",),
    ),
    RanksScenario(
        "short_layers_in_tensor_parallel",
        "ranks arrive together and reduce for longer than each layer: communication",
        tensor_parallel,
        says=(r"COMMUNICATION-BOUND +The critical path",),
    ),
    RanksScenario(
        "short_layers_within_the_clocks_error",
        "the same with clocks 60 us off: how much is communication is open",
        lambda: uncertain(tensor_parallel(), 60_000),
        says=(r"clocks' error",),
        never_says=(r"rank \d+ arrived last", r"rank \d+ is late"),
    ),
    RanksScenario(
        "slow_rank_within_the_clocks_error",
        "one slow rank of four, and clocks 50 us off: the error does not matter",
        lambda: uncertain(data_parallel(lambda number, noise: 9000 if number == 2 else 3000, 200), 50_000),
        says=(r"DEVICE-BOUND +The critical path .* on rank 2",),
    ),
    RanksScenario(
        "slow_rank_on_another_machine",
        "clocks of machines do not compare: the sums count waiting as communication, and the report says so",
        lambda: on_machines(data_parallel(lambda number, noise: 9000 if number == 2 else 3000, 200)),
        says=(r"rests on the sums of the ranks' times, in which waiting for other ranks is communication",),
    ),
    *(
        late_ranks(size, late)
        for size, late in [
            (3, (1, 2)),
            (3, (0,)),
            (4, (0, 3)),
            (4, (0, 1, 3)),
            (5, (0, 2, 4)),
            (8, (1, 2, 3, 4, 5)),
            (8, (0, 1, 2, 3, 4, 6, 7)),
        ]
    ),
    RanksScenario(
        "two_late_of_three_by_different_times",
        "ranks 1 and 2 of 3 are late, by 1.5 ms and 3 ms",
        lambda: late_of(3, (1, 2), by=lambda number: 1500 * number),
        says=(r"rank 1 (is late|arrived last)", r"rank 2 (is late|arrived last)"),
        never_says=(r"rank 0 (is late|arrived last)",),
    ),
]


def in_one_trace(traces: list[TraceWriter]) -> TraceWriter:
    """Returns the work of ranks as that of the GPUs of one process, without the names of communicators."""
    size = len(traces)
    queues = [(4 * number + queue, number + 1) for number in range(size) for queue in range(1, 5)]
    merged = TraceWriter(devices=size, queues=queues)
    for number, trace in enumerate(traces):
        names = {row["id"]: row["name"] for row in trace.rows["kernels"]}
        submissions: dict[int, int] = {}
        for row in trace.rows["submissions"]:
            new = len(merged.rows["submissions"]) + 1
            submissions[row["id"]] = new
            queue = row["queue"] + 4 * number
            merged.add("submissions", **{**row, "id": new, "queue": queue, "thread": 7 + number})
        for table in ("dispatches", "transfers"):
            for row in trace.rows[table]:
                moved = {"queue": row["queue"] + 4 * number, "submission": submissions[row["submission"]]}
                if table == "dispatches":
                    moved["kernel"] = merged.kernel(names[row["kernel"]])
                merged.add(table, **{**row, **moved})
        for row in trace.rows["dependencies"]:
            pair = {column: submissions[row[column]] for column in ("submission", "waits_for")}
            merged.add("dependencies", **{**row, **pair})
        merged.last_ns = max(merged.last_ns, trace.last_ns)
    return merged


def joint_program(name: str, text: str, verdict: str, ranks: Callable[[], list[TraceWriter]], *says: str) -> Scenario:
    """Returns a program whose ranks are GPUs in one trace."""
    answer = Answer(text=text, verdicts=frozenset({verdict}), headline=says)
    return Scenario(name, answer, lambda: in_one_trace(ranks()))


JOINT_PROGRAMS = [
    joint_program(
        "one_slow_gpu_of_four",
        "three GPUs wait in all-reduces for the fourth to compute: bound by the device",
        "device-bound",
        lambda: data_parallel(lambda number, noise: 9000 if number == 2 else 3000, 200),
        r"runs through computing .* on\s+GPU 2",
        r"devices wait in communication\s+for others for 4",
    ),
    joint_program(
        "one_late_host_of_four_gpus",
        "three GPUs wait in all-reduces for a fourth that the host is late with",
        "host-bound",
        lambda: data_parallel(lambda number, noise: 2000, 200, late=5000),
        r"waits for the host .* on GPU 2",
    ),
    joint_program(
        "slow_all_reduces_of_gpus",
        "GPUs arrive together and reduce for longer than they compute: communication",
        "communication-bound",
        lambda: data_parallel(lambda number, noise: 2000 + noise.gauss(0, 20), 4000),
    ),
    joint_program(
        "gathers_that_layers_of_gpus_wait_for",
        "each layer waits for its all-gather beside the kernels: communication",
        "communication-bound",
        lambda: sharded(700, 1000),
    ),
    joint_program(
        "gathers_behind_layers_of_gpus",
        "gathers run beside kernels that leave no pause: bound by the devices",
        "device-bound",
        lambda: sharded(1000, 985),
    ),
    joint_program(
        "one_forward_one_backward_on_gpus",
        "the stages of a pipeline spin in receives: the path runs through their computing",
        "device-bound",
        one_forward_one_backward,
        r"critical path through all devices runs through computing",
    ),
    joint_program(
        "two_gpus_in_turns",
        "one GPU computes while the other spins in a receive: computing",
        "device-bound",
        in_turns,
        r"critical path through all devices runs through computing",
    ),
    joint_program(
        "slow_messages_of_gpus_in_turns",
        "GPUs in turns, and each message takes longer than the computing: communication",
        "communication-bound",
        lambda: in_turns(2, message=6000),
        r"communication after the last\s+arrivals",
    ),
    joint_program(
        "parameter_server_on_gpus",
        "workers wait in receives for the update of GPU 0: bound by the device",
        "device-bound",
        parameter_server,
        r"on\s+GPU 0",
    ),
    joint_program(
        "copies_on_one_gpu_of_four",
        "the others wait in the all-reduce for the copies of one: transfers",
        "transfer-bound",
        lambda: copy_bound(slow=3),
        r"on\s+GPU 3",
    ),
]
