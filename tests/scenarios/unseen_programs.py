"""Programs of the kinds of the other files, with other APIs, streams and lengths, whose answers were written down before they were asked for."""

from __future__ import annotations

import random

from joint_paths import ALL_GATHER, JOINT_PATHS, Ranks
from comparisons import COMPARISONS, Comparison, steps
from other_programs import asleep, steps_after_sleep
from programs import scenario
from several_ranks import BLAMED, RanksScenario, train
from trace_writer import TraceWriter

ALL_TO_ALL = "ncclDevKernel_AllToAll_RING_LL"


def exchanged(exchange: float, expert: float, is_awaited: bool) -> TraceWriter:
    """Returns layers of experts with exchanges back to back beside them, for which each layer may wait."""
    trace, free = TraceWriter(), 0.0
    for layer in range(100):
        start = layer * max(exchange, expert)
        call = max(start - 30, 0)
        sent = trace.submission(call, 5, 2)
        trace.dispatch(sent, ALL_TO_ALL, start + 12, exchange - 6, 2)
        begins = max(free, start + 12 + (exchange - 4 if is_awaited else 0))
        computed = trace.submission(call + 6, 5, 1)
        trace.dispatch(computed, "expert", begins, expert - 4)
        free = begins + expert - 2
        if is_awaited:
            trace.depends(computed, on=sent)
    return trace


@scenario(
    "layers of experts wait for exchanges that leave no pause: communication, although kernels run for 70 % of the time",
    "communication-bound",
    headline=(r"stream 2", r"faster kernels would win at most"),
)
def experts_wait_for_exchanges() -> TraceWriter:
    return exchanged(1000, 700, True)


@scenario(
    "exchanges run beside layers of experts that leave no pause: bound by the device",
    "device-bound",
    never_advises=(r"communicat",),
)
def exchanges_behind_experts() -> TraceWriter:
    return exchanged(600, 1000, False)


@scenario(
    "results are copied to pageable memory by another thread behind kernels that leave no pause: pinned memory would win nothing",
    "device-bound",
    never_advises=(r"pin the memory",),
)
def pageable_copies_behind_kernels() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 1000
        trace.launch("k", max(start - 300, 0), start + 8, 990)
        trace.copy("device-to-host", start + 10, start + 100, 300, 4_000_000, 2, 400, "pageable")
        trace.rows["submissions"][-1]["thread"] = 9
    return trace


@scenario(
    "graphs of 1 ms are timed as a whole, and 4 ms pass before each: the host, however the graphs spent their time",
    "host-bound",
    "host-late",
    never_says=(r"DEVICE-BOUND",),
)
def whole_graphs_of_a_late_host() -> TraceWriter:
    trace = TraceWriter()
    for step in range(60):
        start = step * 5000
        launch = trace.submission(start, 40, kind="graph", command_buffers=1)
        trace.command_buffer(launch, start + 60, 1000, dispatches=20)
    return trace


@scenario(
    "the first work of a second stream starts 60 ms after its call, beside a stream that is busy: no start-up of the device",
    "device-bound",
    never_causes="launch-latency",
)
def first_work_of_a_second_stream() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        trace.launch("k", step * 1000, step * 1000 + 8, 900)
    trace.launch("second", 10, 60_000, 500, queue=2)
    return trace


@scenario(
    "a tenth of the kernels start 0.3 ms before their launches: the headline says first that the times contradict each other",
    "device-bound mixed unknown",
    headline=(r"^scenario.{0,120}Host and device times contradict each other: 20 of 200",),
)
def a_tenth_before_their_launches() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        trace.launch("k", step * 1000 + (300 if step % 10 == 0 else 0), step * 1000 + 8, 800)
    return trace


@scenario(
    "launches come 10 µs before their kernels on an idle device, and the clock errs by 25 µs: how much the host is late is open",
    "mixed unknown",
    headline=(r"Within the clock's error of 25\.0 µs",),
)
def pauses_as_long_as_the_clocks_error() -> TraceWriter:
    trace = TraceWriter(clock_error_ns=25_000)
    for step in range(500):
        trace.launch("k", step * 100 + 20, step * 100 + 30, 60)
    return trace


