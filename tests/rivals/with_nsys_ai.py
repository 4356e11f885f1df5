"""What nsys-ai says of an export of Nsight Systems: `with_nsys_ai.py PROGRAM TRACE.sqlite` prints seconds and peak memory of its cache and of eight skills, as JSON."""

import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

SKILLS = (
    "gpu_idle_gaps",
    "top_kernels",
    "overlap_breakdown",
    "memory_transfers",
    "kernel_launch_overhead",
    "sync_cost_analysis",
    "nccl_breakdown",
    "stream_concurrency",
)

program, trace = sys.argv[1], Path(sys.argv[2])
shutil.rmtree(trace.with_suffix(".nsys-cache"), ignore_errors=True)


def timed(*arguments: str) -> tuple[float, str]:
    begin = time.perf_counter()
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, done.stdout


answers = {"warm_seconds": timed("warm", str(trace))[0], "skill_seconds": {}, "said": {}}
for skill in SKILLS:
    seconds, said = timed("skill", "run", skill, str(trace))
    answers["skill_seconds"][skill] = seconds
    answers["said"][skill] = said.splitlines()[:8]
answers["seconds"] = answers["warm_seconds"] + sum(answers["skill_seconds"].values())
answers["peak_mb"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps(answers))
