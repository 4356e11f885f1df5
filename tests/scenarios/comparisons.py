"""Pairs of programs whose difference is known by construction: what `gapscope diff` must and must not say of each."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trace_writer import TraceWriter


@dataclass(frozen=True)
class Comparison:
    """A program before and after a change, with the right answer."""

    name: str
    text: str
    """The right answer in a phrase, for the documentation."""
    after: Callable[[], TraceWriter]
    before: Callable[[], TraceWriter] = field(default_factory=lambda: lambda: steps())
    verdict: str | None = None
    """A pattern of the verdict."""
    equal_work: tuple[bool | None, ...] = (True, False, None)
    """What may be said of whether both did equal work; `None` is that this is unknown."""
    wall_ratio: tuple[float, float] | None = None
    """Between what the ratio of the times from start to end lies."""
    kernel_ratios: dict[str, float] = field(default_factory=dict)
    """How much longer kernels run after the change; each must be within 1 %."""
    arguments: tuple[str, ...] = ()
    exit_code: int = 0
    says: tuple[str, ...] = ()
    """Patterns that the text must contain."""
    never_says: tuple[str, ...] = (r"-0\.0\b", r"−0\.0\b")
    """Patterns that the text must not contain."""

    def contradictions(self, code: int, findings: dict[str, Any], report: str) -> list[str]:
        """Returns what is wrong in the answer, in sentences."""
        wrong = []
        if code != self.exit_code:
            wrong.append(f"the exit code is {code}, not {self.exit_code}")
        if self.verdict and not re.fullmatch(self.verdict, findings["verdict"]):
            wrong.append(f"the verdict is {findings['verdict']}, not {self.verdict}")
        equal = findings["equal_work"]["equal"]
        if equal not in self.equal_work:
            wrong.append(f"equal work is {equal}, not {self.equal_work}")
        changes = {change["name"]: change for change in findings["changes"]}
        if self.wall_ratio:
            ratio = changes["wall_time"]["ratio"]
            if not self.wall_ratio[0] <= ratio <= self.wall_ratio[1]:
                wrong.append(f"the time from start to end is {ratio} times as long")
        for kernel, right in self.kernel_ratios.items():
            ratios = [
                c["ratio"]
                for name, c in changes.items()
                if name == f"kernel({kernel})" or c["what"] == kernel
            ]
            if not any(ratio and math.isclose(ratio, right, rel_tol=0.01) for ratio in ratios):
                wrong.append(f"{kernel} is {ratios} times as long, not {right}")
        wrong += [f"it does not say /{p}/" for p in self.says if not re.search(p, report, re.I)]
        for pattern in self.never_says:
            if said := re.search(pattern, report, re.I):
                wrong.append(f"it says {said[0]!r}")
        return wrong


def steps(
    seed: int = 0,
    kernels: dict[str, float] | None = None,
    count: int = 50,
    slower: dict[str, float] | None = None,
    groups: int | None = None,
    pause: float = 0,
    copied_bytes: int = 2**22,
    copying: float = 50,
    queues: dict[str, int] | None = None,
    labels: bool = True,
    code: str | None = None,
) -> TraceWriter:
    """Returns a program of `count` steps, each with its kernels (durations vary by 1 %), a copy and a pause."""
    kernels = kernels or {"gemm": 400, "softmax": 100, "add": 50}
    noise, trace, start = random.Random(seed), TraceWriter(), 1000.0
    for step in range(count):
        label = f"step {step}" if labels else None
        if label:
            trace.range(label, start - 20, sum(kernels.values()) + 20)
        for kernel, usual in kernels.items():
            duration = usual * math.exp(noise.gauss(0, 0.01)) * (slower or {}).get(kernel, 1)
            if code and kernel.startswith("softmax"):
                trace.kernel(kernel, source=code)
            queue = (queues or {}).get(kernel, 1)
            trace.launch(kernel, start - 15, start, duration, queue, 3, label=label, groups=groups)
            start += duration + 2
        trace.copy("device-to-host", start - 10, start, copying, copied_bytes, call_duration=3, label=label)
        start += 22 + copying + pause
    return trace


def empty() -> TraceWriter:
    """Returns a program that uses a GPU for nothing."""
    trace = TraceWriter()
    trace.call("wait-device-idle", 10, 1000, "cudaDeviceSynchronize")
    return trace


def uneven(seed: int, factor: float = 1.0) -> TraceWriter:
    """Returns a program whose kernels vary by 5 %, and take 1.3 times as long in every second stretch of 25 steps."""
    noise, trace, start = random.Random(seed), TraceWriter(), 1000.0
    for step in range(200):
        slow = 1.3 if step // 25 % 2 else 1.0
        for kernel, usual in (("gemm", 400 * factor * slow), ("norm", 100)):
            duration = usual * (1 + noise.gauss(0, 0.05))
            trace.launch(kernel, start - 15, start, duration, call_duration=3)
            start += duration + 2
    return trace


def at_clock(hertz: float, factor: float, seed: int, readings: int = 1) -> TraceWriter:
    """Returns the usual program on a GPU of another clock, which is read each millisecond."""
    trace = steps(seed, slower={"gemm": factor, "softmax": factor, "add": factor})
    trace.counter("SM clock", "hertz", [(number * 1000, hertz) for number in range(readings)])
    return trace


def reduced(seed: int, beside: bool = True, allocating: float = 0) -> TraceWriter:
    """Returns a program whose reduction runs beside the kernels of the next step or behind them, and which may allocate before each step."""
    noise, trace, start, stream_free = random.Random(seed), TraceWriter(), 1000.0, 0.0
    for _ in range(60):
        if allocating:
            trace.call("allocate-memory", start, allocating, "cudaMalloc")
            start += allocating
        for kernel, usual in (("gemm", 800), ("softmax", 200), ("norm", 160)):
            duration = usual * math.exp(noise.gauss(0, 0.01))
            trace.launch(kernel, start - 15, start, duration, call_duration=3)
            start += duration + 1
        reduction = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
        stream_free = max(start, stream_free) + 3
        trace.launch(reduction, start - 10, stream_free, 500, 2 if beside else 1, call_duration=3)
        stream_free += 500
        if not beside:
            start = stream_free + 1
    return trace


NO_CHANGE = "no-difference"

COMPARISONS = [
    Comparison(
        "uneven_program",
        "no difference between two runs of a program whose kernels vary, with slow stretches",
        lambda: uneven(1),
        lambda: uneven(2),
        verdict=NO_CHANGE,
    ),
    Comparison(
        "uneven_and_slower", "slower by a quarter, beyond what varies", lambda: uneven(1, 1.25), lambda: uneven(2), verdict="slower"
    ),
    Comparison(
        "another_clock",
        "the GPU ran at another clock, which is said",
        lambda: at_clock(1410e6, 1.404, 1),
        lambda: at_clock(1980e6, 1, 0),
        says=(r"clock",),
    ),
    Comparison(
        "another_clock_that_was_read",
        "the GPU ran at another clock, and both clocks are said",
        lambda: at_clock(1410e6, 1.404, 1, 38),
        lambda: at_clock(1980e6, 1, 0, 27),
        says=(r"ran at 1980 MHz before and at 1410 MHz after",),
    ),
    Comparison(
        "two_kernels_in_one",
        "not called equal work: two kernels became one",
        lambda: steps(1, {"gemm": 400, "softmax_add": 120}),
        equal_work=(False, None),
    ),
    Comparison(
        "kernels_in_another_order",
        "no difference: the same kernels in another order",
        lambda: steps(1, {"add": 50, "softmax": 100, "gemm": 400}),
        verdict=NO_CHANGE,
    ),
    Comparison(
        "a_kernel_on_another_stream",
        "no difference: one kernel runs on a stream of its own",
        lambda: steps(1, queues={"softmax": 2}),
        verdict=NO_CHANGE,
    ),
    Comparison(
        "an_overlap_that_was_lost",
        "slower, because a reduction no longer runs beside kernels; no kernel is blamed",
        lambda: reduced(1, beside=False),
        lambda: reduced(2),
        verdict="slower",
        says=(r"29\.\d ms of work no longer\s+ran beside other work",),
        never_says=(r"`\w+` takes",),
    ),
    Comparison(
        "an_overlap_that_is_new",
        "faster, because a reduction runs beside kernels now",
        lambda: reduced(1),
        lambda: reduced(2, beside=False),
        verdict="faster",
        says=(r"29\.\d ms more work ran\s+beside other work",),
        never_says=(r"`\w+` takes",),
    ),
    Comparison(
        "slower_copies",
        "slower, because copies take longer",
        lambda: steps(1, copying=400),
        lambda: steps(2, copying=50),
        verdict="slower",
        says=(r"transfers take 8\.\d+ × as long",),
    ),
    Comparison(
        "a_host_that_takes_longer",
        "slower, because the host takes longer between steps",
        lambda: steps(1, pause=600),
        lambda: steps(2, pause=300),
        verdict="slower",
        says=(r"29\d µs\s+more idle",),
    ),
    Comparison(
        "a_new_cause_of_idle_time",
        "slower, because the program allocates before each step",
        lambda: reduced(1, beside=False, allocating=300),
        lambda: reduced(2, beside=False),
        verdict="slower",
        says=(r"1[67]\.\d ms more idle\s+\(host allocates\)",),
        never_says=(r"beside other work",),
    ),
    Comparison("same_program", "no difference", lambda: steps(1), verdict=NO_CHANGE, equal_work=(True,)),
    Comparison(
        "one_kernel_10_percent_slower",
        "softmax takes 1.10 times as long",
        lambda: steps(2, slower={"softmax": 1.1}),
        equal_work=(True,),
        kernel_ratios={"softmax": 1.1},
    ),
    Comparison(
        "twice_as_slow",
        "slower, twice as long",
        lambda: steps(2, slower={"gemm": 2, "softmax": 2, "add": 2}),
        verdict="slower",
        equal_work=(True,),
    ),
    Comparison(
        "more_steps",
        "the same for each step, although there are more of them",
        lambda: steps(3, count=55),
        verdict=NO_CHANGE,
    ),
    Comparison(
        "half_the_workgroups",
        "not equal work: half of the workgroups took half of the time",
        lambda: steps(20, groups=500, slower={"gemm": 0.5, "softmax": 0.5, "add": 0.5}),
        lambda: steps(20, groups=1000),
        equal_work=(False,),
        says=(r"workgroups|blocks|groups",),
    ),
    Comparison(
        "half_the_workgroups_as_fast",
        "not equal work: half of the workgroups in the same time",
        lambda: steps(20, groups=500),
        lambda: steps(20, groups=1000),
        equal_work=(False,),
    ),
    Comparison(
        "a_third_of_the_workgroups_of_one_kernel",
        "not called equal work, and the kernel is named",
        lambda: _other_groups("gemm", 300, 0.34),
        lambda: _other_groups("gemm", 900, 1),
        equal_work=(False, None),
        says=(r"gemm",),
    ),
    Comparison(
        "half_of_the_copied_bytes",
        "not equal work: half of the bytes are copied",
        lambda: steps(10, copied_bytes=2**21),
        equal_work=(False,),
        says=(r"bytes",),
    ),
    Comparison(
        "a_kernel_less",
        "not equal work: add is gone",
        lambda: steps(11, {"gemm": 400, "softmax": 100}),
        equal_work=(False,),
    ),
    Comparison(
        "slower_host",
        "slower: the host pauses for 0.2 ms more in each step",
        lambda: steps(9, pause=200),
        verdict="slower",
        equal_work=(True,),
        wall_ratio=(1.25, 1.40),
    ),
    Comparison(
        "renamed_kernel_of_equal_code",
        "softmax has a new name and the same code: one kernel, as fast as before",
        lambda: steps(4, {"gemm": 400, "softmax_v2": 100, "add": 50}, code="7e57"),
        lambda: steps(0, code="7e57"),
        equal_work=(True,),
        never_says=(r"\bgone\b", r"-0\.0\b", r"−0\.0\b"),
    ),
    Comparison(
        "gate_that_holds",
        "a gate of 50 % on equal programs holds",
        lambda: steps(1),
        arguments=("--gate", "gpu_time > 50%"),
    ),
    Comparison(
        "gate_that_breaks",
        "a gate of 20 % on a program that takes twice as long is broken",
        lambda: steps(2, slower={"gemm": 2, "softmax": 2, "add": 2}),
        arguments=("--gate", "gpu_time > 20%"),
        exit_code=1,
    ),
    Comparison(
        "gate_on_an_unknown_figure",
        "a gate on bytes that no side knows cannot be judged, and fails",
        lambda: steps(1),
        arguments=("--gate", "idle_time(host-signal) > 5%", "--gate", "kernel(absent) > 5%"),
        exit_code=1,
    ),
    Comparison(
        "other_sizes_of_one_sum",
        "not equal work: dispatches of 100 and 900 workgroups instead of two of 500",
        lambda: _sizes([100, 900]),
        lambda: _sizes([500]),
        equal_work=(False,),
        says=(r"Launched in other sizes",),
    ),
    Comparison(
        "sizes_in_another_order",
        "equal work: the same sizes in another order",
        lambda: _sizes([100, 300, 900]),
        lambda: _sizes([900, 300, 100]),
        equal_work=(True,),
    ),
    Comparison(
        "kernels_that_exchange_sizes",
        "not called equal work: two kernels exchanged their numbers of workgroups",
        lambda: _sizes([100, 900], ("gemm", "add")),
        lambda: _sizes([900, 100], ("gemm", "add")),
        equal_work=(False, None),
        says=(r"gemm",),
    ),
    Comparison(
        "other_copies_of_one_sum",
        "not equal work: copies of 1 and 3 MiB instead of two of 2 MiB",
        lambda: _sizes([500], copies=[("host-to-device", 2**20), ("host-to-device", 3 * 2**20)]),
        lambda: _sizes([500], copies=[("host-to-device", 2**21)]),
        equal_work=(False,),
        says=(r"in other sizes or directions: host-to-device",),
    ),
    Comparison(
        "copies_in_other_directions",
        "not equal work: large copies go to the host instead of the device",
        lambda: _sizes([500], copies=[("host-to-device", 2**20), ("device-to-host", 2**22)]),
        lambda: _sizes([500], copies=[("host-to-device", 2**22), ("device-to-host", 2**20)]),
        equal_work=(False,),
        says=(r"in other sizes or directions",),
    ),
    Comparison(
        "other_kernels_as_often",
        "not called equal work: as many dispatches of other kernels",
        lambda: steps(1, {"a_v2": 200, "b_v2": 200, "add": 50}),
        lambda: steps(2, {"a": 200, "b": 200, "add": 50}),
        equal_work=(None,),
        says=(r"As many kernels ran, under other names or in other numbers",),
    ),
    Comparison(
        "renamed_and_slower",
        "softmax has a new name and the same code, and takes twice as long",
        lambda: steps(4, {"gemm": 400, "softmax_v2": 200, "add": 50}, code="7e57"),
        lambda: steps(0, code="7e57"),
        verdict="slower",
        equal_work=(True,),
        kernel_ratios={"softmax_v2": 2.0},
        says=(r"functions\s+of\s+the\s+same\s+code",),
        never_says=(r"whose place it took", r"whether they do the same"),
    ),
    Comparison(
        "three_steps_twice_as_slow",
        "slower, and too few dispatches to say which kernels are",
        lambda: steps(4, count=3, slower={"gemm": 2, "softmax": 2, "add": 2}),
        lambda: steps(3, count=3),
        verdict="slower",
        says=(r"cannot be judged", r"3 kernels that ran too rarely"),
        never_says=(r"0 of 3 kernels",),
    ),
    Comparison(
        "nothing_before",
        "unknown: there is no GPU work before",
        lambda: steps(1),
        empty,
        verdict="unknown",
        equal_work=(False,),
        arguments=("--gate", "gpu_time > 5%"),
        exit_code=1,
        says=(r"There is no GPU work before", r"gpu_time is not known before"),
        never_says=(r"0 comparisons", r"on both sides"),
    ),
    Comparison(
        "nothing_after",
        "unknown: there is no GPU work after",
        empty,
        verdict="unknown",
        equal_work=(False,),
        arguments=("--gate", "gpu_time > 5%"),
        exit_code=1,
        says=(r"There is no GPU work after", r"gpu_time is not known after"),
        never_says=(r"0 comparisons", r"on both sides"),
    ),
    Comparison(
        "nothing_at_all",
        "unknown: neither side has GPU work",
        empty,
        empty,
        verdict="unknown",
        equal_work=(None,),
        arguments=("--gate", "wall_time > 5%"),
        exit_code=1,
        says=(r"Neither side has any GPU work", r"wall_time is not known on either side"),
        never_says=(r"Equal work", r"0 comparisons", r"on both sides"),
    ),
    Comparison(
        "two_of_three_gates_break",
        "two gates are broken and one holds",
        lambda: steps(2, slower={"gemm": 1.5}),
        verdict="slower",
        arguments=(
            *("--gate", "gpu_time > 5%"),
            *("--gate", "kernel(gemm) > 5%"),
            *("--gate", "kernel(add) > 10%"),
        ),
        exit_code=1,
        says=(r"1 of 3 held, 2 broken",),
    ),
]


def _sizes(groups: list[int], names: tuple[str, ...] = ("gemm",), copies: list[tuple[str, int]] = []) -> TraceWriter:
    """Returns a program whose dispatches have these workgroups in turn, by kernels in turn, and takes as long for each of them."""
    trace, start, noise = TraceWriter(), 1000.0, random.Random(len(groups) + groups[0])
    for at in range(240):
        count, name = groups[at % len(groups)], names[at % len(names)]
        duration = count * 0.5 * math.exp(noise.gauss(0, 0.01))
        trace.launch(name, start - 10, start, duration, groups=count)
        start += duration + 5
        if copies:
            direction, size = copies[at % len(copies)]
            trace.copy(direction, start - 10, start, 20, size)
            start += 25
    return trace


def _other_groups(kernel: str, groups: int, factor: float) -> TraceWriter:
    """Returns the program in which one kernel has another number of workgroups and takes `factor` times as long."""
    trace = steps(21, slower={kernel: factor}, groups=900)
    number = trace.kernels[(kernel, 1)]
    for row in trace.rows["dispatches"]:
        if row["kernel"] == number:
            row["groups_x"] = groups
    return trace
