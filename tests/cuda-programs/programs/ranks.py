"""Ranks that compute and communicate, each in a way that is known. Run by torchrun.

Arguments: what they do, and how often.

- `host-late`: all-reduces; rank 1 sleeps before twelve of them.
- `compute-late`: all-reduces; rank 1 multiplies for longer before each.
- `messages`: rank 0 sends to rank 1, then each pair of neighbours exchanges.
- `bandwidth`: collectives of 64 MiB one after the other, timed by CUDA's events.
- `groups`, `split`: all-reduces in two groups of half of the ranks; the second one is always later. `split` makes them by ncclCommSplit.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from region import finish, region

LATE_STEPS = tuple(range(8, 20))
LATE_SECONDS = 0.03
GROUP_LATE_SECONDS = 0.002
MESSAGE = 64 << 20

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def host_late(steps):
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
    value, expected = y[0].item(), 2.0 * sum(range(1, world + 1))
    if value != expected:
        sys.exit(f"rank {rank}: {value} instead of {expected}")
    return {"late_rank": 1, "late_steps": LATE_STEPS}


def compute_late(steps):
    x, a = torch.ones(1 << 16, device="cuda"), torch.ones(4096, 4096, device="cuda")

    def step(events):
        for begin, end in events:
            begin.record()
            # Rank 1 computes three times as much.
            for _ in range(6 if rank == 1 else 2):
                torch.mm(a, a)
            end.record()
            dist.all_reduce(x)
        torch.cuda.synchronize()

    def pairs(count):
        return [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]

    step(pairs(3))
    events = pairs(steps)
    with region("steps", torch.cuda.synchronize):
        step(events)
    # Of the first one it is not known what went before.
    computed_ms = [begin.elapsed_time(end) for begin, end in events]
    return {"computed_ns": round(1e6 * sum(computed_ms[1:]))}


def messages(count):
    x = torch.ones(1 << 20, device="cuda")
    around, back = torch.ones(1 << 18, device="cuda"), torch.empty(1 << 18, device="cuda")
    peer = rank ^ 1
    dist.all_reduce(x)
    torch.cuda.synchronize()
    with region("steps", torch.cuda.synchronize):
        for _ in range(count):
            if rank == 0:
                dist.send(x, 1)
            elif rank == 1:
                dist.recv(x, 0)
        torch.cuda.synchronize()
        for _ in range(count):
            both = [dist.P2POp(dist.isend, around, peer), dist.P2POp(dist.irecv, back, peer)]
            for work in dist.batch_isend_irecv(both):
                work.wait()
    return {"bytes": [x.nbytes, around.nbytes]}


def bandwidth(count):
    elements = MESSAGE // 4
    x, whole = torch.ones(elements, device="cuda"), torch.ones(elements * world, device="cuda")
    each = {
        "AllReduce": lambda: dist.all_reduce(x),
        "AllGather": lambda: dist.all_gather_into_tensor(whole, x),
        "ReduceScatter": lambda: dist.reduce_scatter_tensor(x, whole),
        "Broadcast": lambda: dist.broadcast(x, 0),
    }
    found = {}
    for kind, run in each.items():
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        dist.barrier()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            run()
        end.record()
        torch.cuda.synchronize()
        found[kind] = round(1e6 * begin.elapsed_time(end) / count)
    return {"message_bytes": MESSAGE, "mean_ns": found}


def groups(count):
    half = world // 2
    parts = [list(range(half)), list(range(half, world))]
    made = [dist.new_group(ranks) for ranks in parts]
    own = int(rank >= half)
    x = torch.ones(1 << 16, device="cuda")
    dist.all_reduce(x, group=made[own])
    torch.cuda.synchronize()
    dist.barrier()
    with region("steps", torch.cuda.synchronize):
        for _ in range(count):
            if own == 1:
                time.sleep(GROUP_LATE_SECONDS)
            dist.all_reduce(x, group=made[own])
            torch.cuda.synchronize()
            dist.barrier()
    return {"groups": parts, "late_ns": round(1e9 * GROUP_LATE_SECONDS)}


SCENES = {
    "host-late": host_late,
    "compute-late": compute_late,
    "messages": messages,
    "bandwidth": bandwidth,
    "groups": groups,
    "split": groups,
}


def main(scene, count):
    several = torch.cuda.device_count() >= world
    device = rank if several else 0
    torch.cuda.set_device(device)
    backend = "nccl" if several else "gloo"
    # With a device, PyTorch makes groups by splitting the first communicator.
    own = {"device_id": torch.device("cuda", device)} if scene == "split" and several else {}
    dist.init_process_group(backend, **own)
    facts = SCENES[scene](count)
    dist.destroy_process_group()
    version = ".".join(map(str, torch.cuda.nccl.version())) if several else None
    finish(rank=rank, world=world, backend=backend, nccl=version, count=count, **facts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
