"""Launches that are profiled one by one: values against what is known, and what it costs."""

import csv
import io
import shutil

from ..processes import Failed, program, run
from ..registry import part

DRAM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
TENSOR = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
THROUGHPUTS = (
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
)
# As reports show them; the product by what all of cuBLAS's have in common.
CHOSEN = {"add": "add_scalar<float>", "gemm": "gemm", "norm": "layer_norm", "cos": "cos<float>"}


@part("profile-kernel", limit_s=150, needs=("torch",))
def profile_kernel(bench, result):
    """Kernels profiled by `record --profile-kernel`: bytes, operations, results bit for bit, and ncu where it is found."""
    command = program("profile_kernel")
    alone = bench.alone(command)
    plain, plain_trace, _ = bench.recorded(command)
    options = [word for name in CHOSEN.values() for word in ("--profile-kernel", f"{name}:2")]
    ran, trace, _ = bench.recorded(command, *options)
    result.equal("results", ran.facts["digest"], alone.facts["digest"])
    result.equal("results when recorded", plain.facts["digest"], alone.facts["digest"])
    result.measure("seconds", {"alone": alone.facts["seconds"], "recorded": plain.facts["seconds"], "profiled": ran.facts["seconds"]})
    result.measure("notes", trace.manifest.get("notes"))
    result.measure("losses", trace.losses)
    report = trace.report()
    counts = {kernel["name"]: kernel["count"] for kernel in report["kernels"]}
    result.equal("dispatches by kernel", counts, {kernel["name"]: kernel["count"] for kernel in plain_trace.report()["kernels"]})
    calls = zip(*trace.columns("host_calls", "function", "duration_ns"))
    held = [round(ns / 1e6, 1) for function, ns in calls if function == "profiling of a kernel"]
    result.measure("milliseconds of each profile", held)
    result.measure("verdict", [report["verdict"], report["verdict_sentence"]])

    profiled = report.get("profiled_kernels", [])
    result.equal("profiled launches", len(profiled), 2 * len(CHOSEN))
    facts = ran.facts
    for key, name in CHOSEN.items():
        ours = [one for one in profiled if name in one["kernel"] or name in (one["full_name"] or "")]
        if not result.check(f"{key}: profiled", ours, [one["kernel"] for one in profiled]):
            continue
        one = ours[-1]
        values = {metric["metric"]: metric["value"] for metric in one["metrics"]}
        result.measure(key, {name: one[name] for name in ("kernel", "passes", "sentence", "duration_ns", "achieved_occupancy", "theoretical_occupancy", "l2_hit_rate", "dram_read_bytes", "dram_written_bytes")})
        result.measure(f"{key}: stalls", [(stall["reason"], round(stall["share"], 3)) for stall in one["stalls"][:4]])
        result.measure(f"{key}: metrics", len(values))
        if one["theoretical_occupancy"] is not None and one["achieved_occupancy"] is not None:
            result.at_most(f"{key}: achieved occupancy", one["achieved_occupancy"], one["theoretical_occupancy"] + 0.02)
        if key == "add":
            for metric in DRAM:
                result.within(f"{key}: {metric}", values.get(metric), facts["add_bytes"], 0.03)
        if key == "gemm":
            result.within("gemm: operations of the tensor cores", values.get(TENSOR), facts["gemm_operations"], 0.01)
        if key == "norm":
            # Each row is read twice, the second time mostly from the cache: on an H100 a fifth is not there any more.
            result.at_least(f"{key}: {DRAM[0]}", values.get(DRAM[0]), 0.97 * facts["norm_bytes"])
            result.at_most(f"{key}: {DRAM[0]}", values.get(DRAM[0]), 2.03 * facts["norm_bytes"])
    compare_with_ncu(bench, result, command, profiled)


def rows_of_ncu(printed):
    """The rows that `ncu --csv` has printed among other lines, by their columns."""
    lines = [line for line in printed.splitlines() if line.startswith('"')]
    return csv.DictReader(io.StringIO("\n".join(lines)))


def compare_with_ncu(bench, result, command, profiled):
    """The same kernels by Nsight Compute, in a process of its own."""
    ncu = shutil.which("ncu")
    if ncu is None:
        result.unchecked("Nsight Compute", "ncu is not in PATH")
        return
    metrics = DRAM + THROUGHPUTS
    words = [ncu, "--csv", "--metrics", ",".join(metrics), "--clock-control", "none", "--cache-control", "none",
             "--kernel-name", "regex:(vectorized_elementwise|layer_norm)", "--launch-count", "6"]  # fmt: skip
    try:
        ran = run([*words, *command], bench.left(), bench.environment).need()
    except Failed as failure:
        result.unchecked("Nsight Compute", str(failure)[-300:])
        return
    found = {}
    for row in rows_of_ncu(ran.stdout):
        value = row["Metric Value"].replace(",", "")
        found.setdefault(row["Kernel Name"], {}).setdefault(row["Metric Name"], (float(value), row["Metric Unit"]))
    result.measure("Nsight Compute", {name[:60]: values for name, values in found.items()})
    scales = {"Gbyte": 1e9, "Mbyte": 1e6, "Kbyte": 1e3, "byte": 1, "%": 1}
    for key in ("add", "norm"):
        ours = [one for one in profiled if CHOSEN[key] in one["kernel"] or CHOSEN[key] in (one["full_name"] or "")]
        word = "CUDAFunctorOnSelf_add" if key == "add" else "layer_norm"
        theirs = next((values for name, values in found.items() if word in name), None)
        if not ours or theirs is None:
            result.unchecked(f"{key}: Nsight Compute", "it has no such kernel")
            continue
        values = {metric["metric"]: metric["value"] for metric in ours[-1]["metrics"]}
        for metric, (value, unit) in theirs.items():
            result.within(f"{key}: {metric} as by Nsight Compute", values.get(metric), value * scales.get(unit, 1), 0.1)
