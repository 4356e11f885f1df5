"""NVTX from PyTorch, and ranges of `import gapscope` where that can be imported.

10 steps of 4 launches, each step a range with a range `inner` around its last launch, and a mark.
"""

import torch
from region import finish, region

try:
    import gapscope
except ImportError:
    gapscope = None


def main():
    x = torch.zeros(1024, device="cuda")
    x.add_(1)
    with region("nvtx", torch.cuda.synchronize, kernels=40):
        for _ in range(10):
            torch.cuda.nvtx.range_push("step")
            for _ in range(3):
                x.add_(1)
            with torch.cuda.nvtx.range("inner"):
                x.add_(1)
            torch.cuda.nvtx.mark("done")
            torch.cuda.nvtx.range_pop()
    status = None
    if gapscope:
        status = str(gapscope.status())
        with region("gapscope", torch.cuda.synchronize, kernels=20):
            for _ in range(5):
                with gapscope.range("python turn"):
                    for _ in range(4):
                        x.add_(1)
    finish(result=x[0].item(), gapscope=status)


if __name__ == "__main__":
    main()
