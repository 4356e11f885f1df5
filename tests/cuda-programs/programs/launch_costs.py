"""Tiny launches and a GPT's training steps in one process, so that PyTorch is loaded once for both.

Arguments: tiny launches in a region, training steps in a region, regions of each. It prints the milliseconds of each.
"""

import sys
import time

import torch
from gpt import trainer
from region import finish, region


def main(launches, steps, repetitions):
    x = torch.zeros(1024, device="cuda")
    step = trainer()

    def tiny():
        for _ in range(launches):
            x.add_(1)

    def gpt():
        for _ in range(steps):
            step()

    times = {}
    for work in (tiny, gpt):
        work()
        for repetition in range(repetitions):
            with region(f"{work.__name__}-{repetition}", torch.cuda.synchronize):
                begin = time.perf_counter()
                work()
                torch.cuda.synchronize()
                times.setdefault(work.__name__, []).append((time.perf_counter() - begin) * 1e3)
    finish(milliseconds=times, result=x[0].item())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
