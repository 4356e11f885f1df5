"""What `gapscope bench device` measures, against PyTorch and the data sheet's arithmetic."""

import json
import shutil
import subprocess
import threading

from ..processes import Failed, program, run
from ..registry import part

# Multiply-adds of 32 bits that a multiprocessor does in a cycle, by compute capability (CUDA C++ Programming Guide, arithmetic
# instructions).
MULTIPLY_ADDS = {"7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128, "10.0": 128, "12.0": 128}


def smi(what):
    if not shutil.which("nvidia-smi"):
        return None
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.stdout.strip() if done.returncode == 0 else None


class Clocks:
    """The SM clock, asked again and again."""

    def __init__(self):
        self.mhz, self._over = [], threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _ask(self):
        while not self._over.wait(0.1):
            try:
                self.mhz.append(float(smi("clocks.sm") or "nan"))
            except ValueError:
                pass


@part("device", limit_s=90, needs=("torch",))
def device(bench, result):
    """Bandwidths between PyTorch's and what the memory can, products within 10 %, multiply-adds of the data sheet; both interfaces."""
    kept = bench.scratch / "kept"
    variables = {**bench.environment, "XDG_DATA_HOME": str(kept)}
    torch = bench.alone(program("device_limits")).facts
    with Clocks() as clocks:
        ran = run([bench.gapscope, "bench", "device", "--json"], bench.left(), variables)
    result.measure("status and stderr of gapscope bench device", [ran.status, ran.stderr.strip().splitlines()[-30:]])
    result.measure("seconds", ran.seconds)
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        raise Failed(f"gapscope bench device ended with {ran.status}: {ran.stderr[-500:]}") from None
    for one in answer["devices"]:
        result.measure(f"{one['name']} by {one['api']}", one)
    result.measure("PyTorch", torch)
    result.measure("failed", answer["failed"])
    ours = next((one for one in answer["devices"] if one["api"] == "cuda"), None)
    if not ours:
        raise Failed("there is no CUDA device in the answer")
    for key in ("copy_bytes_per_s", "read_bytes_per_s", "write_bytes_per_s"):
        # PyTorch's kernels need not be the fastest; nothing is faster than the memory.
        result.at_least(f"{key}, CUDA, against PyTorch's", ours.get(key), 0.97 * torch[key])
        if torch["memory_bytes_per_s"]:
            result.at_most(f"{key}, CUDA, against the memory's clock and width", ours.get(key), torch["memory_bytes_per_s"])
    # Under the power limit the clock is not the same twice: by up to 7 % they differed.
    for inputs, flops in torch["matrix_flops"].items():
        result.within(f"matrix_flops, {inputs}", ours["matrix_flops"].get(inputs), flops, 0.1)
    multiply_adds(ours, torch, clocks.mhz, result)
    # PyTorch's launches cost its host more than ours do; in a graph they cost the host nothing.
    result.at_most("launch interval, against PyTorch's", ours.get("launch_interval_ns"), torch["launch_interval_ns"])
    result.at_least("launch interval, against a graph's", ours.get("launch_interval_ns"), torch["graph_interval_ns"])
    result.at_most("launch latency, against PyTorch's", ours.get("launch_latency_ns"), torch["launch_latency_ns"])
    result.at_least("launch latency, against the interval", ours.get("launch_latency_ns"), ours.get("launch_interval_ns"))
    for one in answer["devices"]:
        if one["api"] == "vulkan" and one["name"] == ours["name"]:
            for key in ("copy_bytes_per_s", "read_bytes_per_s", "write_bytes_per_s", "fma_f32_flops"):
                result.within(f"{key}, Vulkan against CUDA", one.get(key), ours[key], 0.1)
            # The instruction alone: cuBLAS has faster ones on Hopper, and not by more than this.
            for inputs in ("f16", "int8"):
                rate, cublas = (each["matrix_flops"].get(inputs) for each in (one, ours))
                result.at_most(f"matrix_flops, {inputs}, Vulkan against cuBLAS", rate, 1.1 * cublas)
                result.at_least(f"matrix_flops, {inputs}, Vulkan against cuBLAS", rate, 0.4 * cublas)
    again(bench, ours, variables, result)


def multiply_adds(ours, torch, mhz, result):
    """The data sheet's rate at the greatest clock; and at the clocks that were seen."""
    each = MULTIPLY_ADDS.get(smi("compute_cap") or "")
    greatest = smi("clocks.max.sm")
    if not each or not greatest:
        result.unchecked("multiply-adds", "nvidia-smi does not say the compute capability and the clock")
        return
    most = 2 * each * torch["multiprocessors"] * float(greatest) * 1e6
    result.measure("SM clock while measuring, MHz", [min(mhz, default=None), max(mhz, default=None)])
    result.measure("multiply-adds, share of the data sheet's at the greatest clock", ours["fma_f32_flops"] / most)
    result.at_most("multiply-adds", ours["fma_f32_flops"], 1.01 * most)
    result.at_least("multiply-adds", ours["fma_f32_flops"], 0.9 * most)


def again(bench, ours, variables, result):
    """What was kept is in the trace of the next recording."""
    path = bench.file(".gapscope")
    command = [bench.gapscope, "record", "-q", "-o", path, "--", *program("burn", 1)]
    run(command, bench.left(), variables).need()
    devices = json.loads((path / "trace.json").read_text())["devices"]
    measured = [(one.get("limits") or {}).get("measured") for one in devices]
    got = [one and one.get("copy_bytes_per_s") for one in measured]
    result.equal("what was kept is in a trace", got, [ours["copy_bytes_per_s"]] * len(devices))
