"""More programs whose answer is known by construction: pipelines, servers, frames in flight, allocators, clocks that are off."""

from __future__ import annotations

import random

from programs import peer_copies, scenario, synchronising
from trace_writer import TraceWriter, nanoseconds

# Which work the host waited for


@scenario(
    "two frames are in flight, every second one has no times, and each wait is for the frame before: nobody knows whether the device idled",
    "unknown",
    never_says=(r"HOST-BOUND|SYNC-BOUND|LATENCY-BOUND",),
)
def frames_in_flight_without_times() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    previous = None
    for frame in range(100):
        call = frame * 1000 - 400 if frame else 0
        submission = trace.submission(call, 20, kind="command-buffers", command_buffers=1)
        start = 100 + frame * 1000
        timed = frame % 2 == 0
        number = trace.command_buffer(
            submission,
            start if timed else None,
            990 if timed else None,
            dispatches=1,
            timing="measured" if timed else "no-timestamps",
        )
        trace.dispatch(
            submission, "k", start if timed else None, 990 if timed else None, command_buffer=number
        )
        if previous is not None:
            trace.call("wait-fences", call + 30, start - 5 - call - 30, "vkWaitForFences", waits_for=previous)
        previous = submission
    return trace


@scenario(
    "each GPU has a thread: that of one waits for its kernels without a pause, and that of the other computes between: its host is late",
    "host-bound mixed device-bound",
    "host-late",
    never_causes="after-host-wait",
)
def a_thread_for_each_gpu() -> TraceWriter:
    trace = TraceWriter(devices=2, queues=[(1, 1), (2, 2)])
    numbers = random.Random(5)
    for step in range(150):
        start = step * 1000
        first = trace.launch("a", start, start + 8, 980, thread=7)
        trace.call("wait-event", start + 6, 988, "cudaEventSynchronize", thread=7, waits_for=first)
    at = 0.0
    while at < 150_000:
        trace.launch("b", at, at + 8, 300, queue=2, thread=8)
        at += 310 + numbers.uniform(500, 1600)
    return trace


@scenario(
    "two loops of one period on streams of their own, of which one waits for its kernels: the other is late, and not held up",
    "host-bound",
    "host-late",
    never_causes="after-host-wait",
)
def two_loops_of_one_period() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 1000
        trace.launch("a", start, start + 8, 300, queue=1, thread=9)
        trace.call("wait-event", start + 6, 308, "cudaEventSynchronize", thread=9)
        trace.launch("b", start + 450, start + 458, 100, queue=2, thread=7)
    return trace


@scenario(
    "a thread waits for each kernel, beside which copies end a little later: the wait is for the kernel, as the trace says",
    "sync-bound mixed",
    "after-host-wait",
    never_says=(r"TRANSFER-BOUND",),
)
def waits_for_kernels_beside_copies() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 480
        kernel = trace.launch("k", start, start + 10, 300)
        trace.copy("host-to-device", start + 6, start + 12, 302, 2**22, queue=2)
        trace.call("wait-event", start + 13, 307, "cudaEventSynchronize", waits_for=kernel)
    return trace


@scenario(
    "waits for events return 50 µs before the work ends, the stated clock error is 1 µs, and nothing else ended: unknown, and never the host",
    "unknown sync-bound",
    never_causes="host-late",
)
def event_waits_that_return_too_early_for_the_clock() -> TraceWriter:
    return synchronising(50, "wait-event", error_ns=1000)


@scenario(
    "waits for events of the kernel before the last return while the last runs: the host is late afterwards",
    "host-bound",
    "host-late",
)
def waits_for_the_kernel_before() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 420
        first = trace.launch("a", start, start + 10, 100)
        trace.launch("b", start + 6, start + 111, 50)
        trace.call("wait-event", start + 12, 103, "cudaEventSynchronize", waits_for=first)
    return trace


# Clocks of several devices


def moved(trace: TraceWriter, device: int, by: float, error_ns: int | None) -> TraceWriter:
    """Moves the clock of a device of a trace, whose devices state an error."""
    for stated in trace.devices:
        if error_ns is None:
            del stated["clock"]
        else:
            stated["clock"]["error_ns"] = error_ns
    queues = dict(trace.queues)
    for table in ("dispatches", "transfers"):
        for row in trace.rows[table]:
            if queues[row["queue"]] == device and row.get("start_ns") is not None:
                row["start_ns"] += nanoseconds(by)
    return trace


