"""A DataLoader with spawned workers that do not touch CUDA, then spawned processes that do.

Arguments: batches, additions on each batch.
"""

import subprocess
import sys

import torch
import torch.multiprocessing as processes
from region import finish, region


class Numbers(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((1024,), float(index))


def adds(rank):
    x = torch.zeros(64, device="cuda")
    for _ in range(100 * (rank + 1)):
        x.add_(1)
    torch.cuda.synchronize()


def main(batches, additions):
    loader = torch.utils.data.DataLoader(
        Numbers(batches), batch_size=1, num_workers=2, multiprocessing_context="spawn", pin_memory=True
    )
    torch.zeros(1024, device="cuda").add_(1)
    total = 0.0
    with region("loader", torch.cuda.synchronize, kernels=batches * additions):
        for batch in loader:
            x = batch.cuda(non_blocking=True)
            for _ in range(additions):
                x.add_(1)
            # A copy, no kernel.
            total += x.cpu()[0, 0].item()
    processes.spawn(adds, nprocs=2)
    subprocess.run([sys.executable, "-c", "print('a child without CUDA')"], check=True)
    finish(result=total, spawned_kernels=300)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
