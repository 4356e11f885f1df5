"""Multiplies matrices with tinygrad on WebGPU, as often as the argument says."""

import importlib.util
import json
import os
import platform
import sys
import time

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

# Dawn, as a Python package brings it: tinygrad looks for one that the system has.
dawn = importlib.util.find_spec("pydawn").submodule_search_locations[0]
os.environ["WEBGPU_PATH"] = os.path.join(dawn, "lib", f"libwebgpu_dawn_{platform.machine()}.so")
os.environ["DEV"] = "WEBGPU"
# Nothing is kept in the user's folder.
os.environ["CACHELEVEL"] = "0"
import numpy as np  # noqa: E402
from tinygrad import Device, Tensor  # noqa: E402

assert Device.DEFAULT == "WEBGPU", Device.DEFAULT
N = 64
start_values = np.arange(N * N, dtype=np.float32).reshape(N, N) / (N * N)
x = Tensor(start_values).realize()
y = x
start = time.monotonic()
for _ in range(STEPS):
    y = ((y @ x).relu() + 0.5).softmax(axis=-1).realize()
result = y.numpy()
seconds = time.monotonic() - start
expected = start_values
for _ in range(STEPS):
    c = np.maximum(expected @ start_values, 0) + 0.5
    expected = np.exp(c - c.max(axis=-1, keepdims=True))
    expected /= expected.sum(axis=-1, keepdims=True)
assert np.allclose(result, expected, atol=1e-5), "the GPU's numbers are wrong"
print(json.dumps({"dispatches": None, "results": [result.tobytes().hex()[:64]], "seconds": seconds}))
