"""A program of the fake torch: three steps of a model of two blocks, forward and backward. Says what it was given and did."""

import json
import os
import sys

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, kernels):
        self.kernels = kernels

    def forward(self, x):
        return torch.mm(x, kernels=self.kernels)


class Block(nn.Module):
    def __init__(self):
        self.attn = Linear(3)
        self.mlp = Linear(1)

    def forward(self, x):
        side = torch.mm(x)
        return torch.mm(self.mlp(self.attn(x)), side)


class Model(nn.Module):
    def __init__(self):
        self.blocks = [Block() for _ in range(2)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Failing(nn.Module):
    def forward(self, x):
        raise ValueError("planted")


def main():
    torch.cuda.init()
    model = Model()
    for _ in range(3):
        torch.cuda.nvtx.range_push("step")
        result = model(torch.Tensor(torch.mm().grad_fn))
        result.backward()
        torch.cuda.nvtx.range_pop()
    try:
        Failing()(None)
    except ValueError:
        pass
    # After it nothing of it is open.
    torch.mm()
    profiler = torch.autograd.profiler
    profiler._enable_profiler(profiler.ProfilerConfig("KINETO"), set())
    profiler._disable_profiler()
    torch.cuda.synchronize()
    # The folder of the recording is no part of where modules are looked for.
    paths = [path for path in sys.path if os.path.basename(path) == "labels"]
    print(json.dumps({"paths": paths, "warns": torch.nn.modules.module._has_any_global_hook(), **SITE}))


try:
    import sitecustomize

    SITE = {"site": sitecustomize.SAID}
except ImportError:
    SITE = {"site": None}

if __name__ == "__main__":
    main()
