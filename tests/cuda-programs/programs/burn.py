"""Keeps the GPU busy for so many seconds: matrix products where PyTorch is there, else kernels that spin on all multiprocessors."""

import json
import sys
import time


def of_torch():
    import torch

    size = 8192
    left = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(left)

    def step():
        for _ in range(20):
            torch.matmul(left, right, out=out)
        torch.cuda.synchronize()

    return step


def of_driver():
    from driver import Driver

    device = Driver()
    blocks = 8 * device.multiprocessors()

    def step():
        device.launch("spin", 20_000_000, blocks=blocks, threads=256)
        device.synchronise()

    return step


def main():
    seconds = float(sys.argv[1])
    try:
        step, name = of_torch(), "matmul"
    except ImportError:
        step, name = of_driver(), "spin"
    step()
    begin_ns = time.monotonic_ns()
    while time.monotonic_ns() - begin_ns < seconds * 1e9:
        step()
    print(json.dumps({"what": name, "begin_ns": begin_ns, "end_ns": time.monotonic_ns()}))


main()
