"""Work whose use of the GPU is known: copies of so many bytes, to and from pinned memory too, products of so many operations,
kernels with pauses between.

Arguments: the regions.
"""

import sys
import time
from functools import cache

import torch
from region import finish, region

GIB = 1 << 30
COPIES, COPY_BYTES = 60, 2 * GIB
PRODUCTS, SIZE = 100, 8192
STEPS, PAUSE_S = 40, 0.004
TRANSFERS, TRANSFER_BYTES = 40, GIB


def main(names):
    torch.manual_seed(0)
    x = torch.zeros(COPY_BYTES // 4, device="cuda")
    a, b = (torch.randn(SIZE, SIZE, device="cuda").bfloat16() for _ in range(2))
    out = torch.empty_like(a)
    pinned = cache(lambda: torch.zeros(TRANSFER_BYTES // 4, pin_memory=True))

    def clone():
        for _ in range(COPIES):
            x.clone()

    def matmul():
        for _ in range(PRODUCTS):
            torch.matmul(a, b, out=out)

    def steps():
        for _ in range(STEPS):
            torch.cuda.synchronize()
            time.sleep(PAUSE_S)
            x.add_(1)

    def upload():
        for _ in range(TRANSFERS):
            x[: pinned().numel()].copy_(pinned(), non_blocking=True)

    def download():
        for _ in range(TRANSFERS):
            pinned().copy_(x[: pinned().numel()], non_blocking=True)

    works = {work.__name__: work for work in (clone, matmul, steps, upload, download)}
    for name in names:
        works[name]()
        torch.cuda.synchronize()
    # The sampler starts when the GPU is first used, and needs up to a second.
    time.sleep(1.5)
    for name in names:
        with region(name, torch.cuda.synchronize):
            works[name]()
        time.sleep(0.1)
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    finish(
        bytes=COPIES * COPY_BYTES,
        transferred_bytes=TRANSFERS * TRANSFER_BYTES,
        flop=PRODUCTS * 2 * SIZE**3,
        multiprocessors=multiprocessors,
        device=torch.cuda.get_device_name(),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
