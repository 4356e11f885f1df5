"""Inference with a small transformer: eager, compiled, compiled with CUDA graphs, and a graph captured by hand.

Arguments: forward passes in each region, then the regions.
"""

import hashlib
import sys

import torch
import torch.nn as nn
from region import finish, region

WIDTH, HEADS, LAYERS, TOKENS = 256, 4, 4, 64


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
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).cuda().half().eval()
    x = torch.randn(8, TOKENS, WIDTH, device="cuda", dtype=torch.half)
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
