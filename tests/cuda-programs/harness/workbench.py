"""Runs one program in the ways that are compared: alone, recorded, under torch.profiler, under a bare subscription."""

import json
import sys
import time
from pathlib import Path

from . import machine, processes
from .processes import HERE, Failed, run
from .trace import traces_under


class Workbench:
    """What a part works with: the command, a scratch folder and the time that is left."""

    def __init__(self, gapscope, scratch, limit_s, mlx=None):
        self.gapscope, self.scratch, self.mlx = str(gapscope), Path(scratch), mlx
        self.limit_s, self._end, self._count = limit_s, None, 0
        # Compilers' caches are shared, so that each process of a part compiles the same.
        self.environment = {
            "TORCHINDUCTOR_CACHE_DIR": str(self.scratch / "inductor"),
            "TRITON_CACHE_DIR": str(self.scratch / "triton"),
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "CUDA_INJECTION64_PATH": None,
            "NVTX_INJECTION64_PATH": None,
        }

    def start(self):
        self._end = time.monotonic() + self.limit_s

    def left(self):
        return max(self._end - time.monotonic(), 0.0)

    def file(self, suffix):
        """A new path."""
        self._count += 1
        return self.scratch / f"{self._count:03}{suffix}"

    def alone(self, command, status=0, **environment):
        return run(command, self.left(), {**self.environment, **environment}).need(status)

    def recorded(self, command, *options, status=0, report=False, **environment):
        """Records a command. Returns how it ran, its trace, and when the command itself had ended."""
        path, stamp = self.file(".gapscope"), self.file(".json")
        recorder = [self.gapscope, "record", *([] if report else ["-q"]), "-o", path, *options, "--"]
        wrapped = [sys.executable, HERE / "harness" / "stamp.py", stamp, *command]
        ran = run([*recorder, *wrapped], self.left(), {**self.environment, **environment}).need(status)
        ending = json.loads(stamp.read_text()) if stamp.exists() else {}
        traces = traces_under(self.gapscope, path)
        if not traces:
            raise Failed(f"no trace was written: {ran.stderr.strip()[-400:]}")
        # That of the whole recording sorts before those inside it.
        return ran, min(traces, key=lambda trace: len(trace.path.parts)), ending

    def truth(self, command, **environment):
        """What torch.profiler sees of each region, in a process of its own."""
        path = self.file(".truth.json")
        ran = run(command, self.left(), {**self.environment, "TRUTH": str(path), **environment}).need()
        if not path.exists():
            raise Failed(f"{processes.shown(command)} wrote no truth")
        return ran, json.loads(path.read_text())

    def profiled(self, command, **environment):
        return self.alone(command, PROFILE="1", **environment)

    def bare(self, command, calls):
        """Under a subscription that throws its records away: of kernels and of these calls."""
        path = self.file(".bare.json")
        library = machine.build("bare_cupti", self.scratch, shared=True)
        ran = self.alone(
            command,
            CUDA_INJECTION64_PATH=str(library),
            BARE_CUPTI=str(machine.cupti()),
            BARE_REPORT=str(path),
            BARE_CALLS=calls,
        )
        report = json.loads(path.read_text()) if path.exists() else {"failed": "it was not loaded"}
        if report["failed"]:
            raise Failed(f"the bare subscription: {report['failed']} ({report.get('status')})")
        return ran, report
