"""Text from a Llama of transformers with random weights, token by token: `generate.py [--static] [TOKENS]`.

With --static, keys and values stay in memory of one size: transformers then compiles the pass of a token, and launches it as CUDA graphs.
"""

import argparse
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("tokens", nargs="?", type=int, default=256)
parser.add_argument("--static", action="store_true")
given = parser.parse_args()

torch.manual_seed(1)
config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
                     num_key_value_heads=4, max_position_embeddings=2048)  # fmt: skip
model = LlamaForCausalLM(config).half().cuda().eval()
model.generation_config.eos_token_id = None
model.generation_config.pad_token_id = 0
prompt = torch.randint(3, 32000, (1, 32), device="cuda")
cache = {"cache_implementation": "static"} if given.static else {}


def generate(tokens):
    text = model.generate(prompt, attention_mask=torch.ones_like(prompt), min_new_tokens=tokens, max_new_tokens=tokens, do_sample=False, **cache)
    torch.cuda.synchronize()
    return text


# Three times, so that everything is compiled.
for _ in range(3):
    generate(given.tokens)
start = time.perf_counter()
text = generate(given.tokens)
seconds = time.perf_counter() - start
print(f"{1e3 * seconds / given.tokens:.3f} ms a token, checksum {int(text.sum())}")
