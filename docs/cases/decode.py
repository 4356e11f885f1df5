"""Text from a transformer of x-transformers, token by token: `decode.py [--ends] [TOKENS]`.

With --ends generation stops at the end token, which asks the GPU for its answer after each token.
"""

import argparse
import time

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

parser = argparse.ArgumentParser()
parser.add_argument("tokens", nargs="?", type=int, default=256)
parser.add_argument("--ends", action="store_true")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--dim", type=int, default=1024)
parser.add_argument("--depth", type=int, default=6)
given = parser.parse_args()

torch.manual_seed(1)
layers = Decoder(dim=given.dim, depth=given.depth, heads=given.dim // 64)
model = TransformerWrapper(num_tokens=20000, max_seq_len=2048, attn_layers=layers)
model = AutoregressiveWrapper(model).cuda().half().eval()
prompt = torch.zeros((given.batch, 1), dtype=torch.long, device="cuda")
# No token is the end: both ways generate the same.
end = {"eos_token": 20001} if given.ends else {}


def generate(tokens):
    text = model.generate(prompt, tokens, temperature=0.0, cache_kv=True, **end)
    torch.cuda.synchronize()
    return text


generate(8)
start = time.perf_counter()
text = generate(given.tokens)
seconds = time.perf_counter() - start
print(f"{1e3 * seconds / given.tokens:.3f} ms a token, checksum {int(text.sum())}")
