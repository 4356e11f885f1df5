"""gapscope says why a GPU is idle, slow or wrong.

    gapscope record -- python train.py          # no change to the program

In the program, to label its GPU work:

    import gapscope

    with gapscope.range("step"):
        train_step()

Afterwards, to read the trace:

    trace = gapscope.load("train.gapscope")
    trace.report["verdict"]
    trace.to_pandas("dispatches")

Without `gapscope record`, ranges, marks and captures do nothing and cost next to nothing.
"""

from ._capture import CaptureError, last_capture, start_capture, stop_capture
from ._command import CommandError, command
from ._range import mark, range
from ._status import Status, status
from ._trace import MissingPackage, Trace, TraceError, load
from ._unit import unit

__all__ = [
    "CaptureError",
    "CommandError",
    "MissingPackage",
    "Status",
    "Trace",
    "TraceError",
    "command",
    "last_capture",
    "load",
    "mark",
    "range",
    "start_capture",
    "status",
    "stop_capture",
    "unit",
]
