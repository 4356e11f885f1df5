"""Tiny launches and a GPT's training steps, as many as ordered, when ordered (`orders.py`).

Argument: the folder of the orders, `tiny N` or `gpt N`. With PROFILE=1 torch.profiler is on all the time.
"""

import os
import sys
from pathlib import Path

import torch
from gpt import trainer
from orders import obey
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

    def work(what, count):
        works[what](count)
        torch.cuda.synchronize()

    profiler = new_profiler()
    if profiler:
        profiler.start()
    obey(folder, work, prepare=lambda what: work(what, WARM_UP[what]))
    if profiler:
        # To stop takes it seconds.
        os._exit(0)
    finish(result=x[0].item())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
