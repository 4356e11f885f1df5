"""Three kernels that run long, each many times in a row: a sum, a product of matrices, a layer norm.

Arguments: how often each runs, and for how many seconds it waits before, once the GPU is in use.
"""

import sys
import time

import torch
from region import finish, region

# Thirty times the L2 cache of an H200; above 2^31 bytes PyTorch launches two kernels.
ELEMENTS = 500_000_000
SIDE = 8192
ROWS, COLUMNS = 1 << 18, 4096


def main(count, seconds):
    torch.manual_seed(0)
    x = torch.rand(ELEMENTS, device="cuda")
    y = torch.empty_like(x)
    a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    rows = torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16)
    norm = torch.nn.LayerNorm(COLUMNS, device="cuda", dtype=torch.bfloat16)
    works = {"add": lambda: torch.add(x, 1, out=y), "gemm": lambda: torch.matmul(a, b, out=out), "norm": lambda: norm(rows)}
    torch.cuda.synchronize()
    time.sleep(seconds)
    with torch.no_grad():
        for name, work in works.items():
            with region(name, torch.cuda.synchronize, kernels=count):
                for _ in range(count):
                    work()
    finish(count=count)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
