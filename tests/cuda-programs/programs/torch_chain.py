"""Launches of one small kernel, or a chain of four on 64 MiB, with PyTorch.

Arguments: `tiny` or `chain`, launches in the region, repetitions of it.
"""

import statistics
import sys
import time

import torch
from region import finish, region


def main(what, launches, repetitions):
    if what == "tiny":
        x = torch.zeros(1024, device="cuda")

        def run():
            for _ in range(launches):
                x.add_(1)
    else:
        x = torch.rand(4096, 4096, device="cuda")

        def run():
            for _ in range(launches // 4):
                torch.log(torch.exp(torch.cos(torch.sin(x))))

    run()
    run()
    times = []
    for repetition in range(repetitions):
        with region(f"{what}-{repetition}", torch.cuda.synchronize, kernels=launches):
            start = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    finish(milliseconds=statistics.median(times) * 1e3, result=x.sum().item())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
