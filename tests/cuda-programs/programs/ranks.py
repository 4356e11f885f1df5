"""Ranks that compute and all-reduce; rank 1 is late in a few steps. Run by torchrun.

Argument: steps.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from region import finish, region

LATE_STEPS = (10, 11, 12)
LATE_SECONDS = 0.03


def main(steps):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    several = torch.cuda.device_count() >= world
    torch.cuda.set_device(rank if several else 0)
    dist.init_process_group("nccl" if several else "gloo")
    x = torch.full((1 << 20,), float(rank + 1), device="cuda")
    dist.all_reduce(x.clone())
    torch.cuda.synchronize()
    with region("steps", torch.cuda.synchronize):
        for step in range(steps):
            with torch.cuda.nvtx.range(f"step {step}"):
                y = x * 2
                if rank == 1 and step in LATE_STEPS:
                    time.sleep(LATE_SECONDS)
                dist.all_reduce(y)
    value = y[0].item()
    expected = 2.0 * sum(range(1, world + 1))
    dist.destroy_process_group()
    if value != expected:
        sys.exit(f"rank {rank}: {value} instead of {expected}")
    finish(rank=rank, backend="nccl" if several else "gloo", steps=steps, late_rank=1, late_steps=LATE_STEPS)


if __name__ == "__main__":
    main(int(sys.argv[1]))
