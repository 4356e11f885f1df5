"""What samples tell of a kernel, against Nsight Compute, which counts each launch alone."""

import shutil

from ..processes import program, run
from ..registry import part
from .counters import ACTIVE, READ, TENSOR, WRITTEN, Samples
from .profiles import rows_of_ncu

# As reports and Nsight Compute name them; the product by neither of the others.
NAMES = {"add": ("add", "CUDAFunctorOnSelf_add"), "norm": ("layer_norm", "layer_norm")}
MADE_BEFORE = ("distribution", "copy")
# Counters of samples by the metric that is the same of a launch. Of memory the bytes of a launch, not the rate, which goes with the
# clock: launches one after the other run into the power limit, and those of Nsight Compute do not.
METRICS = {
    READ: "dram__bytes_read.sum",
    WRITTEN: "dram__bytes_write.sum",
    ACTIVE: "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    TENSOR: "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
}
ESTIMATES = {READ: "dram_read_bytes", WRITTEN: "dram_written_bytes"}
SCALES = {"Gbyte": 1e9, "Mbyte": 1e6, "Kbyte": 1e3, "byte": 1, "%": 1}
# A tenth of what is smaller is not compared: shares in percent, and bytes.
LEAST_SHARE, LEAST_BYTES = 1, 100e6
TIMES, TIMES_ALONE = 100, 3


@part("counters-kernels", limit_s=120, needs=["torch"])
def means(bench, result):
    """Means by kernel from samples, against ncu on the same kernels."""
    _, trace, _ = bench.recorded(program("long_kernels", TIMES, 1.5), "--no-report", "--counters")
    sampled = {}
    for kernel in trace.report()["kernels"]:
        if kernel["count"] < TIMES or any(word in kernel["name"] for word in MADE_BEFORE):
            continue
        key = next((key for key, (word, _) in NAMES.items() if word in kernel["name"]), "gemm")
        counters = kernel["counters"]
        sampled[key] = {one["name"]: one["mean"] for one in counters["means"]}
        sampled[key] |= {name: counters[estimate]["value"] / kernel["count"] for name, estimate in ESTIMATES.items()}
        result.measure(f"{key}: {kernel['name'][:60]}", sampled[key])
        result.measure(f"{key}: limit", [kernel["limit"], kernel["limited_by"], kernel["reached"], kernel["reached_error"], counters["covered_share"]])
    result.equal("kernels", sorted(sampled), ["add", "gemm", "norm"])
    most = max(rate for name in (READ, WRITTEN) for _, _, rate in Samples(trace).need(name))
    limit = trace.manifest["devices"][0]["limits"]["memory_bytes_per_s"]
    result.at_most("the greatest rate of a sample of DRAM", most, 1.02 * limit)
    alone = by_ncu(bench, result)
    for key, counters in sampled.items():
        for counter, value in alone.get(key, {}).items():
            if value > (LEAST_BYTES if counter in ESTIMATES else LEAST_SHARE):
                result.within(f"{key}: {counter}", counters[counter], value, 0.1)


def by_ncu(bench, result):
    ncu = shutil.which("ncu")
    if ncu is None:
        result.unchecked("Nsight Compute", "ncu is not in PATH")
        return {}
    words = [ncu, "--csv", "--metrics", ",".join(METRICS.values()), "--clock-control", "none", "--cache-control", "none"]
    ran = run([*words, *program("long_kernels", TIMES_ALONE, 0)], bench.left(), bench.environment)
    result.measure("ncu said", [line for line in (ran.stdout + ran.stderr).splitlines() if line.startswith(("==ERROR", "==WARN"))][:5])
    found = {}
    for row in rows_of_ncu(ran.stdout):
        name, value, unit = row["Kernel Name"], row["Metric Value"].replace(",", ""), row["Metric Unit"]
        counter = next((counter for counter, metric in METRICS.items() if metric == row["Metric Name"]), None)
        if counter is None or any(word in name for word in MADE_BEFORE) or unit not in SCALES:
            continue
        key = next((key for key, (_, word) in NAMES.items() if word in name), "gemm")
        # The last launch stands.
        found.setdefault(key, {})[counter] = float(value) * SCALES[unit]
    result.measure("Nsight Compute", found)
    return found
