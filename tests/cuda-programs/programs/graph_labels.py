"""A decode of the GPT of gpt.py, without gradients: eager, and captured into a graph that is launched again and again; unmodified PyTorch.

Arguments: layers, passes of each way, captures that are timed.
"""

import hashlib
import statistics
import sys
import time

import gpt
import torch
from region import finish, region


def main(layers, passes, captures):
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = gpt.GPT(layers).eval().half()
    ids = torch.randint(0, gpt.VOCABULARY, (1, 16), device="cuda")
    side = torch.cuda.Stream()
    with torch.no_grad():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(ids)
        torch.cuda.current_stream().wait_stream(side)
        with region("eager", torch.cuda.synchronize):
            for _ in range(passes):
                with torch.cuda.nvtx.range("decode"):
                    expected = model(ids)
        seconds, graphs = [], []
        for _ in range(captures):
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            start = time.perf_counter()
            with torch.cuda.graph(graph):
                result = model(ids)
            seconds.append(time.perf_counter() - start)
            graphs.append(graph)
        with region("graph", torch.cuda.synchronize):
            for _ in range(passes):
                with torch.cuda.nvtx.range("decode"):
                    graph.replay()
        replays = []
        for _ in range(20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(50):
                graph.replay()
            torch.cuda.synchronize()
            replays.append((time.perf_counter() - start) / 50)
    finish(
        same=torch.equal(result, expected),
        result=hashlib.sha256(result.float().cpu().numpy().tobytes()).hexdigest(),
        capture_ms=[value * 1e3 for value in seconds],
        capture_least_ms=min(seconds) * 1e3,
        replay_us=statistics.median(replays) * 1e6,
        replay_least_us=min(replays) * 1e6,
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))
