"""A program that uses torch.profiler itself: 100 launches before it, 1000 under it, 500 after it."""

import torch
from region import finish, region
from torch.profiler import ProfilerActivity, profile


def main():
    x = torch.zeros(1024, device="cuda")

    def launch(count):
        for _ in range(count):
            x.add_(1)
        torch.cuda.synchronize()

    launch(1)
    with region("all", torch.cuda.synchronize, kernels=1600):
        launch(100)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            launch(1000)
        launch(500)
    kernels = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    finish(result=x[0].item(), kernels_that_the_profiler_saw=len(kernels))


if __name__ == "__main__":
    main()