@scenario(
    "a GPU pushes data to another, whose clock is 2 ms early by a stated error of as much: the answer is open, or transfers",
    "unknown transfer-bound",
    headline=(r"contradict|at least|may be|UNKNOWN|error",),
)
def pushes_to_a_gpu_with_an_early_clock() -> TraceWriter:
    return moved(peer_copies(2, [1, 3], 2200), 2, -2000, 2_000_000)


@scenario(
    "the same with a late clock: the answer is open, or transfers",
    "unknown transfer-bound",
    headline=(r"contradict|at least|may be|UNKNOWN|error",),
)
def pushes_to_a_gpu_with_a_late_clock() -> TraceWriter:
    return moved(peer_copies(2, [1, 3], 2200), 2, 2000, 2_000_000)


@scenario(
    "the same with an early clock and no stated error: the times contradict each other, which is said first",
    "unknown transfer-bound",
    headline=(r"times contradict each other.*(UNKNOWN|TRANSFER-BOUND)",),
)
def pushes_to_a_gpu_with_an_early_clock_of_unknown_error() -> TraceWriter:
    return moved(peer_copies(2, [1, 3], 2200), 2, -2000, None)


@scenario(
    "the same with a late clock and no stated error: its kernels start late for no known reason, and the answer is open",
    "unknown transfer-bound",
    says=(r"may be (device-bound or transfer-bound|transfer-bound or device-bound)",),
)
def pushes_to_a_gpu_with_a_late_clock_of_unknown_error() -> TraceWriter:
    return moved(peer_copies(2, [1, 3], 2200), 2, 2000, None)


@scenario(
    "the pushing GPU's clock is 2 ms early, of which its stated error of 1 µs says nothing: the answer is open",
    "unknown transfer-bound",
    says=(r"may be (device-bound or transfer-bound|transfer-bound or device-bound)",),
)
def pushes_of_a_gpu_with_an_early_clock() -> TraceWriter:
    return moved(peer_copies(2, [1, 3], 2200), 1, -2000, 1000)


@scenario(
    "the same with the pushing GPU's clock late and no stated error: the times contradict each other",
    "unknown transfer-bound",
    headline=(r"times contradict each other.*(UNKNOWN|TRANSFER-BOUND)",),
)
def pushes_of_a_gpu_with_a_late_clock_of_unknown_error() -> TraceWriter:
    return moved(peer_copies(2, [1, 3], 2200), 1, 2000, None)


@scenario(
    "receives seem to end before their sends, and no clock error is stated: no verdict that compares the two clocks",
    "unknown mixed",
    says=(r"unknown",),
)
def a_receiver_that_ends_before_its_sender() -> TraceWriter:
    trace = TraceWriter(devices=2, queues=[(1, 1), (2, 2)])
    name = "ncclDevKernel_SendRecv"
    for step in range(60):
        start = 1000 + step * 4000
        trace.launch("stage0", step * 60, start, 1500, queue=1)
        trace.launch(name, step * 60 + 6, start + 1502, 100, queue=1)
        trace.launch(name, step * 60 + 12, start + 200, 1402, queue=2)
        trace.launch("stage1", step * 60 + 18, start + 1605, 1500, queue=2)
    return moved(trace, 2, -900, None)


# Programs of other people

LOADER = "/usr/lib/python3/site-packages/torch/utils/data/dataloader.py"


@scenario(
    "a Vulkan program creates a pipeline of 30 ms in each tenth frame: the host builds code, and a graph does not help",
    "host-bound mixed device-bound",
    "host-compile",
    advises=(r"pipeline",),
    never_advises=(r"graph",),
)
def pipelines_created_between_frames() -> TraceWriter:
    trace, start = TraceWriter(api="vulkan"), 0.0
    for frame in range(200):
        if frame % 10 == 5:
            trace.call("create-pipelines", start, 30_000, "vkCreateComputePipelines")
            start += 30_010
        trace.submitted(start, start + 120, 3000)
        trace.call("wait-fences", start + 25, 3110, "vkWaitForFences")
        start += 3160
    return trace


