"""Training steps of the GPT of gpt.py, deterministic; unmodified PyTorch. The result is a hash of all parameters.

Arguments: layers, steps in each repetition, repetitions, `eager` or `compiled`. With OPERATORS=FILE in the environment everything
from the first use of the GPU on runs under torch.profiler, and what that says of each operator is written to FILE.
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


def is_operator(event):
    """Not a call of CUDA: their numbers are not the operators', and torch.profiler gives them the kernels of operators of that number."""
    from torch.autograd import DeviceType

    return event.device_type == DeviceType.CPU and not event.name.startswith("cu")


def device_us(event):
    """Of its kernels and transfers, and those of the operators inside of it."""
    inside = (child for child in event.cpu_children if is_operator(child))
    return sum(kernel.duration for kernel in event.kernels) + sum(device_us(child) for child in inside)


def is_inside_its_like(event):
    outer = event.cpu_parent
    while outer is not None and outer.key != event.key:
        outer = outer.cpu_parent
    return outer is not None


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
    found = {row.key: [row.count, row.self_device_time_total * 1e3, 0.0]  # of microseconds
             for row in profiler.key_averages() if row.device_type == DeviceType.CPU}  # fmt: skip
    # key_averages() counts the time of an operator inside of one of the same name twice, and in what is inside of an operator also calls
    # of CUDA.
    for event in profiler.events():
        if is_operator(event) and not is_inside_its_like(event):
            found[event.key][2] += device_us(event) * 1e3
    with open(path, "w") as file:
        json.dump(found, file)


def main(layers, steps, repetitions, way):
    torch.use_deterministic_algorithms(True)
    # It would add kernels that no training has.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.cuda.init()
    with profiled():
        torch.manual_seed(0)
        # Made on the GPU, and read through pinned memory: how long other copies take is the host's, and differs by process.
        with torch.device("cuda"):
            model = gpt.GPT(layers)
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
            there = torch.empty(parameter.shape, dtype=parameter.dtype, pin_memory=True)
            digest.update(there.copy_(parameter.detach()).numpy().tobytes())
    facts = {"result": digest.hexdigest(), "milliseconds": statistics.median(times[1:] or times) * 1e3}
    if way == "compiled":
        counters = torch._dynamo.utils.counters
        facts["compiled"] = {name: dict(counters[name]) for name in ("stats", "graph_break")}
    print(json.dumps({"regions": {}, **facts}), flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]), sys.argv[4])
