"""Squares numbers on the GPU in 6 units of work; the n-th has n dispatches. It prints the captured ones as a line of JSON.

An argument is a time in seconds that the program sleeps in each unit.
"""

import json
import sys
import time

import gapscope
from squares import are_right, read, submit

captured = []
for n in range(1, 7):
    with gapscope.unit(synchronize=read) as unit, gapscope.range(f"unit {n}"):
        submit(n)
        if sys.argv[1:]:
            read()
            time.sleep(float(sys.argv[1]))
    captured.append(unit.captured)
print(json.dumps({"captured": captured, "path": str(gapscope.last_capture()), "right": are_right(sum(range(1, 7)))}))
