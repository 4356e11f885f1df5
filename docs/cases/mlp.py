"""Trains a small network with tinygrad on WebGPU, as a case of README.md: without `--jit` the host is late. `mlp.py [--jit]`."""

import importlib.util
import os
import platform
import sys
import time

if dawn := importlib.util.find_spec("pydawn"):  # This package brings Dawn, which tinygrad loads from WEBGPU_PATH.
    library = f"libwebgpu_dawn_{platform.machine()}.so"
    os.environ["WEBGPU_PATH"] = os.path.join(dawn.submodule_search_locations[0], "lib", library)
os.environ.setdefault("DEV", "WEBGPU")
from tinygrad import Context, Tensor, TinyJit, nn  # noqa: E402

WARM_UP, STEPS = 4, 40  # TinyJit captures the second step and replays it from the third on.


class Network:
    def __init__(self):
        self.first, self.second, self.third = nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)

    def __call__(self, x):
        return self.third(self.second(self.first(x).relu()).relu())


Tensor.manual_seed(1)
network = Network()
optimizer = nn.optim.SGD(nn.state.get_parameters(network), 0.05)
images = Tensor.rand(256, 64).realize()
labels = Tensor.randint(256, high=10).realize()


def learn():
    optimizer.zero_grad()
    loss = network(images).sparse_categorical_crossentropy(labels).backward()
    return loss.realize(*optimizer.schedule_step())


step = TinyJit(learn) if "--jit" in sys.argv else learn
with Context(TRAINING=1):
    for _ in range(WARM_UP):
        step()
    start = time.perf_counter()
    for _ in range(STEPS):
        loss = step()
    print(f"loss {loss.item():.5f}")  # item() waits for the device, so that the time below is that of all steps.
print(f"{1e3 * (time.perf_counter() - start) / STEPS:.2f} ms a step")
