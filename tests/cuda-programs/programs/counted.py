"""Work whose use of the GPU is known: copies of so many bytes, products of so many operations, kernels with pauses between.

Arguments: the regions.
"""

import sys
import time

import torch
from region import finish, region

GIB = 1 << 30
COPIES, COPY_BYTES = 60, 2 * GIB
PRODUCTS, SIZE = 100, 8192
STEPS, PAUSE_S = 40, 0.004


def main(names):
    torch.manual_seed(0)
    x = torch.zeros(COPY_BYTES // 4, device="cuda")
    a, b = (torch.randn(SIZE, SIZE, device="cuda").bfloat16() for _ in range(2))
    out = torch.empty_like(a)

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

    works = {"clone": clone, "matmul": matmul, "steps": steps}
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
        flop=PRODUCTS * 2 * SIZE**3,
        multiprocessors=multiprocessors,
        device=torch.cuda.get_device_name(),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