@scenario(
    "hipFree waits for the kernel of each step, and the next launch comes 2 µs later: a wait, and not a late host",
    "device-bound",
    "after-host-wait",
    never_causes="host-late",
)
def free_of_hip_that_synchronises() -> TraceWriter:
    trace = TraceWriter(api="hip")
    for step in range(100):
        start = step * 372
        launch = trace.submission(start, 5, function="hipLaunchKernel")
        trace.dispatch(launch, "k", start + 8, 350)
        trace.call("free-memory", start + 10, 360, "hipFree")
    return trace


@scenario(
    "each batch comes over the network: the launching thread waits for it, and none of its code is slow",
    "host-bound",
    "host-late host-waits",
    says=(r"network|socket",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def batches_from_the_network() -> TraceWriter:
    trace = TraceWriter()
    stack = trace.stack([("main", "/home/a/worker.py", 30), ("next_batch", "/home/a/client.py", 71)])
    return steps_after_sleep(trace, stack, "recvfrom", 12_000)


@scenario(
    "the device is lost at the end of a program whose host is late: both are said",
    "host-bound",
    "host-late",
    headline=(r"device was lost",),
)
def lost_device_of_a_late_host() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        trace.launch("k", step * 1000, step * 1000 + 8, 400)
    trace.devices[0]["lost"] = True
    return trace


@scenario(
    "a power limit holds the clocks down from a quarter of the run on: said in the headline",
    "device-bound",
    headline=(r"power",),
)
def power_cap_after_a_quarter() -> TraceWriter:
    trace = TraceWriter()
    for step in range(1000):
        trace.launch("k", step * 1000, step * 1000 + 8, 985)
    trace.counter("clock limited: power cap", "percent", [(0, 0), (250_000, 100)])
    trace.counter("SM clock", "hertz", [(0, 1980e6), (250_000, 1500e6)])
    return trace


@scenario(
    "a busy part, a part of which the host is late, and a busy part: three phases, each said",
    "device-bound",
    headline=(r"first 60\.\d ms.*device-bound", r"From 60\.\d ms.*host-bound", r"From 120 ms.*device-bound"),
)
def three_phases() -> TraceWriter:
    trace = TraceWriter()
    for step in range(180):
        trace.launch("k", step * 1000, step * 1000 + 8, 300 if 60 <= step < 120 else 985)
    return trace


@scenario(
    "each submission of a Vulkan program takes its call for longer than its one short dispatch runs: submit more at once",
    "host-bound",
    "submit-call",
    advises=(r"submit|batch|command buffer",),
)
def short_dispatches_of_long_submissions() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for step in range(400):
        call = step * 70
        submission = trace.submission(call, 60, kind="command-buffers", command_buffers=1)
        number = trace.command_buffer(submission, call + 55, 8, dispatches=1)
        trace.dispatch(submission, "k", call + 55, 8, command_buffer=number)
    return trace


@scenario(
    "the first dispatch of each of three kernels takes 40 times as long as the others of its size: warm-up, and then the device",
    "device-bound",
    says=(r"warm-up",),
)
def slow_first_dispatches() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for step in range(150):
        for kernel in ("a", "b", "c"):
            duration = 8000 if step == 0 else 200
            trace.launch(kernel, max(start - 20, 0), start + 8, duration, groups=64)
            start += duration + 2
    return trace


@scenario(
    "clears of memory run on a stream of their own behind kernels that leave no pause: bound by the device",
    "device-bound",
    never_advises=(r"fill|copy|copies",),
)
def fills_behind_kernels() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 1000
        trace.launch("k", max(start - 300, 0), start + 8, 990)
        trace.copy("fill", max(start - 290, 0), start + 50, 500, 64_000_000, 2, function="cudaMemsetAsync")
    return trace


@scenario(
    "half of the pauses of a host that is late are in a file that lost its calls: never synchronisation",
    "host-bound unknown mixed",
    never_causes="after-host-wait",
)
def late_host_without_half_of_its_calls() -> TraceWriter:
    trace = TraceWriter()
    for step in range(160):
        start = step * 1000
        if step % 2:
            trace.launch("k", start, start + 8, 300)
        else:
            trace.dispatch(None, "k", start + 8, 300)
    trace.losses.append({"what": "host calls of GPU work", "count": 80, "reason": "the log was full"})
    return trace


@scenario(
    "the thread that launches is blocked while its process writes a checkpoint, as samples show: the file, and no code of the program",
    "host-bound",
    "host-late host-waits",
    says=(r"disk|file",),
    never_advises=(r"graph",),
)
def writes_of_checkpoints() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    stack = trace.stack([("main", "/home/a/train.py", 12), ("save", "/home/a/train.py", 88)])
    for _ in range(40):
        asleep(trace, stack, start, start + 9000, "fsync")
        for kernel in range(10):
            trace.launch("k", start + 9000 + kernel * 6, start + 9010 + kernel * 200, 195)
        trace.call("wait-device-idle", start + 9080, 1950, "cudaDeviceSynchronize")
        start += 11_040
    return trace


@scenario(
    "each of 40 new shapes is compiled for 30 ms, as samples show, and its code loaded: building code, where and how often",
    "host-bound",
    "host-compile",
    never_causes="host-late",
    advises=(r"40 times.*kernels\.py:77",),
)
def a_compiler_for_each_shape() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    stack = trace.stack([("main", "/home/a/run.py", 10), ("compile", "/home/a/kernels.py", 77)])
    for _ in range(40):
        trace.samples(stack, start, start + 30_000, period=1000)
        trace.call("load-module", start + 30_000, 900, "cuModuleLoadDataEx")
        trace.launch("k", start + 30_910, start + 30_920, 2000)
        trace.call("wait-device-idle", start + 30_920, 2005, "cudaDeviceSynchronize")
        start += 32_940
    return trace


@scenario(
    "the host waits for an event of each kernel and then spends twice as long on its own: the host",
    "host-bound",
    "host-late",
    headline=(r"66\.\d %",),
)
def own_work_after_each_event() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        trace.launch("k", step * 3000, step * 3000 + 8, 1000)
        trace.call("wait-event", step * 3000 + 10, 1005, "cudaEventSynchronize")
    return trace


@scenario(
    "copies within the device take 70 % and a kernel after each the rest: transfers, and neither pinning nor overlap is advised",
    "transfer-bound",
    advises=(r"write their results where they are read",),
    never_advises=(r"pin the memory",),
)
def copies_within_the_device() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 1000
        trace.copy("copy", start, start + 8, 700, 50_000_000)
        trace.launch("k", start + 6, start + 710, 280)
    return trace


@scenario(
    "each frame takes 15.8 of the 16.7 ms that a display gives it: the device, and no advice on the display",
    "device-bound",
    never_advises=(r"vsync|display|acquire",),
)
def frames_that_nearly_fill_their_time() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for frame in range(120):
        at = frame * 16_667
        trace.call("acquire-image", at, 500, "vkAcquireNextImageKHR")
        trace.submitted(at + 520, at + 560, 15_800, "draw")
        trace.call("present", at + 545, 20, "vkQueuePresentKHR")
    return trace


@scenario(
    "a host launches a kernel of 0.98 ms each millisecond: busy, and whether it has that pace or polls for the end is not in the trace",
    "device-bound",
    says=(r"may have waited for the device without a call",),
    never_says=(r"a step would take|part of the run would take",),
)
def host_and_device_of_one_pace() -> TraceWriter:
    trace = TraceWriter()
    for step in range(600):
        trace.launch("k", step * 1000, step * 1000 + 8, 980)
    return trace


@scenario(
    "pages of managed memory move for 1.4 ms before each kernel: transfers, and prefetching helps",
    "transfer-bound",
    says=(r"Do first: prefetch the pages",),
    never_advises=(r"pin the memory",),
)
def pages_that_move_before_each_kernel() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 2000
        trace.add(
            "transfers",
            until=start + 1420,
            position=0,
            queue=4,
            kind="host-to-device",
            bytes=2_000_000,
            start_ns=(start + 20) * 1000,
            duration_ns=1_400_000,
            submission=None,
            host_memory="managed",
        )
        trace.launch("k", start, start + 1425, 560)
    return trace


@scenario(
    "a server on Vulkan waits for events in its loop: it has nothing to do, and a graph would not help",
    "host-bound",
    "host-late host-waits",
    says=(r"as an event loop does",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def event_loop_on_vulkan() -> TraceWriter:
    trace, start = TraceWriter(api="vulkan"), 0.0
    stack = trace.stack([("serve", "/home/a/app.js", 5)])
    for _ in range(60):
        asleep(trace, stack, start, start + 20_000, "epoll_wait")
        trace.submitted(start + 20_010, start + 20_040, 900)
        trace.call("wait-fences", start + 20_045, 905, "vkWaitForFences")
        start += 20_970
    return trace


@scenario(
    "the launching thread takes its work from a queue, which another thread fills: that thread and its line are named",
    "host-bound",
    "host-late host-waits",
    headline=(r"waiting for another thread",),
    says=(r"pre\.py:33",),
    never_advises=(r"graph",),
)
def work_from_a_queue_of_another_thread() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    stack = trace.stack([("main", "/home/a/train.py", 9), ("get", "/usr/lib/python3.12/queue.py", 171)])
    beside = trace.stack([("worker", "/home/a/pre.py", 33)])
    for _ in range(60):
        asleep(trace, stack, start, start + 9000, "futex")
        trace.samples(beside, start, start + 9000, period=500, thread=12)
        trace.launch("k", start + 9000, start + 9010, 1800)
        trace.call("wait-device-idle", start + 9005, 1812, "cudaDeviceSynchronize")
        start += 10_830
    return trace


def pipeline_with_a_slow_stage(stages: int = 4, batches: int = 8, rounds: int = 12) -> list[TraceWriter]:
    """Returns the stages of a pipeline, of which the third computes for twice as long."""
    ranks = Ranks(stages)
    for _ in range(rounds * batches):
        for stage in range(stages):
            ranks.compute(stage, 2000 if stage == 2 else 1000, 2)
            if stage + 1 < stages:
                end = ranks.send(stage, stage + 1, 40)
                ranks.computed[stage + 1] = max(ranks.computed[stage + 1], end)
    return ranks.traces


def late_in_turns(size: int = 4, steps_of: int = 90) -> list[TraceWriter]:
    """Returns ranks of which each is late by 2 ms in every fourth step."""
    ranks, noise = Ranks(size), random.Random(41)
    for step in range(steps_of):
        for number in range(size):
            ranks.compute(number, 3000 + (2000 if step % size == number else 0) + noise.gauss(0, 10))
        ranks.reduce(150)
    return ranks.traces


def copies_of_a_loader(size: int = 3) -> list[TraceWriter]:
    """Returns ranks that reduce beside computing, of which the first has a heavier batch in each step."""
    ranks, noise = Ranks(size), random.Random(42)
    for _ in range(80):
        for number in range(size):
            ranks.compute(number, 4000 + (900 if number == 0 else 0) + noise.gauss(0, 15))
        ranks.reduce(250)
    return ranks.traces


JOINT_PATHS += [
    RanksScenario(
        "pipeline_with_a_slow_stage",
        "the third stage of a pipeline computes for twice as long: the path runs through its device",
        pipeline_with_a_slow_stage,
        says=(r"pipeline", r"DEVICE-BOUND +The critical path .* on rank 2"),
    ),
    RanksScenario(
        "each_rank_late_in_its_turn",
        "each rank computes for longer in every fourth step: computing, and nobody is late",
        late_in_turns,
        says=(r"DEVICE-BOUND +The critical path",),
        never_says=(r"Do first: find out why rank", r"rank \d+ is late"),
    ),
    RanksScenario(
        "heavier_batches_of_one_rank",
        "rank 0 of three computes for longer in each step: its device, and it is named",
        copies_of_a_loader,
        says=(r"DEVICE-BOUND +The critical path .* on rank 0", r"rank 0 arrived last at (79|80) of 80"),
        never_says=(r"rank [12] (arrived last|is late)",),
    ),
]


def late_together() -> list[TraceWriter]:
    """Returns equal ranks, the hosts of which are all late by 4 ms."""
    ranks = Ranks(4)
    for _ in range(60):
        for number in range(4):
            ranks.compute(number, 1500, late=4000)
        ranks.reduce(150)
    return ranks.traces


def late_by_a_lower_clock() -> list[TraceWriter]:
    """Returns ranks, of which the second's clock is lower, without a reason for that."""
    ranks = train(4, 100, lambda number, step: 9500 if number == 1 else 8000)
    for number, trace in enumerate(ranks):
        trace.counter("SM clock", "hertz", [(0, 1667e6 if number == 1 else 1980e6)])
    return ranks


def two_collectives_a_step() -> list[TraceWriter]:
    """Returns ranks with two collectives in each step, to the first of which the last rank comes late."""
    ranks, noise = Ranks(4), random.Random(3)
    for _ in range(60):
        for number in range(4):
            ranks.compute(number, 3000 + (700 if number == 3 else 0) + noise.gauss(0, 10))
        ranks.reduce(200, kernel="ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", function="ncclReduceScatter")
        for number in range(4):
            ranks.compute(number, 1000 + noise.gauss(0, 10))
        ranks.reduce(200, kernel=ALL_GATHER, function="ncclAllGather")
    return ranks.traces


JOINT_PATHS += [
    RanksScenario(
        "hosts_that_are_late_together",
        "all hosts are late alike: the hosts, and no rank is named",
        late_together,
        says=(r"HOST-BOUND +The critical path through all ranks waits for the host for 7\d\.\d % of its time\.",),
        never_says=(r"of that on rank", *BLAMED),
    ),
    RanksScenario(
        "rank_with_a_lower_clock",
        "rank 1 is late, since its clock is lower, for which the trace has no reason",
        late_by_a_lower_clock,
        says=(r"rank 1 arrived last at 100 of 100.*its clock was 1667 MHz", r"Do first: find out why the GPU of rank 1"),
        never_says=(r"power limit|heat",),
    ),
    RanksScenario(
        "late_for_one_of_two_collectives",
        "rank 3 is late for the first of two collectives of each step: its device",
        two_collectives_a_step,
        says=(r"DEVICE-BOUND +The critical path .* on rank 3", r"Do first: find out why rank 3"),
    ),
]


def uneven(seed: int) -> TraceWriter:
    """Returns forty kernels that vary by 40 %."""
    trace, noise, start = TraceWriter(), random.Random(seed), 0.0
    for _ in range(40):
        duration = 500 * (1 + noise.uniform(-0.4, 0.4))
        trace.launch("k", start, start + 8, duration)
        start += duration + 30 + noise.uniform(0, 300)
    return trace


def smaller_workgroups() -> TraceWriter:
    """Returns the usual steps, in which each workgroup has half of the invocations."""
    trace = steps(groups=512)
    for row in trace.rows["kernels"]:
        row["local_x"] = 128
    return trace


COMPARISONS += [
    Comparison(
        "half_the_invocations_of_each_workgroup",
        "not called equal work: workgroups have half of the invocations, and as many of them run",
        smaller_workgroups,
        lambda: steps(groups=512),
        equal_work=(False, None),
    ),
    Comparison(
        "gate_on_uneven_runs",
        "a gate of 1 % on runs that vary by far more cannot be judged, and fails",
        lambda: uneven(2),
        lambda: uneven(1),
        arguments=("--gate", "gpu_time > 1%"),
        exit_code=1,
        says=(r"NOT JUDGED", r"these runs could show only changes above"),
    ),
]
