"""Completes a prompt with llama.cpp on a small random model, as cyllama packages it."""

import json
import os
import sys
import tempfile
import time

import model

TOKENS = int(sys.argv[1]) if len(sys.argv) > 1 else 16

# llama.cpp skips GPUs that are a CPU unless it is told which to use.
os.environ["GGML_VK_VISIBLE_DEVICES"] = "0"
from cyllama import LLM, GenerationConfig  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "tiny.gguf")
    model.write(path)
    config = GenerationConfig(max_tokens=TOKENS, temperature=0.0, n_gpu_layers=99, n_ctx=512)
    # A short prompt runs the kernels of decoding, and spares the compilation of the large matrix kernels.
    with LLM(path, config=config) as llm:
        start = time.monotonic()
        text = str(llm("ab"))
        seconds = time.monotonic() - start
print(json.dumps({"dispatches": None, "text": text, "seconds": seconds}))