def native_stack(trace: TraceWriter, functions: list[tuple[str, str]]) -> int:
    """Adds a stack of native functions with their libraries, the outermost first."""
    parent = None
    for function, library in functions:
        frame = len(trace.rows["frames"])
        trace.add("frames", id=frame, kind="native", function=function, library=library)
        stack = len(trace.rows["stacks"])
        trace.add("stacks", id=stack, parent=parent, frame=frame)
        parent = stack
    if parent is None:
        raise ValueError("a stack has at least one function")
    return parent


def asleep(trace: TraceWriter, stack: int, start: float, until: float, system_call: str) -> None:
    """Adds samples of a thread that is blocked in a system call."""
    before = len(trace.rows["samples"])
    trace.samples(stack, start, until, period=500)
    for sample in trace.rows["samples"][before:]:
        sample["state"], sample["system_call"] = "blocked", system_call


@scenario(
    "a server waits for requests in its event loop, and computes each at once: the program has nothing to do, and none of its code is slow",
    "host-bound",
    "host-late host-waits",
    says=(r"event loop|events",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph", r"fuse"),
)
def server_without_requests() -> TraceWriter:
    trace, numbers, start = TraceWriter(), random.Random(9), 0.0
    loop = native_stack(
        trace, [("main", "/opt/server"), ("uv_run", "/usr/lib/libuv.so.1"), ("epoll_wait", "/usr/lib/libc.so.6")]
    )
    for _ in range(120):
        arrival = start + numbers.expovariate(1 / 20_000) + 2000
        asleep(trace, loop, start, arrival, "epoll_wait")
        for kernel in range(8):
            trace.launch("infer", arrival + kernel * 6, arrival + 10 + kernel * 205, 200)
        trace.call("wait-queue-idle", arrival + 50, 1610, "cudaStreamSynchronize", queue=1)
        start = arrival + 1670
    return trace


@scenario(
    "the training loop waits for its loader's workers, which are other processes: more of them or earlier batches help",
    "host-bound",
    "host-late host-waits",
    says=(r"another process|other process|worker",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def loader_with_slow_workers() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    stack = trace.stack(
        [
            ("main", "/home/a/train.py", 88),
            ("_BaseDataLoaderIter.__next__", LOADER, 701),
            ("_MultiProcessingDataLoaderIter._try_get_data", LOADER, 1243),
            ("Queue.get", "/usr/lib/python3.12/multiprocessing/queues.py", 113),
            ("_ConnectionBase.poll", "/usr/lib/python3.12/multiprocessing/connection.py", 257),
            ("wait", "/usr/lib/python3.12/multiprocessing/connection.py", 1136),
            ("_PollLikeSelector.select", "/usr/lib/python3.12/selectors.py", 415),
        ]
    )
    for _ in range(80):
        loaded = start + 30_000
        asleep(trace, stack, start, loaded, "poll")
        for kernel in range(30):
            trace.launch(f"k{kernel % 5}", loaded + kernel * 6, loaded + 10 + kernel * 300, 298)
        trace.call("wait-device-idle", loaded + 200, 8820, "cudaDeviceSynchronize")
        start = loaded + 9030
    return trace


@scenario(
    "a loop sleeps until its next turn of 30 a second: the pause is a sleep of the program's own",
    "host-bound",
    "host-late host-waits",
    says=(r"sleep",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def loop_with_a_timer() -> TraceWriter:
    trace = TraceWriter()
    stack = trace.stack([("main", "/home/a/control.py", 30), ("Rate.sleep", "/home/a/rate.py", 12)])
    for turn in range(120):
        start = turn * 33_333
        trace.launch("control", start, start + 10, 4000)
        trace.call("wait-queue-idle", start + 6, 4010, "cudaStreamSynchronize", queue=1)
        asleep(trace, stack, start + 4100, start + 33_300, "clock_nanosleep")
    return trace


@scenario(
    "an allocator that is short of memory frees blocks, for which it waits for the GPU, and allocates anew: not a late host",
    "host-bound sync-bound mixed",
    "after-host-wait host-allocate",
    "host-late",
    never_advises=(r"graph",),
)
def allocator_that_retries() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for _ in range(100):
        trace.launch("k", start, start + 8, 900)
        end = start + 908
        trace.call("allocate-memory", start + 10, 40, "cudaMalloc")
        trace.rows["host_calls"][-1]["result"] = 2
        trace.call("free-memory", start + 55, end + 20 - start - 55, "cudaFree")
        for block in range(5):
            trace.call("free-memory", end + 25 + block * 110, 105, "cudaFree")
        trace.call("allocate-memory", end + 580, 400, "cudaMalloc")
        start = end + 985
    return trace


@scenario(
    "a graph has a function of the host between its kernels, of unknown time: nobody knows what held it up, and not the graph's launch",
    "unknown",
    never_causes="graph-launch launch-latency within-command-buffer host-late",
)
def host_node_in_a_graph() -> TraceWriter:
    trace = TraceWriter()
    for step in range(60):
        start = step * 6000
        launch = trace.submission(start, 20, kind="graph", command_buffers=1)
        number = trace.command_buffer(launch, start + 30, 5900, dispatches=2, host_functions=1)
        trace.dispatch(launch, "k", start + 30, 1400, command_buffer=number, position=0)
        trace.dispatch(launch, "k", start + 4530, 1400, command_buffer=number, position=2)
    return trace


@scenario(
    "graphs that are timed as a whole run beside kernels that leave no pause: bound by the device",
    "device-bound",
)
def whole_graphs_beside_busy_kernels() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = 3000 + step * 1000
        trace.launch("k", step * 30, start, 995, queue=2)
        launch = trace.submission(step * 30 + 10, 14, kind="graph", command_buffers=1)
        trace.command_buffer(launch, start + 5, 900, dispatches=40)
    return trace


@scenario(
    "two processes share a GPU at once (MPS), and their kernels overlap: one GPU, bound by the device",
    "device-bound",
    never_says=(r"of 2 GPUs", r"never used", r"context"),
)
def two_processes_at_once() -> TraceWriter:
    trace = TraceWriter(processes=2, devices=2, uuids=["cc", "cc"], queues=[(1, 1), (2, 2)])
    for step in range(150):
        start = 2000 + step * 1000
        trace.launch("serve_a", step * 12, start, 700, queue=1)
        trace.launch("serve_b", step * 12 + 3, start + 500, 495, queue=2, process=2, thread=9)
    return trace


@scenario(
    "the recording begins in a running program, whose stream had work of 80 ms from before: that start is unknown, and the rest bound by the device",
    "device-bound mixed unknown",
    never_causes="launch-latency",
    never_says=(r"LATENCY-BOUND",),
)
def work_before_the_recording() -> TraceWriter:
    trace = TraceWriter(queues=[(1, 1), (2, 1)])
    trace.processes[0]["start_ns"] = -5_000_000_000
    trace.launch("side", 100, 110, 20, queue=2)
    for step in range(100):
        trace.launch("k", 200 + step * 6, 80_000 + step * 1000, 990)
    return trace


@scenario(
    "kernels of 2 µs are launched by calls of 6 µs, back to back: the calls bound the program, as far as the clock tells, and fewer help",
    "host-bound mixed",
    "submit-call",
    advises=(r"graph|fewer|fuse",),
)
def tiny_kernels_back_to_back() -> TraceWriter:
    trace = TraceWriter()
    for launch in range(5000):
        trace.launch("k", launch * 6.2, launch * 6.2 + 7.5, 2, call_duration=6)
    return trace


@scenario(
    "the host polls an event until the kernel is done, and then launches the next: synchronisation",
    "sync-bound mixed",
    "after-host-wait",
    never_causes="host-late",
)
def polls_until_each_kernel_is_done() -> TraceWriter:
    trace = TraceWriter()
    for step in range(300):
        start = step * 250
        trace.launch("k", start, start + 8, 130)
        trace.call("poll-event", start + 6, 128, "cudaEventQuery")
        trace.rows["host_calls"][-1].update(result=600, count=90)
        trace.call("poll-event", start + 139, 1, "cudaEventQuery")
    return trace


@scenario(
    "one of two GPUs is lost after a third of the program, and its calls fail: said",
    "device-bound mixed unknown host-bound",
    headline=(r"lost",),
)
def one_gpu_of_two_is_lost() -> TraceWriter:
    trace = TraceWriter(devices=2, queues=[(1, 1), (2, 2)])
    trace.devices[1]["lost"] = True
    for step in range(120):
        start = 1000 + step * 1000
        trace.launch("k", step * 10, start, 990, queue=1)
        if step < 40:
            trace.launch("k", step * 10 + 5, start, 990, queue=2)
    return trace


@scenario(
    "heat holds the clocks down for the last two thirds: said in the headline",
    "device-bound",
    headline=(r"heat|hotter|thermal",),
)
def heat_for_most_of_the_run() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for step in range(1500):
        duration = 1000 * (1.4 if step >= 500 else 1)
        trace.launch("k", step * 5, 20_000 + start, duration)
        start += duration + 1
    third = 20_000 + 1000 * 501
    trace.counter("SM clock", "hertz", [(0, 1980e6), (third, 1410e6)])
    trace.counter("clock limited: software thermal slowdown", "percent", [(0, 0), (third, 100)])
    return trace


@scenario(
    "a compositor waits for each picture to be presented, at 60 pictures a second with some jitter: the display, and nothing to be removed",
    "sync-bound host-bound mixed",
    says=(r"display|vertical|refresh|vsync",),
    never_advises=(r"before the loop", r"remove", r"graph"),
)
def waits_for_presentation() -> TraceWriter:
    trace, numbers = TraceWriter(api="vulkan"), random.Random(6)
    for picture in range(150):
        start = picture * 16_667 + numbers.uniform(-120, 120)
        trace.call("acquire-image", start + 10, 30, "vkAcquireNextImageKHR")
        trace.submitted(start + 60, start + 180, 2500)
        trace.call("present", start + 90, 40, "vkQueuePresentKHR")
        until = (picture + 1) * 16_667 - 150
        trace.call("wait-present", start + 140, until - start - 140, "vkWaitForPresentKHR")
    return trace


@scenario(
    "a decoder's thread prepares each picture and copies it, and another launches the kernel after it: the host is late",
    "host-bound",
    "host-late",
)
def decoder_before_each_copy() -> TraceWriter:
    trace = TraceWriter()
    for picture in range(150):
        start = picture * 9000 + 8000
        submission = trace.submission(start, 5, 2, "transfer", thread=8)
        trace.add(
            "transfers",
            until=start + 510,
            position=0,
            queue=2,
            kind="host-to-device",
            bytes=2**23,
            start_ns=nanoseconds(start + 10),
            duration_ns=nanoseconds(500),
            submission=submission,
            host_memory="pinned",
        )
        kernel = trace.launch("infer", start + 8, start + 515, 450)
        trace.depends(kernel, submission)
    return trace


@scenario(
    "two queues of Vulkan take turns by semaphores, and neither ever pauses for the host: bound by the device",
    "device-bound",
)
def two_queues_with_semaphores() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    before = None
    for step in range(120):
        start = 3000 + step * 1000
        first = trace.submitted(step * 60, start, 600, "shadow", queue=1)
        if before is not None:
            trace.depends(first, before)
        before = trace.submitted(step * 60 + 25, start + 606, 388, "post", queue=2)
        trace.depends(before, first)
    return trace


@scenario(
    "a reactor's thread polls each kernel's event, and then another thread launches the next: synchronisation",
    "sync-bound mixed",
    "after-host-wait",
    never_causes="host-late",
)
def polls_of_a_reactor_thread() -> TraceWriter:
    trace = TraceWriter()
    for step in range(300):
        start = step * 260
        trace.launch("k", start, start + 8, 130)
        trace.call("poll-event", start + 6, 128, "cudaEventQuery", thread=9)
        trace.rows["host_calls"][-1].update(result=600, count=60)
        trace.call("poll-event", start + 139, 1, "cudaEventQuery", thread=9)
    return trace


@scenario(
    "copies to the device hide behind kernels that leave no pause: bound by the device, however much is copied",
    "device-bound",
    never_says=(r"TRANSFER-BOUND",),
)
def double_buffered_inputs() -> TraceWriter:
    trace = TraceWriter()
    for step in range(120):
        start = 2000 + step * 1000
        copy = trace.copy("host-to-device", step * 20, start - 990, 700, 2**24, queue=2)
        kernel = trace.launch("k", step * 20 + 7, start, 992)
        trace.depends(kernel, copy)
    return trace


@scenario(
    "each input is copied from pinned memory by a call that waits, for longer than its kernel runs: transfers, and pinning cannot help",
    "transfer-bound sync-bound mixed",
    never_advises=(r"\bpin the memory\b|\bpin\b", r"graph"),
)
def waits_for_copies_of_pinned_memory() -> TraceWriter:
    trace = TraceWriter()
    for step in range(150):
        start = step * 2000
        trace.copy("host-to-device", start, start + 8, 1500, 2**25, call_duration=1515, function="cudaMemcpy")
        trace.launch("k", start + 1520, start + 1528, 430)
    return trace


@scenario(
    "each launch of a graph takes the host longer than the graph runs: the calls bound the program, and putting them into a graph is done already",
    "host-bound mixed",
    "submit-call",
    never_advises=(r"launches into a graph|put .* into a graph",),
)
def slow_graph_launches() -> TraceWriter:
    trace = TraceWriter()
    for step in range(200):
        start = step * 600
        launch = trace.submission(start, 480, kind="graph", command_buffers=1)
        number = trace.command_buffer(launch, start + 490, 100, dispatches=20, host_functions=0)
        for node in range(20):
            trace.dispatch(launch, "k", start + 490 + node * 5, 4.8, command_buffer=number, position=node)
    return trace


@scenario(
    "presentation blocks until the display takes the picture: the display, and nothing to be removed",
    "sync-bound host-bound mixed",
    says=(r"display|vertical|refresh|vsync",),
    never_advises=(r"remove", r"graph"),
)
def presentation_that_blocks() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for picture in range(120):
        start = picture * 16_667
        trace.call("acquire-image", start + 5, 20, "vkAcquireNextImageKHR")
        trace.submitted(start + 40, start + 150, 4000)
        trace.call("present", start + 70, 16_667 - 80, "vkQueuePresentKHR")
    return trace


@scenario(
    "another thread creates the pipelines that the next submission needs, and the submitting thread waits for that thread: building code",
    "host-bound",
    "host-compile",
    never_causes="host-late",
)
def pipelines_created_on_another_thread() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for frame in range(60):
        start = frame * 12_000
        trace.call("create-pipelines", start, 9000, "vkCreateComputePipelines", thread=12)
        trace.submitted(start + 9060, start + 9180, 2500)
    return trace


@scenario(
    "a checkpoint is saved after each fifty steps, for which results are copied back and the host writes for 1.5 s",
    "mixed device-bound host-bound",
    "host-late",
    never_says=(r"bound by the device itself",),
)
def checkpoints_between_steps() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for step in range(200):
        trace.launch("train", start, start + 10, 19_900)
        start += 20_000
        if step % 50 == 49:
            trace.copy("device-to-host", start, start + 10, 40_000, 2**30)
            trace.call("wait-queue-idle", start + 6, 40_010, "cudaStreamSynchronize", queue=1)
            start += 1_540_000
    return trace


@scenario(
    "functions of the host, with known times, run for 3 ms between the kernels of a stream: the host",
    "host-bound",
    "host-function",
)
def host_functions_with_times() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 4000
        trace.launch("a", start, start + 10, 400)
        trace.submission(start + 8, 5, kind="host-function", function="cudaLaunchHostFunc")
        trace.call("host-function", start + 420, 3000, None, thread=21, queue=1)
        trace.launch("b", start + 20, start + 3430, 480)
    return trace


@scenario(
    "each submission waits for an external semaphore, which another program signals: an external wait, and not this host",
    "sync-bound mixed unknown",
    "external-wait",
    never_causes="host-late launch-latency",
)
def signals_of_another_program() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 5000
        trace.submission(start, 5, kind="wait-external", function="cuWaitExternalSemaphoresAsync")
        trace.launch("k", start + 10, start + 3500, 1400)
    return trace


@scenario(
    "tuning of kernels takes the first third, in which each variant is built and awaited: the verdict is on the rest, and says so",
    "device-bound",
    headline=(r"66\.7 % of the run",),
    says=(r"the judged time is at most 2\.98 s \(99\.2 %\) shorter",),
)
def tuning_before_the_steady_part() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for variant in range(150):
        trace.call("load-module", start, 8000, "cuModuleLoadData")
        trace.launch(f"variant_{variant}", start + 8010, start + 8020, 900)
        trace.call("wait-device-idle", start + 8016, 910, "cudaDeviceSynchronize")
        start += 10_000
    for _ in range(1500):
        trace.launch("best", start, start + 10, 1985)
        start += 2000
    return trace


@scenario(
    "a program of HIP reads a result back before each next step: synchronisation",
    "sync-bound mixed",
    "after-host-wait",
    never_says=(r"cudaStreamSynchronize|CUDA graph",),
)
def hip_reads_back_each_step() -> TraceWriter:
    trace = TraceWriter(api="hip")
    for step in range(200):
        start = step * 300
        trace.submission(start, 5, function="hipLaunchKernel")
        trace.dispatch(len(trace.rows["submissions"]), "k", start + 8, 90)
        trace.copy("device-to-host", start + 6, start + 100, 3, 64, function="hipMemcpyAsync")
        trace.call("wait-queue-idle", start + 12, 105, "hipStreamSynchronize", queue=1)
    return trace


@scenario(
    "thousands of copies of 4 KiB from pinned memory, each of a call of its own: join them; pinning is done already",
    "host-bound mixed transfer-bound latency-bound",
    never_advises=(r"\bpin\b",),
)
def many_small_copies() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 2000
        for copy in range(200):
            trace.copy("host-to-device", start + copy * 8, start + copy * 8 + 7, 2, 4096, call_duration=6)
        trace.launch("k", start + 1610, start + 1618, 370)
    return trace


@scenario(
    "the program ends 20 s after its last GPU work: the headline says of how much of the run it speaks",
    "device-bound",
    headline=(r"2[12](\.\d+)? s",),
)
def long_end_without_the_gpu() -> TraceWriter:
    trace = TraceWriter()
    for step in range(1000):
        trace.launch("k", step * 5, 10_000 + step * 1001, 1000)
    trace.end = 2.1e7
    return trace


@scenario(
    "one of two streams waits for events of the other, whose kernels the host launches late: the host",
    "host-bound",
    "host-late",
    never_causes="queue-handover",
)
def stream_that_waits_for_a_late_one() -> TraceWriter:
    trace = TraceWriter()
    for step in range(100):
        start = step * 2000
        first = trace.launch("a", start + 1000, start + 1008, 300)
        second = trace.launch("b", start + 1010, start + 1312, 400, queue=2)
        trace.depends(second, first)
    return trace


@scenario(
    "the recording lost a third of its waits: time in which the host seems late may have been spent in them",
    "unknown host-bound mixed sync-bound",
    headline=(r"calls? of the host (is|are) lost|may have been spent in waits|UNKNOWN",),
)
def lost_waits() -> TraceWriter:
    trace = TraceWriter()
    for step in range(150):
        start = step * 700
        trace.launch("k", start, start + 8, 150)
        if step % 3:
            trace.call("wait-queue-idle", start + 6, 600, "cudaStreamSynchronize", queue=1)
    trace.losses.append({"what": "host calls", "count": 50, "reason": "the log was full"})
    return trace


# Time that was not recorded


@scenario(
    "a profiler recorded three windows of 30 steps with seconds between them: the device is busy in each, and the rest is not known",
    "device-bound",
    headline=(r"on the 90\.0 ms that were recorded, in 3 parts",),
    says=(r"the judged time is at most 87\.3 ms \(97\.0 %\) shorter",),
    never_says=(r"One gap of", r"HOST-BOUND", r"mostly recording", r"Between the steps"),
)
def windows_of_a_profiler() -> TraceWriter:
    trace, start = TraceWriter(), 0.0
    for window in range(3):
        for step in range(30):
            trace.range("ProfilerStep", start, 1000, payload=str(window * 30 + step))
            trace.launch("k", start, start + 8, 970)
            start += 1000
        if window < 2:
            trace.call("recording", start, 4e6, "not recorded", thread=None)
            start += 4e6
    return trace


# What a sleeping thread waited for


def steps_after_sleep(
    trace: TraceWriter, stack: int, system_call: str, pause: float, beside: int | None = None
) -> TraceWriter:
    """Adds steps of 4 ms before each of which the launching thread is blocked; a thread beside it may run then."""
    start = 0.0
    for _ in range(80):
        awake = start + pause
        asleep(trace, stack, start, awake, system_call)
        if beside is not None:
            trace.samples(beside, start, awake, period=500, thread=9)
        for kernel in range(20):
            trace.launch("k", awake + kernel * 6, awake + 10 + kernel * 200, 195)
        trace.call("wait-device-idle", awake + 130, 3880, "cudaDeviceSynchronize")
        start = awake + 4020
    return trace


@scenario(
    "the launching thread waits for a lock while another thread of its process turns text into tokens: that thread and its line are named",
    "host-bound",
    "host-late host-waits",
    says=(r"another thread|lock", r"tokenize"),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def waits_for_a_lock() -> TraceWriter:
    trace = TraceWriter()
    libc = "/usr/lib/libc.so.6"
    stack = native_stack(
        trace, [("main", "/usr/bin/python3"), ("take_gil", "/usr/bin/python3"), ("pthread_cond_timedwait", libc)]
    )
    beside = trace.stack([("Thread.run", "/usr/lib/python3.12/threading.py", 1010), ("tokenize", "/home/a/tok.py", 55)])
    return steps_after_sleep(trace, stack, "futex", 15_000, beside)


@scenario(
    "each step reads its data from a slow disk",
    "host-bound",
    "host-late host-waits",
    says=(r"disk|file",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def reads_from_a_disk() -> TraceWriter:
    trace = TraceWriter()
    stack = trace.stack([("main", "/home/a/train.py", 40), ("load", "/home/a/data.py", 12)])
    return steps_after_sleep(trace, stack, "pread64", 15_000)


@scenario(
    "each step waits for a program that it has started",
    "host-bound",
    "host-late host-waits",
    says=(r"another process|child",),
    never_says=(r"in code of the program",),
    never_advises=(r"graph",),
)
def waits_for_a_child() -> TraceWriter:
    trace = TraceWriter()
    stack = trace.stack([("main", "/home/a/train.py", 40), ("run", "/usr/lib/python3.12/subprocess.py", 550)])
    return steps_after_sleep(trace, stack, "wait4", 50_000)


# What advice the first screen has


@scenario(
    "blocking copies of pageable memory before each kernel take two thirds of the time: copies ahead need pinned memory, which is said first",
    "transfer-bound",
    says=(r"Do first: pin the memory",),
    never_says=(r"Do first: copy less",),
    advises=(r"pin the memory",),
    never_advises=(r"graph",),
)
def pageable_copy_before_each_kernel() -> TraceWriter:
    trace = TraceWriter()
    for step in range(120):
        start = step * 3040.0
        trace.copy(
            "host-to-device",
            start,
            start + 20,
            2000,
            20_000_000,
            call_duration=2010,
            host_memory="pageable",
            function="cudaMemcpy",
        )
        trace.launch("k", start + 2015, start + 2025, 1000)
    return trace


@scenario(
    "each frame takes 20 ms of a display that shows one each 16.7 ms: the device bounds the program, and no advice on the display helps",
    "device-bound",
    never_advises=(r"vsync|display|acquire",),
)
def frames_too_long_for_the_display() -> TraceWriter:
    trace = TraceWriter(api="vulkan")
    for frame in range(120):
        at = frame * 20_100.0
        submission = trace.submitted(at, at + 30, 20_000, "draw")
        trace.call("present", at + 40, 30, "vkQueuePresentKHR")
        trace.call("wait-fences", at + 80, 19_950, "vkWaitForFences", waits_for=submission)
        trace.call("acquire-image", at + 20_035, 25, "vkAcquireNextImageKHR")
    return trace
