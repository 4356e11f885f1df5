"""Training steps of the GPT of gpt.py, deterministic; unmodified PyTorch. The result is a hash of all parameters.

Arguments: layers, steps in each repetition, repetitions, `eager` or `compiled`. With OPERATORS=FILE in the environment everything
from the first use of the GPU on runs under torch.profiler, and what key_averages() says of each operator is written to FILE.
"""

import contextlib
import hashlib
import json
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import gpt  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


@contextlib.contextmanager
def profiled():
    """As torch.profiler sees it, where that is asked for."""
    path = os.environ.get("OPERATORS")
    if not path:
        yield
        return
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        yield
        torch.cuda.synchronize()
    found = {}
    for row in profiler.key_averages():
        if row.device_type == DeviceType.CPU:
            # Microseconds.
            found[row.key] = [row.count, row.self_device_time_total * 1e3, row.device_time_total * 1e3]
    with open(path, "w") as file:
        json.dump(found, file)


def main(layers, steps, repetitions, way):
    torch.use_deterministic_algorithms(True)
    # It would add kernels that no training has.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.cuda.init()
    with profiled():
        torch.manual_seed(0)
        model = gpt.GPT(layers).cuda()
        run = torch.compile(model, backend="aot_eager") if way == "compiled" else model
        optimiser = torch.optim.AdamW(model.parameters(), 1e-4)
        ids = torch.randint(0, gpt.VOCABULARY, (gpt.BATCH, gpt.TOKENS + 1), device="cuda")
        times = []
        for _ in range(repetitions):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(steps):
                with torch.autocast("cuda", torch.bfloat16):
                    logits = run(ids[:, :-1])
                    loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
                loss.backward()
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / steps)
        digest = hashlib.sha256()
        for parameter in model.parameters():
            digest.update(parameter.detach().cpu().numpy().tobytes())
    facts = {"result": digest.hexdigest(), "milliseconds": statistics.median(times[1:] or times) * 1e3}
    if way == "compiled":
        counters = torch._dynamo.utils.counters
        facts["compiled"] = {name: dict(counters[name]) for name in ("stats", "graph_break")}
    print(json.dumps({"regions": {}, **facts}), flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]), sys.argv[4])
