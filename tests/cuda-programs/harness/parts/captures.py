"""Captures of CUDA: programs compute the same, and what was captured runs again bit for bit, by two implementations."""

import json
import os
import shutil
import subprocess
import sys
import time

from ..processes import HERE, Failed, program, run
from ..registry import part

# What is captured of each kind of `programs/captured.py`.
WINDOWS = {
    "train": ("--label", "step 3"),
    "compiled": ("--label", "step 3"),
    "generate": ("--launches", "1200..1500"),
    "cupy": ("--launches", "0..400"),
    "jax": ("--launches", "0..200"),
}
# The kernels of `programs/captured.py decode` inside of its graph: a name, and which of its launches.
IN_GRAPH = ("Gelu:60", "layer_norm:83", "softmax:11", "nvjet:70", "index:9")
# Kernels of `programs/captured.py` of which only the pages that they need are kept: the kind, the window, and the pages that they
# read, where that is known. `sparse` reads a page for each of 20 rows, its list of rows, and what prepares the gather.
SHRUNK = (
    ("sparse", ("--label", "gather"), (20, 25)),
    ("decode", ("--kernel", "softmax:11"), None),
    ("train", ("--kernel", "layer_norm:2"), None),
)
# Kinds of `native/captured.cu` that a capture refuses by name, or whose replay says what differs.
HAZARDS = {
    "malloc": "allocates memory on the GPU",
    "managed": "managed memory",
    "global-in-memory": "the variable table",
    "wait": "did not end within",
    "atomics": None,
    "virtual": None,
    "texture": "a texture or a surface",
    "clock": None,
}


def capture(bench, command, window, alone=None):
    """Captures a window; returns the folder, or None where there is none, and what gapscope says."""
    folder = bench.file(".gapcapture")
    begin = time.monotonic()
    ran = run([bench.gapscope, "capture", "--json", "-o", folder, *window, "--", *command], min(bench.left(), 150), bench.environment)
    seconds = time.monotonic() - begin
    lines = [line for line in ran.stderr.splitlines() if line.startswith(('{"capture"', "gapscope:"))]
    said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {"said": lines[-1:] or ran.stderr[-300:]}
    if alone is not None and ran.stdout != alone.stdout:
        said["differs"] = f"status {ran.status}, printed {ran.stdout[-200:]!r}, alone {alone.stdout[-200:]!r}: {ran.stderr[-300:]}"
    return (folder if folder.exists() else None), {**said, "seconds": round(seconds, 2)}


def independent(bench, folder):
    """Replays by an implementation that shares nothing with gapscope."""
    ran = run(program("replay_capture", folder), bench.left(), bench.environment)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if not lines or "launches" not in lines[-1]:
        raise Failed(f"the independent replay failed: {(ran.stderr or ran.stdout).strip()[-400:]}")
    return lines[-1], lines[:-1]


def replayed(bench, folder, *options):
    """Replays by gapscope, in a process of its own."""
    ran = run([bench.gapscope, "replay", "--json", *options, folder], bench.left(), bench.environment)
    try:
        return ran.status, json.loads(ran.stdout)
    except json.JSONDecodeError:
        return ran.status, {"said": ran.stderr.strip()[-400:]}


