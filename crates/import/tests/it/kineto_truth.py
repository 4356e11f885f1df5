"""Counts the events of files of PyTorch's profiler with Python's own JSON reader, as one line of JSON for each file."""

import collections
import json
import sys
from decimal import Decimal

WORK = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "fill"}
HOST = {
    "cpu_op": "operator",
    "python_function": "python",
    "user_annotation": "annotation",
    "cuda_runtime": "call",
    "cuda_driver": "call",
}


def nanoseconds(microseconds):
    return int((Decimal(microseconds) * 1000).to_integral_value())


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        events = json.load(file, parse_float=str, parse_int=str)["traceEvents"]
    found = collections.Counter()
    for event in events:
        category = event.get("cat")
        kind = WORK.get(category) or HOST.get(category)
        if event.get("ph") != "X" or kind is None:
            continue
        found[kind] += 1
        found[f"{kind}_ns"] += nanoseconds(event["dur"])
        if kind in ("copy", "fill"):
            found[f"{kind}_bytes"] += int(event["args"]["bytes"])
    print(json.dumps(found))
