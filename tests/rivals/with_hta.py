"""What Holistic Trace Analysis says of a trace of the PyTorch profiler, as JSON: `with_hta.py TRACE [OTHER]`. Times are its own, whole microseconds."""

import contextlib
import io
import json
import logging
import resource
import sys
import time
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
begin = time.perf_counter()
from hta.common.trace import Trace  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402
from hta.trace_diff import LabeledTrace, TraceDiff  # noqa: E402

imported = time.perf_counter()
answers = {}
with contextlib.redirect_stdout(io.StringIO()):
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]})
    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    answers["span_us"] = float(temporal["kernel_time(us)"])
    answers["idle_us"] = float(temporal["idle_time(us)"])
    answers["compute_us"] = float(temporal["compute_time(us)"])
    idle = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    by_category = idle.groupby("idle_category", observed=True)["idle_time"].sum()
    answers["idle_by_category_us"] = {str(name): float(us) for name, us in by_category.items()}
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)[:2]
    answers["types_us"] = {row["kernel_type"]: float(row["sum"]) for _, row in types.iterrows()}
    answers["kernel_names"] = len(kernels)
    answers["kernels_us"] = float(kernels["sum (us)"].sum())
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    answers["overlap_percent"] = None if overlap != overlap else float(overlap)
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    answers["launches"] = len(launches)
    answers["launch_delay_median_us"] = float(launches["launch_delay"].median())
    if len(sys.argv) > 2:
        traces = [Trace(trace_files={0: path}) for path in sys.argv[1:]]
        sides = [LabeledTrace(label=label, t=trace) for label, trace in zip("ab", traces)]
        diff = TraceDiff.compare_traces(*sides)
        answers["diff_rows"] = len(diff)
answers["seconds"] = time.perf_counter() - imported
answers["import_seconds"] = imported - begin
answers["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(answers))