def size_of(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


@part("capture", 500, needs=("blake3", "pyarrow"))
def windows(bench, result):
    """Windows of programs: results as without gapscope; each launch again bit for bit, by gapscope and independently."""
    times = int(os.environ.get("CAPTURE_TIMES", "5"))
    for kind, window in WINDOWS.items():
        alone = bench.alone(program("captured", kind))
        folder, said = capture(bench, program("captured", kind), window, alone)
        result.check(f"{kind}: computes as without gapscope", "differs" not in said, said.get("differs"))
        result.check(f"{kind}: captured", folder is not None, said)
        if folder is None:
            continue
        whole, different = independent(bench, folder)
        result.equal(f"{kind}: launches that the independent replay computes the same", whole["equal"], whole["launches"])
        outcomes = [replayed(bench, folder) for _ in range(times)]
        equal = sum(status == 0 and answer.get("equal") is True for status, answer in outcomes)
        result.equal(f"{kind}: replays in fresh processes that are equal", equal, times)
        result.measure(kind, {"launches": whole["launches"], "names": whole["names"], "names equal": whole["names_equal"],
                              "seconds alone": round(alone.seconds, 2), "seconds captured": said["seconds"],
                              "MB": round(size_of(folder) / 1e6, 1), "end": said.get("end"), "detail": said.get("end_detail"),
                              "different": different[:3], "replay": outcomes[-1][1] if equal < times else None})  # fmt: skip
        shutil.rmtree(folder)


@part("capture-graphs", 300, needs=("torch", "blake3", "pyarrow"))
def graphs(bench, result):
    """Kernels inside of a graph that decodes: captured by the number of their launch; the program computes the same."""
    alone = bench.alone(program("captured", "decode"))
    for name in IN_GRAPH:
        folder, said = capture(bench, program("captured", "decode"), ("--kernel", name), alone)
        result.check(f"{name}: computes as without gapscope", "differs" not in said, said.get("differs"))
        if folder is None:
            result.note(f"{name}: {said}")
            continue
        whole, different = independent(bench, folder)
        status, answer = replayed(bench, folder, "--repeat", "5")
        result.equal(f"{name}: equal by the independent replay", whole["equal"], 1)
        result.equal(f"{name}: equal by gapscope", answer.get("equal"), True)
        result.measure(name, {"seconds": said["seconds"], "alone": round(alone.seconds, 2), "MB": round(size_of(folder) / 1e6, 1),
                              "different": different[:1], "status": status})  # fmt: skip


@part("capture-shrink", 300, needs=("torch",))
def shrink(bench, result):
    """Captures with only the pages that kernels need, as many as is known by construction; they run again bit for bit."""
    times = int(os.environ.get("CAPTURE_TIMES", "5"))
    alone = {}
    for kind, window, pages in SHRUNK:
        name = f"{kind} {window[1]}"
        if kind not in alone:
            alone[kind] = bench.alone(program("captured", kind))
        folder, said = capture(bench, program("captured", kind), window, alone[kind])
        result.check(f"{name}: computes as without gapscope", "differs" not in said, said.get("differs"))
        if folder is None:
            result.check(f"{name}: captured", False, json.dumps(said))
            continue
        small = folder.with_name(f"small-{folder.name}")
        begin = time.monotonic()
        status, answer = replayed(bench, folder, "--shrink", small)
        seconds = time.monotonic() - begin
        shrunk = answer.get("shrunk")
        result.check(f"{name}: the pages are told", shrunk is not None, json.dumps(answer))
        if shrunk is None:
            continue
        if pages:
            result.check(f"{name}: pages", pages[0] <= shrunk["pages_kept"] <= pages[1], shrunk["pages_kept"])
        outcomes = [replayed(bench, small) for _ in range(times)]
        equal = sum(status == 0 and answer.get("equal") is True for status, answer in outcomes)
        result.equal(f"{name}: replays of the small capture in fresh processes that are equal", equal, times)
        result.measure(name, {**shrunk, "seconds": round(seconds, 1), "MB": round(size_of(folder) / 1e6, 2),
                              "small MB": round(size_of(small) / 1e6, 2)})  # fmt: skip
        shutil.rmtree(folder)
        shutil.rmtree(small)


@part("capture-hard", 400, needs=("blake3", "pyarrow"))
def hard(bench, result):
    """Hard kernels run again; hazards are refused by name, or the replay says that they differ."""
    target = bench.scratch / "captured"
    if not shutil.which("nvcc"):
        raise Failed("skipped: captured.cu needs nvcc")
    made = subprocess.run(["nvcc", "-arch=native", "-rdc=true", "-o", target, HERE / "native" / "captured.cu"], capture_output=True, text=True)
    if made.returncode:
        raise Failed(f"captured.cu cannot be compiled: {made.stderr[-300:]}")
    alone = bench.alone([target, "hard"])
    folder, said = capture(bench, [target, "hard"], (), alone)
    result.check("hard: computes as without gapscope", "differs" not in said, said.get("differs"))
    result.check("hard kernels are captured", folder is not None, said)
    if folder:
        whole, different = independent(bench, folder)
        result.equal("hard: equal by the independent replay", whole["equal"], whole["launches"])
        status, answer = replayed(bench, folder, "--repeat", "3")
        result.equal("hard: equal by gapscope", answer.get("equal"), True)
        result.measure("hard", {"launches": whole["launches"], "end": whole.get("end"), "different": different})
    for kind, phrase in HAZARDS.items():
        alone = bench.alone([target, kind])
        folder, said = capture(bench, [target, kind], (), alone)
        detail = json.dumps(said)
        result.check(f"{kind}: computes as without gapscope", kind == "clock" or "differs" not in said, said.get("differs"))
        if phrase:
            result.check(f"{kind}: refused by name", phrase in detail, detail[-300:])
        elif folder:
            status, answer = replayed(bench, folder, "--repeat", "20")
            result.measure(kind, {"status": status, "equal": answer.get("equal"), "notes": answer.get("notes"),
                                  "said": answer.get("said"), "capture": said.get("end_detail")})  # fmt: skip
        else:
            result.measure(kind, said)


@part("capture-speed", 300, needs=("torch",))
def speed(bench, result):
    """The time for a window of one kernel with 2 GiB of inputs, and the bandwidth of its copies."""
    alone = bench.alone(program("captured", "large"))
    for window in (("--kernel", "hypot:1"), ("--kernel", "no such kernel")):
        folder, said = capture(bench, program("captured", "large"), window, alone)
        row = {"seconds": said["seconds"], "alone": round(alone.seconds, 2), "said": str(said)[-200:]}
        if folder:
            row["MB"] = round(size_of(folder) / 1e6, 1)
            begin = time.monotonic()
            status, answer = replayed(bench, folder)
            row["replay s"], row["replay"] = round(time.monotonic() - begin, 2), answer.get("equal", answer)
            shutil.rmtree(folder)
        result.measure(" ".join(window), row)
    result.note(f"python {sys.version.split()[0]}")
