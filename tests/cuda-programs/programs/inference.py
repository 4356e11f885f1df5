"""Inference with a small GPT, one sequence of 64 tokens: eager, compiled, compiled with CUDA graphs, and a graph captured by hand.

Arguments: forward passes in each region, then the regions.
"""

import hashlib
import sys

import torch
from gpt import GPT, VOCABULARY
from region import finish, region

LAYERS, TOKENS = 4, 64


def digest(tensor):
    return hashlib.sha256(tensor.float().cpu().numpy().tobytes()).hexdigest()[:16]


def captured(model, x):
    """The model as a graph, and where its result is."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)

    def replay(_):
        graph.replay()
        return y

    return replay


@torch.inference_mode()
def main(passes, names):
    torch.manual_seed(0)
    model = GPT(LAYERS).cuda().bfloat16().eval()
    x = torch.randint(0, VOCABULARY, (1, TOKENS), device="cuda")
    ways = {
        "eager": lambda: model,
        "compiled": lambda: torch.compile(model),
        "compiled-graphs": lambda: torch.compile(model, mode="reduce-overhead"),
        "graph": lambda: captured(model, x),
    }
    results = {}
    for name in names:
        run = ways[name]()
        for _ in range(5):
            run(x)
        with region(name, torch.cuda.synchronize):
            for _ in range(passes):
                y = run(x)
        results[name] = digest(y)
    finish(passes=passes, result=results)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
