"""Tiny launches, a GPT's training steps, the same as a graph, and tokens of a decoder: as many as ordered, when ordered (`orders.py`).

Argument: the folder of the orders; an order is such as `tiny N`. With PROFILE=1 torch.profiler is on all the time.
"""

import os
import sys
from functools import cache
from pathlib import Path

import torch
from gpt import GPT, VOCABULARY, trainer
from inference import LAYERS, TOKENS, captured
from orders import obey
from region import finish, new_profiler

# Done before the clock starts: a GPU that other processes share must switch to this one.
WARM_UP = {"tiny": 100, "gpt": 1, "graph": 1, "decode": 2}


@cache
def graph():
    """A training step as one graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step = trainer(capturable=True)
    torch.cuda.current_stream().wait_stream(stream)
    captured_step = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured_step):
        step()

    def replay():
        # The graph works in the model's memory, which `step` keeps.
        assert step
        captured_step.replay()

    return replay


@cache
@torch.inference_mode()
def decoder():
    """One pass of a small GPT as a graph, and the choice of a token by the host."""
    model = GPT(LAYERS).cuda().bfloat16().eval()
    x = torch.randint(0, VOCABULARY, (1, TOKENS), device="cuda")
    run = captured(model, x)

    def token():
        logits = run(x)
        x[0, -1] = logits[0, -1].argmax()
        return x[0, -1].item()

    return token


def main(folder):
    x, step = torch.zeros(1024, device="cuda"), trainer()

    def tiny(count):
        for _ in range(count):
            x.add_(1)

    def gpt(count):
        for _ in range(count):
            step()

    def replay(count):
        for _ in range(count):
            graph()()

    @torch.inference_mode()
    def decode(count):
        token = decoder()
        for _ in range(count):
            token()

    works = {"tiny": tiny, "gpt": gpt, "graph": replay, "decode": decode}

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
