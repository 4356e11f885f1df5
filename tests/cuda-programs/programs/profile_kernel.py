"""Four kernels whose bytes or operations are known, with PyTorch: a sum, a product of matrices, a layer norm, and small work.

Prints what each moves or computes at least, and a digest of the results.
"""

import hashlib
import time

import torch
from region import finish

# Thirty times the L2 cache of an H200, so that what stays in it hardly counts; above 2^31 bytes PyTorch launches two kernels.
ELEMENTS = 500_000_000
SIDE = 4096
ROWS, COLUMNS = 1 << 16, 4096


def main():
    torch.manual_seed(0)
    start = time.perf_counter()
    x = torch.rand(ELEMENTS, device="cuda")
    y = torch.empty_like(x)
    a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    rows = torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16)
    norm = torch.nn.LayerNorm(COLUMNS, device="cuda", dtype=torch.bfloat16)
    results = []
    with torch.no_grad():
        for _ in range(3):
            torch.add(x, 1, out=y)
            results += [y[:: 1 << 12], a @ b, norm(rows)]
        # In place: run again on what it wrote, it would be wrong.
        count = torch.zeros(1024, device="cuda")
        for _ in range(20):
            count.cos_().add_(0.25)
        results.append(count)
    torch.cuda.synchronize()
    digest = hashlib.sha256()
    for result in results:
        digest.update(result.float().cpu().numpy().tobytes())
    finish(
        digest=digest.hexdigest(),
        seconds=time.perf_counter() - start,
        add_bytes=4 * ELEMENTS,
        gemm_operations=2 * SIDE**3,
        norm_bytes=2 * ROWS * COLUMNS,
    )


if __name__ == "__main__":
    main()
