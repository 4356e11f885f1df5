"""Tiny launches and a GPT's training steps, as many as it is told, when it is told.

Argument: a folder with the named pipes `orders` and `answers`. Each order is a line, `tiny N` or `gpt N`; the answer is
the nanoseconds that N of them took. The first answer is `ready`. With PROFILE=1 torch.profiler is on all the time.
"""

import os
import sys
import time
from pathlib import Path

import torch
from gpt import trainer
from region import finish, new_profiler

# Done before the clock starts: a GPU that other processes share must switch to this one.
WARM_UP = {"tiny": 100, "gpt": 1}


def main(folder):
    x, step = torch.zeros(1024, device="cuda"), trainer()

    def tiny(count):
        for _ in range(count):
            x.add_(1)

    def gpt(count):
        for _ in range(count):
            step()

    works = {"tiny": tiny, "gpt": gpt}
    profiler = new_profiler()
    if profiler:
        profiler.start()
    with open(folder / "answers", "w") as answers, open(folder / "orders") as orders:
        print("ready", file=answers, flush=True)
        for order in orders:
            what, count = order.split()
            if what == "end":
                break
            works[what](WARM_UP[what])
            torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            works[what](int(count))
            torch.cuda.synchronize()
            print(time.perf_counter_ns() - begin, file=answers, flush=True)
    if profiler:
        # To stop takes it a second for each hundred thousand launches.
        os._exit(0)
    finish(result=x[0].item())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
