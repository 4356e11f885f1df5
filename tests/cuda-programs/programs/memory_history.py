"""Training steps of the GPT of gpt.py with the history of PyTorch's allocator: what the peak is by PyTorch's own counters, and what the history costs.

Arguments: the file of the snapshot, steps that are timed.
"""

import sys
import time

import gpt
import torch
from region import finish, region


def timed(step, steps):
    """The least seconds of a step."""
    seconds = []
    for _ in range(steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main(path, steps):
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    step = gpt.trainer()
    torch.cuda.synchronize()
    # The peak of the history is that of the program's whole life: PyTorch's counters have counted from its first allocation, too.
    with region("steps", torch.cuda.synchronize):
        for _ in range(3):
            step()
    counters = torch.cuda.memory_stats()
    torch.cuda.memory._dump_snapshot(path)
    least = {"with history": timed(step, steps)}
    torch.cuda.memory._record_memory_history(enabled=None)
    least["without"] = timed(step, steps)
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    least["with stacks of Python"] = timed(step, steps)
    finish(
        requested_peak=counters["requested_bytes.all.peak"],
        reserved_now=counters["reserved_bytes.all.current"],
        live=counters["requested_bytes.all.current"],
        least_ms={way: seconds * 1e3 for way, seconds in least.items()},
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
