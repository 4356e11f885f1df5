"""Programs whose answer is known by construction: each function plants one, and says what is right and why."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from trace_writer import H100_LIMITS, TraceWriter

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


@dataclass(frozen=True)
class Answer:
    """What a report must and must not say of a program. Patterns are regular expressions, in any case."""

    text: str
    """The right answer in a phrase, for the documentation."""
    verdicts: frozenset[str]
    """The verdicts that are right."""
    causes: frozenset[str] = frozenset()
    """Causes of which one must have most of the idle time; none are asked for where this is empty."""
    never_causes: frozenset[str] = frozenset()
    """Causes that must have less than a tenth of the idle time."""
    headline: tuple[str, ...] = ()
    """Patterns that the verdict at the head of the report must contain."""
    says: tuple[str, ...] = ()
    """Patterns that the report must contain."""
    never_says: tuple[str, ...] = ()
    """Patterns that the report must not contain."""
    advises: tuple[str, ...] = ()
    """Patterns of which each must be in some advice."""
    never_advises: tuple[str, ...] = ()
    """Patterns that no advice may contain."""


@dataclass(frozen=True)
class Scenario:
    """A program with its answer."""

    name: str
    answer: Answer
    write: Callable[[], TraceWriter]


SCENARIOS: list[Scenario] = []


def scenario(
    text: str,
    verdicts: str,
    causes: str = "",
    never_causes: str = "",
    headline: tuple[str, ...] = (),
    says: tuple[str, ...] = (),
    never_says: tuple[str, ...] = (),
    advises: tuple[str, ...] = (),
    never_advises: tuple[str, ...] = (),
) -> Callable[[Callable[[], TraceWriter]], Callable[[], TraceWriter]]:
    """Adds a function to the scenarios. Several verdicts or causes are parted by spaces."""
    answer = Answer(
        text,
        frozenset(verdicts.split()),
        frozenset(causes.split()),
        frozenset(never_causes.split()),
        headline,
        says,
        never_says,
        advises,
        never_advises,
    )

    def add(write: Callable[[], TraceWriter]) -> Callable[[], TraceWriter]:
        SCENARIOS.append(Scenario(write.__name__, answer, write))
        return write

    return add


# What the device is busy with


@scenario("two processes take turns on one GPU that is never idle: it is bound by the device", "device-bound")
def two_processes_in_turns() -> TraceWriter:
    trace = TraceWriter(processes=2, devices=2, uuids=["aa", "aa"], queues=[(1, 1), (2, 2)])
    for turn in range(200):
        process = turn % 2 + 1
        trace.launch(
            f"k{process}", turn * 10, 2500 + turn * 1002, 1000, process, thread=6 + process, process=process
        )
    return trace


@scenario("kernels without a pause while copies run beside them: bound by the device", "device-bound")
def copies_beside_saturated_kernels() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        trace.launch("k", step * 10, 1200 + step * 1001, 1000)
        trace.copy("host-to-device", step * 10 + 5, 1250 + step * 1001, 900, 2**24, queue=2)
    return trace


@scenario(
    "each kernel waits for its copy and the copy engine never rests: transfers, since faster kernels win nothing",
    "transfer-bound",
)
def kernels_wait_for_copies() -> TraceWriter:
    trace = TraceWriter()
    for step in range(60):
        copy = trace.copy("host-to-device", step * 12, 1000 + step * 10_000, 9990, 250_000_000, queue=2)
        kernel = trace.launch("k", step * 12 + 6, 1000 + step * 10_000 + 9995, 6000)
        trace.depends(kernel, copy)
    return trace


@scenario(
    "copies of results leave no pause on their stream, and the kernels wait until a buffer is free: transfers",
    "transfer-bound",
)
def kernels_wait_for_copies_back() -> TraceWriter:
    trace = TraceWriter()
    copied: list[int] = []
    for step in range(80):
        # There are two buffers: a kernel starts when the copy before the last has ended.
        start = (500, 3102)[step] if step < 2 else step * 4000 - 898
        kernel = trace.launch("render", step * 15, start, 2600)
        if step >= 2:
            trace.depends(kernel, copied[-2])
        copy = trace.copy("device-to-host", step * 15 + 6, 3102 + step * 4000, 3996, 96_000_000, queue=2)
        trace.depends(copy, kernel)
        copied.append(copy)
    return trace


def peer_copies(copy_queue: int, kernel_queues: list[int], duration: int) -> TraceWriter:
    """Copies between GPUs without a pause; a kernel of each of some queues waits for each copy."""
    trace = TraceWriter(devices=3, queues=[(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
    for step in range(100):
        copy = trace.copy("peer-to-peer", step * 30, 3000 + step * 4000, 3990, 1_000_000_000, queue=copy_queue)
        for number, queue in enumerate(kernel_queues):
            start = 3000 + step * 4000 + 3996
            kernel = trace.launch("k", step * 30 + 6 + number * 6, start, duration, queue=queue)
            trace.depends(kernel, copy)
    return trace


@scenario(
    "a GPU pushes data to another without a pause, and the kernels of both wait for the copies: transfers",
    "transfer-bound",
    headline=(r"stream 2 of GPU 0", r"faster kernels would\s+win at most"),
)
def pushes_to_another_gpu() -> TraceWriter:
    return peer_copies(2, [1, 3], 2200)


@scenario(
    "two GPUs pull data from a third and wait for it: transfers, although they idle at synchronisation for longer",
    "transfer-bound",
    headline=(r"stream 4 of GPU 1",),
)
def pulls_from_another_gpu() -> TraceWriter:
    return peer_copies(4, [1, 5], 1200)


@scenario(
    "copies to another GPU run beside kernels that leave no pause: bound by the device",
    "device-bound",
)
def copies_between_saturated_gpus() -> TraceWriter:
    return peer_copies(2, [1, 3, 5], 3985)


@scenario(
    "one GPU computes without a pause, and another has little to do with its results: bound by the device",
    "device-bound",
    headline=(r"Computing on GPU 0 holds up the other",),
)
def one_saturated_gpu_of_two() -> TraceWriter:
    trace = TraceWriter(devices=2, queues=[(1, 1), (2, 1), (3, 2)])
    for step in range(100):
        start = 3000 + step * 4000
        kernel = trace.launch("simulate", step * 30, start, 3990)
        copy = trace.copy("peer-to-peer", step * 30 + 6, start + 3996, 200, 50_000_000, queue=2)
        trace.depends(copy, kernel)
        trace.depends(trace.launch("draw", step * 30 + 12, start + 4202, 400, queue=3), copy)
    return trace


@scenario(
    "all-gathers leave no pause on their stream, and each layer waits for its own: communication",
    "communication-bound",
)
def layers_wait_for_their_weights() -> TraceWriter:
    trace = TraceWriter()
    kernel_name = "ncclDevKernel_AllGather_RING_LL"
    for layer in range(120):
        gather = trace.launch(kernel_name, layer * 14, 800 + layer * 2000, 1995, queue=3)
        gemm = trace.launch("gemm", layer * 14 + 7, 800 + layer * 2000 + 1998, 1550)
        trace.depends(gemm, gather)
    return trace


@scenario(
    "a tiny kernel polls beside all-reduces that never pause: communication, whatever one workgroup computes",
    "communication-bound latency-bound",
    never_says=(r"DEVICE-BOUND",),
)
def one_workgroup_beside_all_reduces() -> TraceWriter:
    trace = TraceWriter(limits=H100_LIMITS)
    for step in range(100):
        trace.launch(ALL_REDUCE, step * 12, 900 + step * 3000, 2990, queue=2, groups=24)
        trace.launch("watch_flag", step * 12 + 6, 905 + step * 3000, 2980, queue=3, groups=1)
    return trace


@scenario("four streams of kernels overlap: bound by the device", "device-bound")
def four_streams_overlap() -> TraceWriter:
    trace = TraceWriter(limits=H100_LIMITS)
    for step in range(100):
        for stream in range(4):
            start = 3000 + step * 1000 + stream * 2
            trace.launch(f"k{stream}", step * 40 + stream * 5, start, 995, stream + 1, groups=66)
    return trace


@scenario(
    "one workgroup runs for 10 s: the device is busy but not used, which more work at once would mend",
    "latency-bound",
    never_says=(r"DEVICE-BOUND",),
)
def one_persistent_workgroup() -> TraceWriter:
    trace = TraceWriter(limits=H100_LIMITS)
    trace.launch("persistent", 0, 10, 1e7, groups=1)
    return trace


@scenario("kernels of one workgroup on four streams fill 4 of 132 multiprocessors: latency", "latency-bound")
def four_workgroups() -> TraceWriter:
    trace = TraceWriter(limits=H100_LIMITS)
    for step in range(200):
        for stream in range(4):
            trace.launch("k", step * 40 + stream * 5, 9000 + step * 1000, 995, stream + 1, groups=1)
    return trace


@scenario("one kernel of 10 s fills the device: bound by the device, without a gap", "device-bound")
def one_long_kernel() -> TraceWriter:
    trace = TraceWriter(limits=H100_LIMITS)
    trace.launch("k", 0, 10, 1e7, groups=100_000)
    trace.call("wait-device-idle", 20, 1e7 - 5, "cudaDeviceSynchronize")
    return trace


@scenario("computing takes 90 %, of an all-reduce beside it a tenth is exposed: the device", "device-bound")
def mostly_hidden_all_reduce() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        trace.launch("gemm", step * 100, 3000 + step * 1000, 900)
        trace.launch(ALL_REDUCE, step * 100 + 6, 3100 + step * 1000, 899, queue=2)
    return trace


@scenario("eight steps of computing, then an exposed all-reduce of 6 %: the device", "device-bound")
def gradients_gathered_over_steps() -> TraceWriter:
    trace, call, start = TraceWriter(), 0, 3000
    for _ in range(40):
        for _ in range(8):
            trace.launch("forward_backward", call, start, 9900)
            start, call = start + 10_000, call + 6
        trace.launch(ALL_REDUCE, call, start, 5000)
        start, call = start + 5005, call + 6
    return trace


@scenario("fills of memory take 70 % and kernels 25 %: transfers", "transfer-bound")
def fills_take_most() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = 3000 + step * 1000
        trace.copy("fill", step * 10, start, 700, 2**30, function="cudaMemsetAsync")
        trace.launch("k", step * 10 + 5, start + 702, 250)
    return trace


@scenario("a thousand launches ahead, then a wait: the device", "device-bound")
def thousand_launches_ahead() -> TraceWriter:
    trace = TraceWriter()
    for step in range(5):
        start = step * 120_000
        for launch in range(1000):
            trace.launch("k", start + launch * 4, start + 10 + launch * 101, 100, call_duration=3)
        trace.call("wait-device-idle", start + 4001, 97_011, "cudaDeviceSynchronize")
    return trace


@scenario("a thread waits for a long copy on another stream: the device is not idle", "transfer-bound")
def waits_for_a_long_copy() -> TraceWriter:
    trace = TraceWriter()
    for step in range(50):
        start = step * 10_000
        trace.launch("k", start, start + 10, 1000)
        trace.copy("device-to-host", start + 6, start + 1010, 8000, 2**27, queue=2)
        trace.call("wait-queue-idle", start + 12, 9100, "cudaStreamSynchronize")
    return trace


# What the host does


@scenario("kernel B waits for kernel A, which the host launches late: the host", "host-bound", "host-late")
def late_launch_before_a_dependent_kernel() -> TraceWriter:
    trace = TraceWriter()
    for step in range(40):
        late = step * 1000 + 700
        first = trace.submission(late, 5, 1)
        trace.dispatch(first, "a", late + 8, 50, 1)
        second = trace.submission(step * 1000 + 20, 5, 2, thread=8)
        trace.depends(second, first)
        trace.dispatch(second, "b", late + 62, 150, 2)
    return trace


@scenario("cudaMalloc takes 0.6 ms of each step: the host allocates", "host-bound", "host-allocate")
def allocation_in_each_step() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 1000
        trace.call("allocate-memory", start, 600, "cudaMalloc")
        trace.launch("k", start + 605, start + 612, 380)
    return trace


@scenario(
    "cudaFree waits for the kernel of each step: a wait, and not a late host",
    "sync-bound mixed host-bound",
    "after-host-wait host-allocate",
    "host-late",
)
def free_that_synchronises() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 200
        trace.launch("k", start, start + 8, 100)
        trace.call("free-memory", start + 10, 103, "cudaFree")
    return trace


@scenario(
    "an allocation of pinned memory waits for all work of each step: a wait, and not a late host",
    "device-bound",
    "after-host-wait host-allocate",
    "host-late",
)
def pinned_allocation_that_synchronises() -> TraceWriter:
    trace = TraceWriter()
    for step in range(150):
        start = step * 560
        trace.launch("k", start, start + 9, 240)
        trace.call("allocate-memory", start + 12, 243, "cudaHostAlloc")
        trace.launch("k2", start + 300, start + 308, 205)
        trace.call("free-memory", start + 312, 206, "cudaFreeHost")
    return trace


@scenario(
    "one module load of 0.5 s among a hundred steps: one gap, in which code loads",
    "host-bound mixed device-bound",
    "host-compile",
)
def one_module_load() -> TraceWriter:
    trace, start = TraceWriter(), 0
    for step in range(100):
        if step == 50:
            trace.call("load-module", start, 500_000, "cuModuleLoadData")
            start += 500_000
        trace.launch("new" if step == 50 else "k", start, start + 10, 9000)
        trace.launch("k", start + 15, start + 9015, 900)
        start += 10_000
    return trace


@scenario(
    "module loads take 60 % of the run before its steady part: code loads",
    "host-bound mixed device-bound",
    never_says=(r"bound by the device itself",),
)
def loads_before_the_steady_part() -> TraceWriter:
    trace = TraceWriter()
    trace.launch("k", 0, 10, 100)
    start = 200
    for load in range(6):
        trace.call("load-module", start, 99_000, "cuModuleLoadData")
        trace.launch(f"w{load}", start + 99_100, start + 99_110, 800)
        start += 100_000
    for _ in range(400):
        trace.launch("k", start, start + 10, 990)
        start += 1000
    return trace


def builds_each_token(evidence: str, thread: int = 7) -> TraceWriter:
    """A decoder that builds new code for 50 ms before each of 92 tokens, loads it, and launches 20 kernels."""
    trace, start = TraceWriter(), 0.0
    stack = trace.stack(
        [("main", "/home/a/generate.py", 20), ("sdpa_forward", "/home/a/integrations/sdpa_attention.py", 158)]
    )
    for token in range(92):
        load = start + 50_000
        if evidence == "samples":
            trace.samples(stack, start, load, thread=thread)
        if evidence == "ranges":
            for text, domain, inset in (
                ("torch/nn/modules/module.py(1501): _call_impl", "python", 5),
                ("integrations/sdpa_attention.py(158): sdpa_forward", "python", 10),
                ("aten::_scaled_dot_product_cudnn_attention", "operator", 20),
            ):
                trace.range(text, start + inset, 50_000 - 2 * inset, domain, thread=thread)
        trace.call("load-module", load, 120, "cuLibraryLoadData", thread=thread)
        for kernel in range(20):
            call = load + 150 + kernel * 20
            trace.launch(f"attention_{token}" if kernel == 0 else "gemm", call, call + 8, 10)
        trace.call("wait-queue-idle", load + 550, 5, "cudaStreamSynchronize")
        start = load + 560
    return trace


BUILT = r"new code is built and loaded 92 times"


@scenario(
    "a decoder builds and loads new code for each token, as samples show: where and how often",
    "host-bound",
    "host-compile",
    "host-late",
    advises=(BUILT + r", at sdpa_attention\.py:158, with 50\.\d ms",),
)
def builds_code_for_each_token() -> TraceWriter:
    return builds_each_token("samples")


@scenario(
    "the same without samples, with ranges of Python's functions",
    "host-bound",
    "host-compile",
    "host-late",
    advises=(BUILT + r", at sdpa_attention\.py:158, with 50\.\d ms",),
)
def builds_code_in_ranges() -> TraceWriter:
    return builds_each_token("ranges")


@scenario(
    "the same with neither: how often, and no line",
    "host-bound",
    "host-compile",
    "host-late",
    advises=(BUILT + r", with 50\.\d ms",),
)
def builds_code_without_evidence() -> TraceWriter:
    return builds_each_token("calls")


@scenario(
    "each token reads its input for 50 ms and then loads code, as samples show: late, and the load apart",
    "host-bound",
    "host-late",
    "host-compile",
    never_advises=(r"built",),
)
def reads_before_each_load() -> TraceWriter:
    return loads_after("load_batch", "/home/a/data.py", "running")


@scenario(
    "the same, asleep in a function that says nothing",
    "host-bound",
    "host-late",
    "host-compile",
    never_advises=(r"built",),
)
def sleeps_before_each_load() -> TraceWriter:
    return loads_after("step", "/home/a/serve.py", "blocked")


def loads_after(function: str, file: str, state: str) -> TraceWriter:
    """A program that is in a function for 50 ms before each of 60 loads, and launches 20 kernels after each."""
    trace, start = TraceWriter(), 0.0
    stack = trace.stack([("main", "/home/a/serve.py", 20), (function, file, 33)])
    for _ in range(60):
        load = start + 50_000
        trace.samples(stack, start, load)
        trace.call("load-module", load, 120, "cuModuleLoadData")
        for kernel in range(20):
            call = load + 150 + kernel * 20
            trace.launch("gemm", call, call + 8, 10)
        start = load + 560
    for sample in trace.rows["samples"]:
        sample["state"] = state
    return trace


@scenario(
    "another thread builds and loads new code, and the launching thread goes on at once after it",
    "host-bound",
    "host-compile",
    "host-late",
    advises=(BUILT,),
)
def builds_code_on_another_thread() -> TraceWriter:
    return builds_each_token("calls", thread=8)


@scenario(
    "another thread loads code beside a busy device: loads that delay nothing are no cause",
    "device-bound",
    never_causes="host-compile",
    never_advises=(r"built",),
)
def loads_that_delay_nothing() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 10_000
        trace.launch("k", start, start + 10, 9900)
        trace.call("load-module", start + 4000, 3000, "cuModuleLoadData", thread=8)
    return trace


@scenario(
    "cudaFree on another thread waits for the kernel of each step, and the launch comes after it: a wait",
    "sync-bound mixed device-bound",
    "after-host-wait",
    "host-allocate",
    advises=(r"cudaFree of another thread waits for the GPU",),
)
def free_of_another_thread_synchronises() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 600
        trace.launch("k", start, start + 8, 400)
        trace.call("free-memory", start + 20, 405, "cudaFree", thread=8)
    return trace


@scenario(
    "cudaFreeAsync on another thread waits for nothing: the launching thread is late",
    "host-bound",
    "host-late",
    "after-host-wait",
)
def asynchronous_free_of_another_thread() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 1200
        trace.launch("k", start, start + 8, 400)
        trace.call("free-memory", start + 402, 5, "cudaFreeAsync", thread=8)
        trace.call("other-call", start + 410, 1, "cuCtxSetLimit")
    return trace


@scenario(
    "each launch takes 8 ms: no graph helps, and what holds it up is not in the trace",
    "host-bound",
    "submit-call",
    advises=(r"a launch takes some µs: what held the calls up is not in the trace",),
    never_advises=(r"graph",),
)
def each_launch_takes_long() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        trace.launch("k", step * 9000, step * 9000 + 8010, 900, call_duration=8000)
    return trace


@scenario(
    "every fourth launch takes 6 ms: these have a reason of their own",
    "host-bound",
    "submit-call",
    advises=(r"99 calls took 594 ms of this time .* the usual call takes 5\.00 µs: what held the calls up",),
    never_advises=(r"graph", r"launch the next before"),
)
def every_fourth_launch_takes_long() -> TraceWriter:
    trace, start = TraceWriter(), 0
    for step in range(400):
        duration = 6000 if step % 4 == 0 else 5
        trace.launch("k", start, start + duration + 5, 900, call_duration=duration)
        start += duration + 910
    return trace


@scenario(
    "a result of 4 bytes is read back after each 20 kernels, by a call that waits: read back less often",
    "device-bound mixed sync-bound",
    "after-host-wait",
    advises=(r"read results back less often",),
    never_advises=(r"start them before", r"\bpin\b"),
)
def reads_back_small_results() -> TraceWriter:
    trace, start = TraceWriter(), 0
    for _ in range(200):
        for kernel in range(20):
            trace.launch("k", start + kernel * 5, start + 8 + kernel * 50, 49)
        trace.copy(
            "device-to-host", start + 110, start + 1010, 2, 4, host_memory="pageable", call_duration=925
        )
        trace.call("other-call", start + 1036, 1, "cuCtxSetLimit")
        start += 1100
    return trace


@scenario(
    "each launch returns with its kernel (CUDA_LAUNCH_BLOCKING): the host waits in it",
    "device-bound mixed sync-bound",
    "after-host-wait",
    advises=(r"CUDA_LAUNCH_BLOCKING",),
    never_advises=(r"graph",),
)
def launches_that_block() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        trace.launch("k", step * 500, step * 500 + 8, 300, call_duration=320)
        trace.call("other-call", step * 500 + 325, 1, "cuCtxSetLimit")
    return trace


@scenario(
    "a pause of 50 ms after each ten steps: regular, and the host is late",
    "device-bound mixed host-bound",
    "host-late",
)
def regular_pauses() -> TraceWriter:
    trace, start, noise = TraceWriter(), 0.0, random.Random(1)
    for step in range(400):
        trace.launch("k", start, start + 10, 9900)
        start += 10_000 + noise.uniform(-20, 20)
        if step % 10 == 9:
            start += 50_000 + noise.uniform(-3000, 3000)
    return trace


@scenario(
    "two threads submit in turn and sleep between: the host is late", "host-bound", "host-late host-waits"
)
def two_threads_in_turn() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        trace.launch("k", step * 1000 + 900, step * 1000 + 906, 90, thread=7 + step % 2)
    return trace


@scenario("three kernels with pauses between: the host", "host-bound", "host-late")
def three_kernels() -> TraceWriter:
    trace = TraceWriter()
    for step in range(3):
        trace.launch("k", step * 1000, step * 1000 + 10, 300)
    return trace


@scenario(
    "each token's result is read back before the next is launched: a wait", "sync-bound", "after-host-wait"
)
def read_back_each_token() -> TraceWriter:
    return tokens(180)


@scenario(
    "the same, with 0.4 ms of Python after the wait: host and waits in turn",
    "host-bound sync-bound mixed",
    "host-late after-host-wait",
)
def read_back_with_slow_python() -> TraceWriter:
    return tokens(400)


def tokens(pause: float) -> TraceWriter:
    """Returns a decoder: 20 kernels, a copy of 4 bytes and a wait for each token, then a pause of the host."""
    trace, start = TraceWriter(), 0.0
    for _ in range(200):
        for kernel in range(20):
            trace.launch("decode", start + kernel * 5, start + 8 + kernel * 5.5, 5.2, call_duration=4)
        end = start + 118
        trace.copy("device-to-host", start + 101, end + 1, 1.5, 4, call_duration=4)
        trace.call("wait-queue-idle", start + 106, end + 8 - (start + 106), "cudaStreamSynchronize")
        start = end + pause
    return trace


@scenario(
    "the processors are under pressure for 95 % of the time: the report says so",
    "host-bound",
    says=(r"pressure|stalled|waited for a processor|short of processors",),
)
def pressure_on_the_processors() -> TraceWriter:
    trace = TraceWriter()
    for step in range(2000):
        trace.launch("k", step * 1000 + 700, step * 1000 + 706, 290)
    values = [(step * 100_000.0, 95.0) for step in range(20)]
    for name, source in (("machine", "/proc/pressure/cpu"), ("cgroup", "cpu.pressure")):
        trace.counter(f"{name} stalled on cpu (some)", "percent", values, None, source, lasts=100_000)
    return trace


@scenario(
    "a loader is late in a file without calls that wait: its thread and its range are known",
    "host-bound",
    "host-late",
    headline=(r"it was in enumerate\(DataLoader\)",),
    never_says=(r"not known which thread",),
    advises=(r"load ahead in worker processes",),
)
def loader_without_waits() -> TraceWriter:
    trace = TraceWriter()
    begin = 0.0
    for _ in range(60):
        trace.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin, 40_000, "operator")
        for kernel in range(50):
            trace.launch(f"k{kernel % 5}", begin + 40_010 + kernel * 8, begin + 40_020 + kernel * 200, 198)
        begin += 49_620
    return trace


@scenario(
    "a second process starts 9 s after the work of the first: no thread is late",
    "host-bound unknown mixed",
    never_says=(r"in code of the program",),
    says=(r"before the first call of the process",),
)
def second_process_starts_later() -> TraceWriter:
    trace = TraceWriter(processes=2, devices=2, uuids=["aa", "aa"], queues=[(1, 1), (2, 2)])
    for step in range(1000):
        trace.launch("k", step * 5, 10 + step * 1001, 1000)
        trace.launch("k", 1e7 + step * 5, 1e7 + 10 + step * 1001, 1000, 2, thread=9, process=2)
    trace.processes[1]["start_ns"] = 9_900_000_000
    return trace


@scenario(
    "another thread allocates pinned memory while the submitting thread does nothing: the host allocates",
    "host-bound",
    "host-allocate",
)
def another_thread_allocates() -> TraceWriter:
    trace = TraceWriter()
    for step in range(50):
        start = step * 10_000
        trace.call("allocate-memory", start + 300, 6500, "cudaHostAlloc", thread=8)
        trace.launch("k", start + 7000, start + 7006, 2990)
    return trace


@scenario(
    "the recording itself takes 60 % of the time: this is not the program's",
    "device-bound mixed",
    "recording",
)
def recording_costs() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 1000
        trace.call("recording", start + 310, 600, "CUPTI")
        trace.launch("k", start + 920, start + 930, 370)
    return trace


@scenario(
    "two kinds of pauses, one regular and one at random: the host is late",
    "device-bound mixed host-bound",
    "host-late",
)
def two_kinds_of_pauses() -> TraceWriter:
    trace, start, regular, noise = TraceWriter(), 0.0, 40_000.0, random.Random(2)
    while start < 4e6:
        duration = noise.uniform(500, 4000)
        trace.launch("k", start, start + 5, duration)
        start += duration + 5
        if start > regular:
            start, regular = start + 12_000, regular + 40_000
        elif noise.random() < 0.1:
            start += 3000
    return trace


@scenario(
    "launches at random times: irregular, and the host is late", "device-bound mixed host-bound", "host-late"
)
def random_pauses() -> TraceWriter:
    trace, start, noise = TraceWriter(), 0.0, random.Random(3)
    for _ in range(500):
        duration = noise.expovariate(1 / 2000)
        trace.launch("k", start, start + 5, duration + 1)
        start += duration + 1006
    return trace


@scenario(
    "a copy of pageable memory blocks its call for 0.9 ms: pin the memory; fewer launches would not help",
    "host-bound mixed sync-bound latency-bound transfer-bound",
    advises=(r"\bpin",),
    never_advises=(r"graph", r"fuse"),
)
def copies_of_pageable_memory() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 1010
        trace.copy(
            "host-to-device", start, start + 800, 100, 2**22, call_duration=903, host_memory="pageable"
        )
        trace.launch("k", start + 904, start + 910, 90)
    return trace


@scenario(
    "results are copied to pageable memory by a call that blocks: pin the memory",
    "host-bound mixed sync-bound latency-bound transfer-bound",
    advises=(r"\bpin",),
    never_advises=(r"graph", r"fuse"),
)
def results_to_pageable_memory() -> TraceWriter:
    trace = TraceWriter()
    for step in range(120):
        start = step * 3000
        trace.launch("k", start, start + 9, 300)
        trace.copy(
            "device-to-host",
            start + 8,
            start + 312,
            420,
            12_000_000,
            call_duration=2700,
            host_memory="pageable",
            function="cudaMemcpy",
        )
    return trace


@scenario(
    "one launch of 1.5 s among thousands loads code: many small launches are not the reason",
    "host-bound mixed",
    never_advises=(r"many small launches|fewer launches|graph",),
)
def one_slow_launch_among_thousands() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for step in range(4000):
        slow = step == 1700
        duration = 1_500_000 if slow else 4
        trace.launch("late" if slow else "k", start, start + duration + 3, 30, call_duration=duration)
        start += duration + 36
    return trace


@scenario(
    "a display shows 60 pictures a second and the GPU needs 3 ms for each: nothing is to be removed",
    "sync-bound host-bound mixed",
    says=(r"display|vertical|refresh|vsync",),
    never_advises=(r"before the loop", r"remove", r"graph"),
)
def pictures_for_a_display() -> TraceWriter:
    return pictures(16_667, 3000)


@scenario(
    "the same at 144 Hz with 2 ms of work",
    "sync-bound host-bound mixed",
    says=(r"display|vertical|refresh|vsync",),
    never_advises=(r"before the loop", r"remove", r"graph"),
)
def pictures_at_144_hertz() -> TraceWriter:
    return pictures(6944, 2000)


def pictures(period: float, work: float) -> TraceWriter:
    """Returns a Vulkan program that presents one picture a period and waits in the acquisition of the next."""
    trace = TraceWriter(api="vulkan")
    for picture in range(120):
        start = picture * period
        submission = trace.submission(start + 300, 50, kind="command-buffers", command_buffers=1)
        number = trace.command_buffer(submission, start + 360, work, dispatches=1)
        trace.dispatch(submission, "k", start + 360, 500, command_buffer=number)
        trace.add(
            "opaque_work",
            command_buffer=number,
            position=1,
            queue=1,
            kind="render-pass",
            start_ns=round((start + 865) * 1000),
            duration_ns=round((work - 510) * 1000),
        )
        trace.call("present", start + 360, 40, "vkQueuePresentKHR")
        trace.call("acquire-image", start + 410, period - 210, "vkAcquireNextImageKHR")
    return trace


@scenario(
    "the host waits for the frame before the last in vkAcquireNextImageKHR while the device draws: bound by the device, and a faster kernel helps",
    "device-bound",
    says=(r"Do first: make the kernel shade faster",),
    never_says=(r"At half its time, the replayed part",),
)
def image_of_a_frame_still_drawn() -> TraceWriter:
    trace, host, free, ends = TraceWriter(api="vulkan"), 100.0, 0.0, []
    for frame in range(100):
        if frame >= 2:
            drawn = max(host + 10, ends[frame - 2] + 60)
            trace.call("acquire-image", host, drawn - host, "vkAcquireNextImageKHR")
            host = drawn
        begins = max(host + 80, free + 2)
        trace.submitted(host, begins, 24_000, "shade")
        free = begins + 24_000
        ends.append(free)
        trace.call("present", host + 30, 30, "vkQueuePresentKHR")
        host += 70
    return trace


@scenario(
    "the host signals a timeline semaphore 5 ms after the submission: the device waits for the host",
    "sync-bound host-bound mixed",
    "host-signal",
)
def signal_of_the_host() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for step in range(50):
        start = step * 10_000
        submission = trace.submitted(start, start + 5010, 4900)
        trace.depends(submission, signal=start + 5000)
    return trace


# What was not measured


@scenario(
    "a graph with 9 ms between two kernels: what it waited for was not recorded",
    "unknown",
    "unknown",
    "within-command-buffer graph-launch",
)
def pause_inside_a_graph() -> TraceWriter:
    trace = TraceWriter()
    for step in range(20):
        start = step * 10_000
        launch = trace.submission(start, 20, kind="graph", command_buffers=1)
        number = trace.command_buffer(launch, start + 30, 9900, dispatches=2, host_functions=0)
        trace.dispatch(launch, "k", start + 30, 450, command_buffer=number, position=0)
        trace.dispatch(launch, "k", start + 9480, 450, command_buffer=number, position=2)
    return trace


@scenario(
    "two dispatches of 0.45 ms with 9 ms between in a command buffer: it is not busy",
    "unknown latency-bound sync-bound",
    never_says=(r"DEVICE-BOUND",),
)
def pause_inside_a_command_buffer() -> TraceWriter:
    return command_buffers_with_a_pause("dispatch")


@scenario(
    "the same, timed as a whole: how long it computed is unknown",
    "unknown",
    never_says=(r"DEVICE-BOUND", r"busy for 9\d"),
)
def command_buffers_timed_as_a_whole() -> TraceWriter:
    return command_buffers_with_a_pause("command-buffer")


def command_buffers_with_a_pause(mode: str) -> TraceWriter:
    """Returns command buffers of 9.9 ms with 0.9 ms of work, whose dispatches have times in the mode `dispatch`."""
    trace = TraceWriter(api="vulkan", sampling_mode=mode)
    for step in range(50):
        start = step * 10_000
        submission = trace.submission(start, 20, kind="command-buffers", command_buffers=1)
        number = trace.command_buffer(submission, start + 30, 9900, dispatches=2)
        for position, at in ((0, start + 30), (1, start + 9480)):
            timed = mode == "dispatch"
            trace.dispatch(
                submission,
                "k",
                at if timed else None,
                450 if timed else None,
                command_buffer=number,
                position=position,
            )
    return trace


@scenario(
    "CUDA graphs that are timed as a whole: how long they compute is unknown",
    "unknown",
    never_says=(r"DEVICE-BOUND",),
)
def graphs_timed_as_a_whole() -> TraceWriter:
    trace = TraceWriter()
    for step in range(64):
        start = step * 5000
        launch = trace.submission(start, 14, kind="graph", command_buffers=1)
        trace.command_buffer(launch, start + 25, 4960, dispatches=40, timing="measured")
    return trace


@scenario(
    "the middle one of three command buffers has no times and 1 ms: this is not the device's own start-up",
    "unknown device-bound mixed",
    never_causes="launch-latency within-command-buffer graph-launch",
)
def command_buffer_without_times() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for step in range(60):
        start = step * 2000
        submission = trace.submission(start, 25, kind="command-buffers", command_buffers=3)
        for at, duration in ((start + 40, 430.0), (None, None), (start + 1480, 480.0)):
            number = trace.command_buffer(
                submission,
                at,
                duration,
                dispatches=1,
                timing="measured" if at is not None else "no-timestamps",
            )
            trace.dispatch(submission, "k", at, duration, command_buffer=number)
    return trace


@scenario(
    "the first half was launched before the recording: its pauses are unknown",
    "unknown mixed device-bound host-bound",
    "unknown host-late",
)
def launched_before_the_recording() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 1000
        if step < 100:
            trace.dispatch(None, "k", start + 10, 500)
        else:
            trace.launch("k", start, start + 10, 500)
    return trace


@scenario(
    "an import of kernels without calls, idle for 40 %: no cause is claimed",
    "unknown mixed device-bound",
    "unknown",
)
def kernels_without_calls() -> TraceWriter:
    trace = TraceWriter()
    for step in range(500):
        trace.dispatch(None, "k", step * 1000, 600)
    return trace


@scenario("the same, idle for 70 %", "unknown", "unknown")
def idle_kernels_without_calls() -> TraceWriter:
    trace = TraceWriter()
    for step in range(500):
        trace.dispatch(None, "k", step * 1000, 300)
    return trace


@scenario(
    "an import whose launches have no duration and no thread: the launches come late",
    "host-bound unknown",
    "host-late unknown",
)
def launches_without_threads() -> TraceWriter:
    trace = TraceWriter()
    for step in range(500):
        trace.launch("k", step * 1000, step * 1000 + 5, 300, thread=None, call_duration=0)
    return trace


@scenario(
    "each kernel starts 5 ms after its launch on an idle device: more than its own start-up takes",
    "unknown mixed",
    "unknown",
    "launch-latency",
    says=(r"another process|not recorded",),
)
def starts_late_on_an_idle_device() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 10_000
        trace.launch("k", start, start + 5000, 4000)
        trace.call("wait-device-idle", start + 6, 9000, "cudaDeviceSynchronize")
    return trace


@scenario(
    "a prefetch of managed memory runs 6 ms before each kernel: this is not the device's own start-up",
    "unknown transfer-bound mixed",
    never_causes="launch-latency",
)
def prefetch_before_each_kernel() -> TraceWriter:
    trace = TraceWriter()
    for step in range(50):
        start = step * 10_000
        trace.submission(start, 5, 1, "prefetch", function="cudaMemPrefetchAsync")
        trace.launch("k", start + 6, start + 6000, 3900)
    return trace


@scenario(
    "each kernel starts 450 µs after its launch on an idle device: CUDA starts kernels within 100 µs",
    "unknown mixed",
    never_causes="launch-latency",
    never_says=(r"fewer and larger kernels",),
)
def starts_450_us_late() -> TraceWriter:
    trace = TraceWriter()
    for step in range(300):
        start = step * 1000
        trace.launch("k", start, start + 450, 500)
        trace.call("wait-queue-idle", start + 6, 950, "cudaStreamSynchronize", queue=1)
    return trace


@scenario(
    "two processes take turns on one GPU, which takes 90 µs to change from one to the other",
    "device-bound",
    "context-switch",
    says=(r"MPS", r"process 1001"),
    never_says=(r"fewer and larger kernels",),
)
def processes_in_turns() -> TraceWriter:
    trace = TraceWriter(processes=2, devices=2, uuids=["bb", "bb"], queues=[(1, 1), (2, 2)])
    for step in range(300):
        start = step * 4000
        trace.launch("train", start, start + 10, 1900, queue=1)
        trace.launch("serve", start + 3, start + 2000, 1980, queue=2, process=2, thread=9)
    return trace


@scenario(
    "a prefetch of managed memory on a stream of its own runs 4 ms before each kernel: the kernel may have waited for it",
    "unknown mixed",
    "unknown",
    says=(r"move of managed memory on another stream",),
)
def prefetch_on_another_stream() -> TraceWriter:
    trace = TraceWriter()
    for step in range(60):
        start = step * 9000
        trace.submission(start, 5, 2, "prefetch", function="cudaMemPrefetchAsync")
        trace.launch("k", start + 10, start + 4000, 4900)
    return trace


@scenario(
    "a prefetch on a stream of its own runs beside each kernel, and the host launches 4 ms late: it delays nothing",
    "host-bound",
    "host-late",
    never_says=(r"managed memory",),
)
def prefetch_that_delays_nothing() -> TraceWriter:
    trace = TraceWriter()
    for step in range(60):
        start = step * 9000
        trace.launch("k", start, start + 10, 3000)
        trace.submission(start + 6, 5, 2, "prefetch", function="cudaMemPrefetchAsync")
    return trace


@scenario(
    "5 ms of each step lie behind a function of the host without times: it took at most that long",
    "unknown",
    "host-function",
    says=(r"at most",),
    never_says=(r"HOST-BOUND",),
)
def host_function_without_times() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 6000
        trace.launch("a", start, start + 10, 400)
        trace.submission(start + 8, 5, kind="host-function", function="cudaLaunchHostFunc")
        trace.launch("b", start + 20, start + 5500, 480)
    return trace


# What the clocks say


@scenario(
    "two of ten kernels have device times that count from another start: the times contradict each other by two hours",
    "unknown",
    headline=(r"Host and device times contradict each other",),
)
def times_of_two_clocks() -> TraceWriter:
    trace = TraceWriter()
    for step in range(10):
        start = 7_200_000_000 + step * 400
        trace.launch("k", start, step * 400 + 10 if step < 2 else start + 10, 80)
    return trace


@scenario(
    "each command buffer ends 0.2 ms after it was seen to have finished: the times contradict each other",
    "unknown host-bound",
    headline=(r"seen to have finished",),
)
def ends_after_it_was_seen() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for step in range(100):
        start = step * 1000
        trace.submitted(start, start + 30, 400)
        trace.rows["command_buffers"][-1]["seen_ns"] = (start + 230) * 1000
        trace.call("wait-fences", start + 21, 208, "vkWaitForFences")
    return trace


@scenario(
    "pauses of 2 µs with a clock that errs by 20 µs: the causes are uncertain",
    "unknown mixed device-bound latency-bound host-bound",
    says=(r"±|at least|uncertain|all of it",),
)
def pauses_below_the_clocks_error() -> TraceWriter:
    trace = TraceWriter(clock_error_ns=20_000)
    for step in range(2000):
        trace.launch("k", step * 4, step * 4 + 2.5, 2, call_duration=1.5)
    return trace


@scenario(
    "all kernels start 0.5 ms before their launch, with a stated error of 1 µs: the headline says that the times contradict each other",
    "unknown",
    headline=(r"contradict|cannot be right|before (its|their|the) (call|launch|submission)",),
)
def starts_before_its_launch() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        trace.launch("k", step * 1000 + 600, step * 1000 + 100, 300)
    return trace


@scenario(
    "waits return 0.2 ms before the work that they waited for ends: the times contradict each other",
    "unknown sync-bound mixed device-bound",
    headline=(r"contradict|before the work .* end|too early|returned before",),
)
def waits_that_return_early() -> TraceWriter:
    trace = TraceWriter()
    for step in range(150):
        start = step * 2000
        trace.launch("k", start, start + 10, 1100)
        trace.call("wait-queue-idle", start + 8, 902, "cudaStreamSynchronize", queue=1)
    return trace


def synchronising(
    early: float, wait: str = "wait-queue-idle", error_ns: int | None = None, ahead: float = 0
) -> TraceWriter:
    """A program that waits for each kernel, whose waits return some time before the kernels end and whose kernels start some time before their
    launches. Without an error the trace states none of its clock."""
    trace = TraceWriter(queues=[(1, 1)])
    if error_ns is None:
        del trace.devices[0]["clock"]
    else:
        trace.devices[0]["clock"]["error_ns"] = error_ns
    at = 1000.0
    for _ in range(200):
        start = at + 10 - ahead
        trace.launch("k", at, start, 120)
        returned = start + 120 - early
        queue = 1 if wait == "wait-queue-idle" else None
        trace.call(wait, at + 6, returned - at - 6, queue=queue)
        at = start + 120 + 150 - early / 2
    return trace


@scenario("waits return as the work seems to end, and no clock error is stated: synchronisation", "sync-bound", "after-host-wait")
def waits_that_return_at_the_end() -> TraceWriter:
    return synchronising(0)


@scenario("waits return 5 µs before the work seems to end, as on real GPUs: synchronisation", "sync-bound", "after-host-wait")
def waits_that_return_5_us_early() -> TraceWriter:
    return synchronising(5)


@scenario(
    "the same by 20 µs: synchronisation, and the headline says first that the times contradict each other",
    "sync-bound unknown",
    never_causes="host-late",
    headline=(r"^[^A-Z]*\S* *.*times contradict each other.*(SYNC-BOUND|UNKNOWN)",),
)
def waits_that_return_20_us_early() -> TraceWriter:
    return synchronising(20)


@scenario(
    "the same by 50 µs",
    "sync-bound unknown mixed",
    never_causes="host-late",
    headline=(r"times contradict each other.*(SYNC-BOUND|UNKNOWN|MIXED)",),
)
def waits_that_return_50_us_early() -> TraceWriter:
    return synchronising(50)


@scenario(
    "the same by 90 µs",
    "sync-bound unknown mixed",
    never_causes="host-late",
    headline=(r"times contradict each other.*(SYNC-BOUND|UNKNOWN|MIXED)",),
)
def waits_that_return_90_us_early() -> TraceWriter:
    return synchronising(90)


@scenario(
    "waits for events return 50 µs before the work ends, and no clock error tells whether for that work: unknown, and never the host",
    "unknown sync-bound",
    never_causes="host-late",
    says=(r"states no error of its clock",),
)
def event_waits_that_return_early() -> TraceWriter:
    return synchronising(50, "wait-event")


@scenario(
    "waits for events return 5 µs before the work ends: synchronisation", "sync-bound", "after-host-wait"
)
def event_waits_that_return_5_us_early() -> TraceWriter:
    return synchronising(5, "wait-event")


@scenario(
    "kernels start 22 µs before their launches, and no clock error is stated: the times contradict each other",
    "sync-bound unknown",
    headline=(r"times contradict each other.*start before their calls.*(SYNC-BOUND|UNKNOWN)",),
)
def kernels_before_their_launches() -> TraceWriter:
    return synchronising(0, ahead=32)


@scenario(
    "the clock errs by 50 µs as stated, and kernels start 22 µs before their launches: no contradiction",
    "sync-bound unknown mixed",
    never_says=(r"contradict",),
)
def kernels_before_their_launches_within_the_error() -> TraceWriter:
    return synchronising(0, error_ns=50_000, ahead=32)


@scenario(
    "kernels of one stream end after the next ones: the times of the device contradict each other",
    "host-bound unknown mixed device-bound",
    headline=(r"Device times contradict each other.*(BOUND|UNKNOWN|MIXED)",),
)
def kernels_that_outlast_their_stream() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        trace.launch("k", step * 1000, step * 1000 + 10, 5000 if step % 20 == 3 else 300)
    return trace


@scenario(
    "a thread waits for each kernel, and another launches at a rhythm of its own: the host, and no synchronisation",
    "host-bound",
    "host-late",
    never_causes="after-host-wait",
)
def waits_of_an_unrelated_thread() -> TraceWriter:
    trace = TraceWriter()
    numbers = random.Random(8)
    for step in range(300):
        start, duration = step * 250, numbers.uniform(40, 100)
        trace.launch("k", start, start + 10, duration)
        trace.call("wait-event", start + 6, duration + 9, "cudaEventSynchronize", thread=9)
    return trace


@scenario(
    "a thread waits for each kernel, and then has another one launch the next: synchronisation",
    "sync-bound",
    "after-host-wait",
)
def waits_of_a_thread_that_hands_on() -> TraceWriter:
    trace = TraceWriter()
    numbers = random.Random(8)
    at = 0.0
    for _ in range(300):
        duration = numbers.uniform(40, 100)
        trace.launch("k", at, at + 10, duration)
        trace.call("wait-event", at + 6, duration + 9, "cudaEventSynchronize", thread=9)
        at += duration + 15 + numbers.uniform(90, 110)
    return trace


# What to do first


@scenario(
    "sixty kernels share the time of a busy device: no single step would help much",
    "device-bound",
    says=(r"Do first: no single step would help much\. The step that could win most: make the kernel",),
)
def many_equal_kernels() -> TraceWriter:
    trace = TraceWriter()
    for step in range(1200):
        trace.launch(f"k{step % 60}", step * 10, 3000 + step * 100, 99)
    return trace


@scenario(
    "an allocation of 8 s at the start, and then a host that is late: the first step is about the host, not about the allocation",
    "host-bound",
    headline=(r"One gap of 8\.",),
    says=(r"Do first: [^.]*(launch|graph)",),
    never_says=(r"Do first: allocate",),
)
def allocation_at_the_start() -> TraceWriter:
    trace = TraceWriter()
    trace.launch("fill", 0, 20, 10)
    trace.call("allocate-memory", 40, 8_000_000, "cudaMalloc")
    for step in range(400):
        start = 8_000_100 + step * 1000
        trace.launch("k", start, start + 10, 300)
    return trace


@scenario(
    "a kernel is slow in the warm-up only: the first step is about the one that takes the time afterwards",
    "device-bound",
    says=(r"Do first: [^.]*steady",),
)
def slow_kernel_in_the_warm_up() -> TraceWriter:
    trace = TraceWriter()
    trace.call("load-module", 0, 20_000, "cuModuleLoadData")
    trace.launch("once", 20_010, 20_030, 60_000, groups=64)
    for step in range(400):
        at = 80_040 + step * 1001
        trace.launch("once", 20_100 + step * 20, at, 90, groups=64)
        trace.launch("steady", 20_110 + step * 20, at + 91, 909)
    return trace


# What belongs into the headline


@scenario("the device was lost in the middle: said", "device-bound mixed unknown", headline=(r"lost",))
def lost_device() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    trace.devices[0]["lost"] = True
    for step in range(40):
        start, finished = step * 1000.0, step < 30
        submission = trace.submission(start, 5, kind="command-buffers", command_buffers=1)
        at, duration = (start + 10, 900.0) if finished else (None, None)
        number = trace.command_buffer(
            submission, at, duration, dispatches=1, timing="measured" if finished else "device-lost"
        )
        trace.dispatch(submission, "k", at, duration, command_buffer=number)
    return trace


@scenario(
    "seven of eight GPUs are busy and one is never used: said",
    "device-bound mixed",
    headline=(r"never used|not used|unused|ran nothing|no work",),
)
def unused_gpu() -> TraceWriter:
    return seven_busy_gpus()


@scenario(
    "all rows of one of eight GPUs are lost: nobody knows whether it was used",
    "device-bound mixed unknown",
    headline=(r"no recorded work",),
    never_says=(r"never used|hardly used",),
)
def gpu_whose_rows_are_lost() -> TraceWriter:
    trace = seven_busy_gpus()
    trace.losses.append({"what": "dispatches", "count": 100, "reason": "the file has no rows of them"})
    return trace


@scenario(
    "most rows of one of eight GPUs are lost: nobody knows how much it was used",
    "device-bound mixed unknown",
    headline=(r"little recorded work",),
    never_says=(r"never used|hardly used",),
)
def gpu_most_of_whose_rows_are_lost() -> TraceWriter:
    trace = nearly_unused_gpu()
    trace.losses.append({"what": "dispatches", "count": 99, "reason": "the file has no rows of them"})
    return trace


@scenario(
    "the eighth runs one kernel at the start: idle for most of the time",
    "device-bound mixed",
    says=(r"imbalance|idle|no work",),
)
def nearly_unused_gpu() -> TraceWriter:
    trace = seven_busy_gpus()
    trace.launch("k", 1, 1100, 1000, queue=8)
    return trace


def seven_busy_gpus() -> TraceWriter:
    """Returns a program with eight GPUs of which seven are always busy."""
    trace = TraceWriter(devices=8, queues=[(number, number) for number in range(1, 9)])
    for step in range(100):
        for device in range(7):
            start = 1100 + step * 1001
            trace.launch("k", step * 10 + device, start, 1000, queue=device + 1, thread=7 + device)
    return trace


@scenario(
    "a power cap holds the clocks down for half of the time: said", "device-bound", headline=(r"power",)
)
def power_cap() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for step in range(2000):
        duration = 1000 * (1980 / 1200 if step >= 1000 else 1)
        trace.launch("k", step * 5, 20_000 + start, duration)
        start += duration + 1
    half = 20_000 + 1000 * 1001
    trace.counter("SM clock", "hertz", [(0, 1980e6), (half, 1200e6)])
    trace.counter("clock limited: power cap", "percent", [(0, 0), (half, 100)])
    return trace


@scenario(
    "copies have times and the kernels that were launched after them do not: what the device ran is unknown",
    "unknown",
    says=(r"work without known times may have run beside transfers",),
    never_says=(r"ran transfers and nothing else", r"TRANSFER-BOUND"),
)
def kernels_without_rows_beside_copies() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = 1000 + step * 1000
        trace.copy("host-to-device", start - 20, start, 800, 2**24, host_memory="pinned")
        trace.submission(start - 10)
    return trace


@scenario(
    "all-reduces have times and the kernels beside them do not: nobody knows what was exposed",
    "unknown",
    says=(r"work without known times may have run beside communication",),
    never_says=(r"COMMUNICATION-BOUND",),
)
def kernels_without_times_beside_all_reduces() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = 1000 + step * 1000
        trace.launch(ALL_REDUCE, start - 20, start, 700, queue=2)
        trace.dispatch(trace.submission(start - 10), "gemm", None, None)
    return trace


@scenario(
    "one kernel of a thousand beside copies has no times: bound by transfers all the same",
    "transfer-bound",
)
def one_kernel_without_times_beside_copies() -> TraceWriter:
    trace = TraceWriter()
    for step in range(1000):
        start = 1000 + step * 1000
        trace.copy("host-to-device", start - 20, start, 800, 2**24, host_memory="pinned")
        lacks = step == 500
        submission = trace.submission(start - 10)
        trace.dispatch(submission, "gemm", None if lacks else start + 802, None if lacks else 150)
    return trace


@scenario(
    "small kernels run beside work without times: nobody knows how much of the device was filled",
    "unknown",
    never_says=(r"too little work at once",),
)
def small_kernels_beside_work_without_times() -> TraceWriter:
    trace = TraceWriter(limits=H100_LIMITS)
    for step in range(100):
        trace.submission(step * 12, queue=2)
        trace.launch("watch_flag", step * 12 + 6, 905 + step * 3000, 2980, queue=3, groups=1)
    return trace


@scenario(
    "kernels of 60 % have times, and of others of 30 % they are lost: bound by the device, or by nothing alone",
    "unknown",
    says=(r"may be (mixed or device-bound|device-bound or mixed)",),
)
def third_of_the_kernels_without_times() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = 1000 + step * 1000
        trace.launch("gemm", start - 30, start, 600)
        trace.dispatch(trace.submission(start - 20), "norm", None, None)
        trace.launch("copy_out", start + 895, start + 900, 10)
    return trace


@scenario(
    "the second GPU's work lost its times in the second half: that GPU is not said to have had no work",
    "unknown",
    never_says=(r"had no work while another had: ",),
)
def second_gpu_without_times_in_the_end() -> TraceWriter:
    trace = TraceWriter(devices=2, queues=[(1, 1), (2, 2)])
    for step in range(100):
        start = 1000 + step * 1000
        trace.launch("gemm", start - 30, start, 990)
        lacks = step >= 50
        submission = trace.submission(start - 20, queue=2)
        trace.dispatch(submission, "gemm", None if lacks else start, None if lacks else 990, queue=2)
    return trace


@scenario(
    "the calls of half of the kernels are lost: the host bounds the program, or nothing alone does",
    "unknown",
    says=(r"does not say why the device idled", r"may be mixed or host-bound"),
)
def half_of_the_calls_lost() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = 1000 + step * 1000
        if step % 2:
            trace.launch("k", start - 10, start, 300)
        else:
            trace.dispatch(None, "k", start, 300)
    return trace


@scenario(
    "one damaged row names a queue that does not exist: one dispatch is lost, and there is one GPU",
    "host-bound",
    headline=(r"the trace does not define the queue",),
    never_says=(r"unknown device", r"1 of 2 GPUs"),
)
def row_of_an_undefined_queue() -> TraceWriter:
    trace = TraceWriter()
    for step in range(60):
        trace.launch("k", step * 1000 + 300, step * 1000 + 310, 400)
    trace.rows["dispatches"][5]["queue"] = 999
    return trace


@scenario(
    "work before the first with times has none: nobody knows whether the GPU had work then",
    "device-bound",
    headline=(r"before, work without known times may have run",),
    never_says=(r"the GPU had no work",),
)
def first_work_without_times() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start, lacks = 1000 + step * 1000, step < 40
        submission = trace.submission(start - 10)
        trace.dispatch(submission, "k", None if lacks else start, None if lacks else 950)
    return trace


@scenario(
    "the kernels of the first two thirds have no times: what bounds the program is unknown",
    "unknown",
    says=(r"the work of that time has no known times", r"The rest is device-bound"),
)
def most_of_the_work_without_times() -> TraceWriter:
    trace = TraceWriter()
    for step in range(120):
        start, lacks = 1000 + step * 1000, step < 80
        submission = trace.submission(start - 10)
        trace.dispatch(submission, "k", None if lacks else start, None if lacks else 950)
    return trace


@scenario(
    "one pause of 10 s before 100 ms of steady work: the headline says that the verdict is that of one gap",
    "host-bound",
    headline=(r"One gap of 10(\.\d+)? s.* the rest is device-bound",),
    says=(r"the time outside of that gap is at most",),
)
def one_gap_of_nearly_all_time() -> TraceWriter:
    trace = TraceWriter()
    trace.launch("first", 0, 10, 20)
    for step in range(100):
        start = 10_000_000 + step * 1000
        trace.launch("k", start - 50, start, 950)
    return trace


@scenario(
    "the GPU works for 1 s of a program of 51 s: the headline says of how much it speaks",
    "device-bound",
    headline=(r"51(\.\d+)? s",),
)
def one_second_of_fifty() -> TraceWriter:
    trace = TraceWriter()
    for step in range(1000):
        trace.launch("k", 2.5e7 + step * 5, 2.5e7 + 10 + step * 1001, 1000)
    trace.end = 5.1e7
    return trace


@scenario(
    "training is bound by the device and evaluation by the host: each is said",
    "mixed host-bound device-bound",
    headline=(r"train", r"eval"),
)
def training_and_evaluation() -> TraceWriter:
    trace, start = TraceWriter(), 0
    trace.range("train", 0, 3e6)
    trace.range("eval", 3e6, 3e6)
    for _ in range(300):
        trace.launch("train_k", start, start + 20, 9950, label="train")
        start += 10_000
    for _ in range(300):
        trace.launch("eval_k", start + 9000, start + 9010, 980, label="eval")
        start += 10_000
    return trace


def small_and_steady(start_count: int) -> TraceWriter:
    """Small launches of a late host, then kernels without a pause."""
    trace, start = TraceWriter(), 0
    for _ in range(start_count):
        trace.launch("init", start + 3900, start + 3910, 80)
        start += 4000
    for _ in range(900):
        trace.launch("k", start, start + 10, 1985)
        start += 2000
    return trace


@scenario(
    "the first 5 % are slow: too short for a phase of its own",
    "device-bound",
    never_says=(r"host-bound", r"mixed"),
)
def short_slow_start() -> TraceWriter:
    return small_and_steady(25)


@scenario(
    "the first 400 ms of 2.2 s are bound by the host: said with their length",
    "device-bound mixed",
    headline=(r"The first 39\d ms, 18\.\d % of the time: host-bound|The first 40\d ms, 18\.\d % of the time: host-bound",),
)
def long_slow_start() -> TraceWriter:
    return small_and_steady(100)


@scenario(
    "bursts of kernels with pauses of the host between: the program is alike throughout, and has no phases",
    "mixed",
    never_says=(r"The first .*: host-bound", r"time: device-bound"),
)
def bursts_in_turns() -> TraceWriter:
    trace, start = TraceWriter(), 0
    for turn in range(5):
        for _ in range(60):
            trace.launch("k", start, start + 10, 1985)
            start += 2000
        for _ in range(24 if turn < 4 else 0):
            trace.launch("small", start + 4900, start + 4910, 80)
            start += 5000
    return trace


@scenario(
    "a first launch of 4,096 workgroups before many of 64 is no warm-up",
    "device-bound",
    never_says=(r"\(\d+(\.\d+)? %\) are warm-up",),
)
def a_large_launch_first() -> TraceWriter:
    trace = TraceWriter()
    trace.launch("k", 0, 20, 640_000, groups=4096)
    for step in range(64):
        trace.launch("k", 30 + step * 8, 640_022 + step * 10_002, 10_000, groups=64)
    return trace


# Steps


def steps_of_a_loop(trace: TraceWriter, late: dict[int, float], allocate: dict[int, float]) -> list[tuple[float, float]]:
    """Plants 40 steps: each loads for 3 ms, launches three kernels of 2 ms and waits. Returns when each begins and ends."""
    load = trace.stack([("main", "train.py", 90), ("load_batch", "train.py", 41)])
    steps = []
    at = 1000.0
    for step in range(1, 41):
        begin = at
        loaded = at + 3000 + late.get(step, step % 5 * 20)
        trace.samples(load, at, loaded, period=500)
        at = loaded
        if step in allocate:
            trace.call("allocate-memory", at, allocate[step], "cudaMalloc")
            at += allocate[step]
        for number, kernel in enumerate(("forward", "backward", "update")):
            trace.launch(kernel, at + number * 10, loaded + allocate.get(step, 0) + 15 + number * 2000, 2000)
        end = at + 15 + 3 * 2000
        trace.call("wait-device-idle", at + 40, end + 5 - at - 40, "cudaDeviceSynchronize")
        at = end + 10
        steps.append((begin, at))
    return steps


SLOW_STEPS = (
    r"The median of 40 steps takes 9\.\d+ ms: compute 6\d(\.\d)? %, host 3\d(\.\d)? %",
    r"3 take over 1\.25 times as long",
    r"7 +\S+ ms +32\.0 ms.*?→ 23\.0 ms more idle because the host was late, loading data \(train\.py:41 load_batch\)",
    r"13 +\S+ ms +27\.0 ms.*?→ 18\.0 ms more idle because the host was late, loading data \(train\.py:41 load_batch\)",
    r"24 +\S+ ms +17\.\d ms.*?→ 8\.\d\d ms more idle because the host was allocating, freeing or mapping memory",
)


@scenario(
    "labelled steps, of which two wait for the data loader and one allocates: these three are slow, each for its reason",
    "mixed",
    "host-late",
    says=(*SLOW_STEPS, r'Steps are the ranges "train_step"'),
)
def slow_steps_by_label() -> TraceWriter:
    trace = TraceWriter()
    for begin, end in steps_of_a_loop(trace, {7: 23_000, 13: 18_000}, {24: 8500}):
        trace.range("train_step", begin, end - begin)
    return trace


@scenario(
    "the same without labels: the launches have a period",
    "mixed",
    "host-late",
    says=(*SLOW_STEPS, r"found by the period of launches: all 40 turns have the same 3 pieces of work"),
)
def slow_steps_by_launches() -> TraceWriter:
    trace = TraceWriter()
    steps_of_a_loop(trace, {7: 23_000, 13: 18_000}, {24: 8500})
    return trace


@scenario(
    "steps inside of epochs, layers inside of steps, and a second thread with steps of its own: the steps with the work count",
    "mixed",
    "host-late",
    says=(r"The median of 40 steps", r'the ranges "step \*"'),
)
def steps_among_other_labels() -> TraceWriter:
    trace = TraceWriter()
    steps = steps_of_a_loop(trace, {}, {})
    for number, (begin, end) in enumerate(steps):
        trace.range(f"step {number}", begin, end - begin)
        for layer in range(4):
            trace.range(f"layer {layer}", begin + 3100 + layer * 5, 5)
        trace.range("Optimizer.step#SGD.step", begin + 3140, 20)
        trace.range("step", begin + 100, 500, thread=8)
    for epoch in range(4):
        begin, end = steps[epoch * 10][0], steps[epoch * 10 + 9][1]
        trace.range(f"epoch {epoch}", begin, end - begin)
    return trace


@scenario(
    "one pass through the layers of a model, each of the same kernels and with a label: there are no steps",
    "device-bound",
    never_says=(r"median of \d+ steps", r"Steps ─"),
)
def layers_are_no_steps() -> TraceWriter:
    trace = TraceWriter()
    for layer in range(48):
        for number, kernel in enumerate(("norm", "qkv", "attention", "mlp")):
            at = layer * 2000 + number * 500
            trace.launch(kernel, 100 + layer * 40 + number * 10, 1000 + at, 498)
        trace.range(f"layer {layer}", 95 + layer * 40, 40)
    return trace


@scenario(
    "the start of a program is one gap and most of the time, behind it a loader holds each step: the advice is about the loader",
    "host-bound",
    says=(r"One gap of", r"Do first: load ahead in worker processes[^(]*\(data\.py:14 load_batch"),
    never_says=(r"Do first: [^.]*imports",),
)
def start_up_before_a_loader() -> TraceWriter:
    trace = TraceWriter()
    imports = trace.stack([("main", "train.py", 3), ("imports", "setup.py", 7)])
    loads = trace.stack([("main", "train.py", 9), ("load_batch", "data.py", 14)])
    trace.copy("host-to-device", 1000, 1010, 50, 2**22)
    start = 5_000_000.0
    trace.samples(imports, 3000, start)
    for _ in range(150):
        trace.samples(loads, start, start + 6000)
        trace.launch("train", start + 6000, start + 6010, 500)
        start += 6600
    return trace


@scenario(
    "each frame waits for a display of 60 Hz, with a host busy for 12 of 16.7 ms: nothing helps, and no gain is promised",
    "host-bound",
    says=(r"display",),
    never_says=(r"Do first", r"would take"),
)
def display_sets_the_pace() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for frame in range(150):
        begin = 1000 + frame * 16_667
        trace.submitted(begin + 12_000, begin + 12_060, 3_000, "shade")
        trace.call("present", begin + 12_040, 30, "vkQueuePresentKHR")
        acquired = begin + 16_667
        trace.call("acquire-image", begin + 12_080, acquired - begin - 12_100, "vkAcquireNextImageKHR")
    return trace


@scenario(
    "programmatic dependent launches overlap by 3 µs: each of two kernels is half of the run",
    "device-bound",
    says=(r"Do first: make the kernel gemm_[ab] faster", r"would\s+take\s+2[2-9]\.\d %"),
    never_says=(r"no single step would help",),
)
def dependent_launches() -> TraceWriter:
    trace = TraceWriter()
    for number in range(3000):
        trace.launch("gemm_a" if number % 2 else "gemm_b", 100 + number * 5, 20_000 + number * 37, 40)
    return trace


@scenario(
    "copies of 3 ms run beside kernels of 2.8 ms, and hold them: faster copies help, and faster kernels do not",
    "device-bound transfer-bound",
    says=(r"Do first: copy less",),
    never_says=(r"make the kernel train faster",),
)
def copies_a_little_longer_than_kernels() -> TraceWriter:
    trace, kernels, stream_free = TraceWriter(), [], [0.0, 0.0]
    host, ended = 100.0, {}
    for number in range(200):
        waits = [ended[kernels[-3]]] if number >= 3 else []
        begins = max([host + 6, stream_free[0] + 1] + [end + 2 for end in waits])
        copied = trace.copy("host-to-device", host, begins, 3000, 75 * 2**20, 2, call_duration=4)
        if waits:
            trace.depends(copied, kernels[-3])
        stream_free[0] = begins + 3000
        begins = max(host + 12, stream_free[1] + 1, stream_free[0] + 2)
        kernel = trace.launch("train", host + 5, begins, 2800, call_duration=4)
        trace.depends(kernel, copied)
        stream_free[1] = ended[kernel] = begins + 2800
        kernels.append(kernel)
        host += 10
    return trace
