"""One process that uses two GPUs.

Argument: what it does.

- `imbalance`: both multiply matrices; the second GPU has a tenth of the work.
- `all-reduce`: all-reduces of NCCL between both, which no launcher numbers.
"""

import sys

import torch
from region import finish, region
from torch.cuda import nccl

STEPS = 200
ALL_REDUCES = 20


def synchronise():
    for device in range(2):
        torch.cuda.synchronize(device)


def imbalance():
    matrices = [torch.ones(4096, 4096, device=f"cuda:{device}") for device in range(2)]
    for a in matrices:
        torch.mm(a, a)
    spans = []
    with region("imbalance", synchronise):
        for device, steps in ((0, STEPS), (1, STEPS // 10)):
            with torch.cuda.device(device):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for _ in range(steps):
                    torch.mm(matrices[device], matrices[device])
                end.record()
                spans.append((begin, end))
    return {"busy_ns": [begin.elapsed_time(end) * 1e6 for begin, end in spans]}


def all_reduce():
    tensors = [torch.ones(1 << 20, device=f"cuda:{device}") for device in range(2)]
    nccl.all_reduce(tensors)
    with region("all-reduce", synchronise):
        for _ in range(ALL_REDUCES):
            nccl.all_reduce(tensors)
    return {"collectives": ALL_REDUCES + 1}


if __name__ == "__main__":
    finish(**{"imbalance": imbalance, "all-reduce": all_reduce}[sys.argv[1]]())
