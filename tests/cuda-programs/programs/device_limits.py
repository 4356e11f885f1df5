"""What PyTorch reaches on the first GPU, by CUDA's events: copy, read and write of 4 GiB, products of 8192 x 8192, launches."""

import json
import statistics
import time

import torch

BYTES = 4 << 30
SIZE = 8192
REPETITIONS = 15


def warm(each, seconds):
    """Until the clocks are those of lasting work: a GPU that reaches its power limit slows down after some tenths of a second."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        each()
        torch.cuda.synchronize()


def median_ns(each, count=1, repetitions=REPETITIONS):
    """Nanoseconds of one of `count`, which follow one another behind one that is not timed."""
    for _ in range(5):
        each()
    torch.cuda.synchronize()
    times = []
    for _ in range(repetitions):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        each()
        start.record()
        for _ in range(count):
            each()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e6 / count)
    return statistics.median(times)


def matrix(kind):
    """Numbers of +-[0.5, 1), as gapscope takes: the power of matrix units, and so their clock, depends on them."""
    values = torch.rand(SIZE, SIZE, device="cuda") * 0.5 + 0.5
    return (values * (torch.randint(0, 2, (SIZE, SIZE), device="cuda") * 2 - 1)).to(kind)


def product(kind):
    left, right = matrix(kind), matrix(kind)
    out = torch.empty_like(left)
    each = lambda: torch.matmul(left, right, out=out)  # noqa: E731
    warm(each, 0.5)
    return 2 * SIZE**3 / median_ns(each, 4) * 1e9


def graph_interval_ns(small, count=1000):
    """From one kernel to the next in a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            small.fill_(1.0)
    return median_ns(graph.replay) / count


def awaited_ns(each, repetitions=200):
    """From the call to the end of the wait for it, by the host's clock."""
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter_ns()
        each()
        torch.cuda.synchronize()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times)


def main():
    facts = {"torch": torch.__version__}
    source = torch.ones(BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    facts["copy_bytes_per_s"] = 2 * BYTES / median_ns(lambda: target.copy_(source), 2) * 1e9
    facts["clone_bytes_per_s"] = 2 * BYTES / median_ns(lambda: source.clone(), 2) * 1e9
    facts["read_bytes_per_s"] = BYTES / median_ns(lambda: source.sum(), 2) * 1e9
    facts["read_by_max_bytes_per_s"] = BYTES / median_ns(lambda: source.max(), 2) * 1e9
    facts["write_bytes_per_s"] = BYTES / median_ns(lambda: target.fill_(1.0), 2) * 1e9
    del source, target
    torch.cuda.empty_cache()
    torch.backends.cuda.matmul.allow_tf32 = True
    facts["matrix_flops"] = {
        "bf16": product(torch.bfloat16),
        "f16": product(torch.float16),
        "tf32": product(torch.float32),
    }
    small = torch.ones(32, device="cuda")
    facts["launch_interval_ns"] = median_ns(lambda: small.fill_(1.0), 1000)
    facts["launch_latency_ns"] = awaited_ns(lambda: small.fill_(1.0))
    facts["graph_interval_ns"] = graph_interval_ns(small)
    properties = torch.cuda.get_device_properties(0)
    facts["multiprocessors"] = properties.multi_processor_count
    # Kilohertz and bits; two transfers a clock.
    clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
    facts["memory_bytes_per_s"] = clock * 1e3 * 2 * width / 8
    print(json.dumps(facts))


main()
