"""Squares numbers on the GPU and labels the work with gapscope.

The argument is a path for a capture. The program runs 1 dispatch, then 3 ranges `step` of 4 dispatches, the last of each in
`inner`, then a capture of 5 dispatches, then 1 more. It prints gapscope's answers as a line of JSON.
"""

import json
import sys

import gapscope

answers = {"before": gapscope.status().name}
with gapscope.range("init"):
    from squares import are_right, read, submit
answers["after"] = gapscope.status().name


@gapscope.range("step")
def step():
    submit(3)
    with gapscope.range("inner"):
        submit(1)
    answers["mark"] = gapscope.mark("stepped").name


submit(1)
for _ in range(3):
    step()
read()
answers["start"] = gapscope.start_capture(sys.argv[1], synchronize=read).name
with gapscope.range("captured"):
    submit(5)
answers["stop"] = gapscope.stop_capture(synchronize=read).name
answers["path"] = str(gapscope.last_capture())
submit(1)

answers["right"] = are_right(1 + 3 * 4 + 5 + 1)
print(json.dumps(answers))
