"""A training step of a small GPT: 12 layers of 768, 8 sequences of 512 tokens, bf16 autocast, AdamW; unmodified PyTorch.

Arguments: steps in the region, repetitions of it.
"""

import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from region import finish, region

WIDTH, LAYERS, HEADS, TOKENS, BATCH, VOCABULARY = 768, 12, 12, 512, 8, 8192
WARM_UP = 10


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, layers=LAYERS):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def trainer(capturable=False):
    """The training step, warmed up."""
    torch.manual_seed(0)
    model = GPT().cuda()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-4, capturable=capturable)
    # The gradient of more than 3072 embeddings waits for the device, which a capture cannot.
    batch = BATCH // 2 if capturable else BATCH
    ids = torch.randint(0, VOCABULARY, (batch, TOKENS + 1), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=not capturable):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return loss

    for _ in range(WARM_UP):
        step()
    return step


def main(steps, repetitions):
    step, times = trainer(), []
    for repetition in range(repetitions):
        with region(f"steps-{repetition}", torch.cuda.synchronize):
            start = time.perf_counter()
            for _ in range(steps):
                loss = step()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / steps)
    finish(milliseconds=statistics.median(times) * 1e3, result=round(loss.item(), 3))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
