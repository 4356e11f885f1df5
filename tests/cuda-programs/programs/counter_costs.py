"""Tiny launches, a GPT's training steps, and decoding token by token: the time of each, several times."""

import time

import torch
from gpt import GPT, VOCABULARY, trainer
from inference import LAYERS, TOKENS, captured
from region import finish

REPETITIONS = 12


@torch.inference_mode()
def decoder():
    """One pass of a small GPT as a graph, and the choice of a token by the host."""
    model = GPT(LAYERS).cuda().bfloat16().eval()
    x = torch.randint(0, VOCABULARY, (1, TOKENS), device="cuda")
    run = captured(model, x)

    def token():
        logits = run(x)
        x[0, -1] = logits[0, -1].argmax()
        return x[0, -1].item()

    return token


def main():
    tiny_at, step, token = torch.zeros(1024, device="cuda"), trainer(), decoder()

    def tiny():
        for _ in range(20_000):
            tiny_at.add_(1)

    def gpt():
        for _ in range(30):
            step()

    @torch.inference_mode()
    def decode():
        for _ in range(500):
            token()

    works = {"tiny": (tiny, 20_000), "gpt": (gpt, 30), "decode": (decode, 500)}
    for work, _ in works.values():
        work()
    torch.cuda.synchronize()
    times = {name: [] for name in works}
    for _ in range(REPETITIONS):
        for name, (work, count) in works.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            work()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - begin) / count * 1e6)
    finish(microseconds=times)


if __name__ == "__main__":
    main()
