"""Pairs of programs, before and after a change: `changes.py [PAIR…]`. Each pair runs in turn in blocks of steps, each block in
a range `PAIR before N` or `PAIR after N`. Prints how long each block took by its own clock."""

import json
import sys
import time

# The other programs of this folder have names of packages.
sys.path.pop(0)

import torch
import torch.nn.functional as functional

BLOCKS = 10
PAIRS = {}


def pair(name, change, steps=40):
    """Registers a pair: a function that gives the step before the change and the step after it."""

    def register(make):
        PAIRS[name] = (make, change, steps)
        return make

    return register


def spin(microseconds):
    """A kernel that takes this long at the highest clock of an H200; what counts is that times are proportional."""
    torch.cuda._sleep(int(microseconds * 1980))


def host(microseconds):
    """Work of the host, in a function of its own."""
    end = time.perf_counter_ns() + int(microseconds * 1000)
    while time.perf_counter_ns() < end:
        pass


def sync():
    torch.cuda.current_stream().synchronize()


def span(label):
    return torch.cuda.nvtx.range(label)


# Planted pairs: kernels and host work whose times are known.


@pair("kernel-half-waited", ["kernel:*spin*=0.5x"])
def kernel_half_waited():
    def step(kernel_us):
        spin(kernel_us), sync(), host(50)

    return lambda: step(400), lambda: step(200)


@pair("kernel-half-device-bound", ["kernel:*spin*=0.5x"])
def kernel_half_device_bound():
    return lambda: (spin(400), host(30)), lambda: (spin(200), host(30))


@pair("kernel-third-host-bound", ["kernel:*spin*=0.33333x"])
def kernel_third_host_bound():
    return lambda: (spin(300), host(180)), lambda: (spin(100), host(180))


@pair("kernel-double", ["kernel:*spin*=2x"])
def kernel_double():
    return lambda: (spin(100), host(180)), lambda: (spin(200), host(180))


@pair("kernels-small-half", ["kernel:*spin*=0.5x"], steps=100)
def kernels_small_half():
    def step(kernel_us):
        for _ in range(8):
            spin(kernel_us)
        sync()

    return lambda: step(40), lambda: step(20)


@pair("host-half-waited", ["code:host=0.5x"], steps=100)
def host_half_waited():
    return lambda: (spin(200), sync(), host(400)), lambda: (spin(200), sync(), host(200))


@pair("host-code-away", ["code:host=0"], steps=100)
def host_code_away():
    return lambda: (spin(300), sync(), host(300)), lambda: (spin(300), sync())


@pair("host-before-kernels", ["code:host=0.5x"], steps=100)
def host_before_kernels():
    return lambda: (host(2000), spin(300), sync()), lambda: (host(1000), spin(300), sync())


@pair("host-behind-kernels", ["code:host=0.5x"], steps=100)
def host_behind_kernels():
    return lambda: (spin(1500), host(2000), sync()), lambda: (spin(1500), host(1000), sync())


@pair("wait-each-tenth", ["wait=each10"], steps=100)
def wait_each_tenth():
    count = iter(range(1 << 30))

    def after():
        spin(150), host(60)
        if next(count) % 10 == 9:
            sync()

    return lambda: (spin(150), host(60), sync()), after


def copied(to_device, megabytes, pinned=True):
    values = megabytes << 18
    there, here = torch.empty(values, device="cuda"), torch.empty(values, pin_memory=pinned)
    return (lambda: there.copy_(here, non_blocking=True)) if to_device else (lambda: here.copy_(there, non_blocking=True))


@pair("to-device-half", ["transfer:h2d=0.5x"])
def to_device_half():
    large, small = copied(True, 32), copied(True, 16)
    return lambda: (large(), spin(200), sync()), lambda: (small(), spin(200), sync())


@pair("to-host-half", ["transfer:d2h=0.5x"])
def to_host_half():
    large, small = copied(False, 32), copied(False, 16)
    return lambda: (spin(200), large(), sync()), lambda: (spin(200), small(), sync())


@pair("on-device-half", ["transfer:d2d=0.5x"])
def on_device_half():
    one, other = (torch.empty(1 << 28, device="cuda") for _ in range(2))
    half = 1 << 27

    def step(values):
        other[:values].copy_(one[:values]), sync()

    return lambda: step(1 << 28), lambda: step(half)


@pair("copies-away", ["transfer=0", "call:*MemcpyAsync*=0"])
def copies_away():
    copy = copied(True, 16)
    return lambda: (copy(), spin(300), sync()), lambda: (spin(300), sync())


@pair("copies-overlapped", ["transfer=overlap"])
def copies_overlapped():
    copy, side = copied(True, 16), torch.cuda.Stream()

    def before():
        copy(), spin(500)

    def after():
        with torch.cuda.stream(side):
            copy()
        done = side.record_event()
        # Content of the step after the next may arrive while this one computes.
        torch.cuda.current_stream().wait_event(done)
        spin(500)

    return before, after


@pair("two-streams-half", ["label:first=0.5x"])
def two_streams_half():
    side = torch.cuda.Stream()

    def step(kernel_us):
        with span("first"):
            spin(kernel_us)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), span("second"):
            spin(150)
        torch.cuda.current_stream().wait_stream(side)

    return lambda: step(300), lambda: step(150)


@pair("two-streams-independent", ["queues=independent"])
def two_streams_independent():
    side = torch.cuda.Stream()

    def after():
        spin(200)
        with torch.cuda.stream(side):
            spin(200)

    def before():
        spin(200)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            spin(200)
        torch.cuda.current_stream().wait_stream(side)

    return before, after


@pair("one-label-of-two", ["label:attention=0.5x"])
def one_label_of_two():
    def step(kernel_us):
        with span("attention"):
            spin(kernel_us)
        with span("feed"):
            spin(150)
        sync()

    return lambda: step(300), lambda: step(150)


@pair("queue-full-half", ["kernel:*spin*=0.5x"], steps=4000)
def queue_full_half():
    return lambda: spin(30), lambda: spin(15)


@pair("host-and-kernel", ["code:host=0.5x", "kernel:*spin*=0.5x"], steps=100)
def host_and_kernel():
    return lambda: (spin(400), sync(), host(300)), lambda: (spin(200), sync(), host(150))


@pair("read-each-fifth", ["transfer:d2h=each5"], steps=100)
def read_each_fifth():
    there, here, count = torch.zeros(1, device="cuda"), torch.zeros(1), iter(range(1 << 30))

    def after():
        spin(150), host(60)
        if next(count) % 5 == 4:
            here.copy_(there)

    return lambda: (spin(150), host(60), here.copy_(there)), after


@pair("event-waited", ["kernel:*spin*=0.25x"])
def event_waited():
    event = torch.cuda.Event()

    def step(kernel_us):
        spin(kernel_us), event.record(), event.synchronize(), host(100)

    return lambda: step(400), lambda: step(100)


@pair("fills-away", ["kernel:*Fill*=0"])
def fills_away():
    large = torch.empty(1 << 28, device="cuda")
    return lambda: (large.zero_(), spin(200), sync()), lambda: (spin(200), sync())


@pair("kernel-alternates", ["label:long=0.5x"])
def kernel_alternates():
    def step(long_us):
        for label, kernel_us in (("long", long_us), ("short", 40), ("long", long_us), ("short", 40)):
            with span(label):
                spin(kernel_us)
        host(60), sync()

    return lambda: step(120), lambda: step(60)


@pair("two-labels", ["label:first=0.5x", "label:second=2x"])
def two_labels():
    def step(first_us, second_us):
        with span("first"):
            spin(first_us)
        with span("second"):
            spin(second_us)
        sync(), host(80)

    return lambda: step(300, 60), lambda: step(150, 120)


@pair("queue-full-double", ["kernel:*spin*=2x"], steps=3000)
def queue_full_double():
    return lambda: spin(20), lambda: spin(40)


@pair("wait-each-fourth", ["wait=each4"], steps=100)
def wait_each_fourth():
    count = iter(range(1 << 30))

    def after():
        spin(120), host(20)
        if next(count) % 4 == 3:
            sync()

    return lambda: (spin(120), host(20), sync()), after


@pair("to-device-quarter", ["transfer:h2d=0.25x"])
def to_device_quarter():
    large, small = copied(True, 64), copied(True, 16)
    return lambda: (large(), spin(100), sync()), lambda: (small(), spin(100), sync())


@pair("three-streams-half", ["label:middle=0.5x"])
def three_streams_half():
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]

    def step(middle_us):
        before = streams[0]
        for stream, label, kernel_us in zip(streams, ("before", "middle", "behind"), (80, middle_us, 80)):
            stream.wait_stream(before)
            with torch.cuda.stream(stream), span(label):
                spin(kernel_us)
            before = stream
        streams[0].wait_stream(before)

    return lambda: step(300), lambda: step(150)


@pair("device-half", ["device=0.5x"])
def device_half():
    def step(kernel_us):
        for _ in range(4):
            spin(kernel_us)
        host(300), sync()

    return lambda: step(200), lambda: step(100)


# Pairs of PyTorch: what people change. `{ratio}` is the time of the work in the label after the change by that before it.


def block_of(width=1024, layers=4):
    torch.manual_seed(0)
    nn = torch.nn
    parts = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)]
    return nn.Sequential(*parts).cuda()


@pair("torch-item", ["transfer:d2h=each10", "wait=each10"])
def torch_item():
    model, x, count = block_of().half(), torch.randn(64, 1024, device="cuda", dtype=torch.half), iter(range(1 << 30))

    def before():
        with torch.no_grad():
            model(x).sum().item()

    def after():
        with torch.no_grad():
            total = model(x).sum()
        if next(count) % 10 == 9:
            total.item()

    return before, after


@pair("torch-synchronize", ["wait=each10"])
def torch_synchronize():
    model, x, count = block_of(layers=10), torch.randn(2048, 1024, device="cuda"), iter(range(1 << 30))

    def step(each):
        y = x
        with torch.no_grad():
            for layer in model:
                y = layer(y)
                if next(count) % each == each - 1:
                    torch.cuda.synchronize()

    return lambda: step(1), lambda: step(10)


@pair("torch-logging", ["code:write_log=0"], steps=60)
def torch_logging():
    model, x = block_of(), torch.randn(512, 1024, device="cuda")

    def write_log(value):
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            str(value)

    def step(logs):
        with torch.no_grad():
            value = model(x).mean().item()
        if logs:
            write_log(value)

    return lambda: step(True), lambda: step(False)


@pair("torch-loader", ["code:__getitem__=0"], steps=60)
def torch_loader():
    model, batches = block_of(), [torch.randn(512, 1024) for _ in range(4)]

    class Slow:
        def __init__(self, seconds):
            self.seconds = seconds

        def __getitem__(self, index):
            if self.seconds:
                end = time.perf_counter() + self.seconds
                while time.perf_counter() < end:
                    pass
            return batches[index % 4]

    slow, quick, count = Slow(0.003), Slow(0), iter(range(1 << 30))

    def step(data):
        x = data[next(count)].cuda()
        with torch.no_grad():
            model(x).mean().item()

    return lambda: step(slow), lambda: step(quick)


@pair("torch-bfloat16", ["label:matmul before={ratio}x"])
def torch_bfloat16():
    single = [torch.randn(2048, 2048, device="cuda") for _ in range(2)]
    half = [value.bfloat16() for value in single]
    x = torch.randn(1 << 24, device="cuda")

    def step(name, a, b):
        with span(f"matmul {name}"):
            a @ b
        x.mul_(1.0), sync()

    return lambda: step("before", *single), lambda: step("after", *half)


@pair("torch-batch", ["label:model before={ratio}x"])
def torch_batch():
    model, x = block_of(), torch.randn(2048, 1024, device="cuda")

    def step(name, rows):
        with torch.no_grad(), span(f"model {name}"):
            y = model(x[:rows])
        y[0, 0].item()

    return lambda: step("before", 2048), lambda: step("after", 1024)


@pair("torch-attention", ["label:attention before={ratio}x"])
def torch_attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.half)
    x = torch.randn(1 << 24, device="cuda")

    def step(name, backend):
        with sdpa_kernel(backend), span(f"attention {name}"):
            functional.scaled_dot_product_attention(q, q, q)
        x.mul_(1.0), x.add_(1.0), sync()

    return lambda: step("before", SDPBackend.EFFICIENT_ATTENTION), lambda: step("after", SDPBackend.FLASH_ATTENTION)


@pair("torch-dropout", ["kernel:*dropout*=0"])
def torch_dropout():
    model, x = block_of(), torch.randn(2048, 1024, device="cuda")

    def step(share):
        with torch.no_grad():
            y = functional.dropout(x, share) if share else x
            for layer in model:
                y = layer(y)
                if share:
                    y = functional.dropout(y, share)
        sync()

    return lambda: step(0.1), lambda: step(0.0)


@pair("torch-checkpoint", ["transfer:d2h=0"])
def torch_checkpoint():
    model, x = block_of(), torch.randn(2048, 1024, device="cuda")
    here = torch.empty(2048, 1024, pin_memory=True)

    def step(saves):
        with torch.no_grad():
            y = model(x)
        if saves:
            here.copy_(y, non_blocking=True)
        sync()

    return lambda: step(True), lambda: step(False)


@pair("torch-optimizer", ["label:optimizer before={ratio}x"])
def torch_optimizer():
    steps = []
    for fused in (False, True):
        model = block_of(layers=8)
        optimizer = torch.optim.AdamW(model.parameters(), fused=fused, foreach=not fused)
        x = torch.randn(512, 1024, device="cuda")

        def step(model=model, optimizer=optimizer, x=x, name="after" if fused else "before"):
            model(x).square().mean().backward()
            with span(f"optimizer {name}"):
                optimizer.step()
            optimizer.zero_grad()

        steps.append(step)
    return tuple(steps)


@pair("torch-large-copy", ["transfer:h2d=0.5x"])
def torch_large_copy():
    model, batch = block_of(), torch.randn(8192, 1024, pin_memory=True)
    narrow = torch.randn(4096, 1024, pin_memory=True)
    x = torch.randn(1024, 1024, device="cuda")

    def step(data):
        data.cuda(non_blocking=True)
        with torch.no_grad():
            model(x)
        sync()

    return lambda: step(batch), lambda: step(narrow)


@pair("torch-activation", ["label:activation before={ratio}x"])
def torch_activation():
    x, w = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, 4096, device="cuda", dtype=torch.half)

    def step(name, function):
        with span(f"activation {name}"):
            function(x)
        w @ w, sync()

    return lambda: step("before", lambda y: torch.special.erfcx(y) * y), lambda: step("after", functional.gelu)


@pair("torch-convolution", ["label:convolution before={ratio}x"])
def torch_convolution():
    x = torch.randn(32, 128, 56, 56, device="cuda")
    large, small = (torch.nn.Conv2d(128, 128, size, padding=size // 2).cuda() for size in (5, 3))

    def step(name, convolution):
        with torch.no_grad(), span(f"convolution {name}"):
            y = convolution(x)
        functional.relu(y), sync()

    return lambda: step("before", large), lambda: step("after", small)


@pair("torch-embedding", ["transfer:h2d=0", "call:*MemcpyAsync*=0"])
def torch_embedding():
    table, ids = torch.randn(50_000, 1024, device="cuda"), torch.randint(0, 50_000, (64, 2048)).pin_memory()
    there = ids.cuda()

    def step(copies):
        chosen = ids.cuda(non_blocking=True) if copies else there
        functional.embedding(chosen, table).sum(), sync()

    return lambda: step(True), lambda: step(False)


@pair("torch-softmax", ["label:softmax before={ratio}x"])
def torch_softmax():
    x, w = torch.randn(8192, 8192, device="cuda"), torch.randn(4096, 4096, device="cuda", dtype=torch.half)

    def step(name, rows):
        with span(f"softmax {name}"):
            torch.softmax(x[:rows], -1)
        w @ w, sync()

    return lambda: step("before", 8192), lambda: step("after", 4096)


@pair("torch-metrics", ["transfer:d2h=each5", "wait=each5"], steps=50)
def torch_metrics():
    model, x, count = block_of(), torch.randn(1024, 1024, device="cuda"), iter(range(1 << 30))

    def step(each):
        with torch.no_grad():
            y = model(x)
            for _ in range(2):
                y = y * 1.5
            if next(count) % each == each - 1:
                y.mean().cpu()

    return lambda: step(1), lambda: step(5)


@pair("torch-tokenizer", ["code:tokenize=0"], steps=60)
def torch_tokenizer():
    model, x = block_of(), torch.randn(512, 1024, device="cuda")
    text = "a kernel that waits for nobody " * 400

    def tokenize():
        return sorted(set(text.split())) + [text[k : k + 7] for k in range(0, len(text), 3)]

    def step(tokenizes):
        if tokenizes:
            tokenize()
        with torch.no_grad():
            model(x).mean().item()

    return lambda: step(True), lambda: step(False)


@pair("torch-recurrent", ["label:cell before={ratio}x"])
def torch_recurrent():
    cells = [torch.nn.LSTM(512, width, num_layers=1).cuda() for width in (1024, 512)]
    x = torch.randn(64, 32, 512, device="cuda")

    def step(name, cell):
        with torch.no_grad(), span(f"cell {name}"):
            cell(x)
        sync()

    return lambda: step("before", cells[0]), lambda: step("after", cells[1])


def main():
    names = sys.argv[1:] or list(PAIRS)
    for name in names:
        make, change, steps = PAIRS[name]
        before, after = make()
        taken = {"before": [], "after": []}
        for _ in range(20):
            before(), after()
        for number in range(BLOCKS):
            for which, step in (("before", before), ("after", after)):
                for _ in range(3):
                    step()
                torch.cuda.synchronize()
                begin = time.perf_counter_ns()
                with span(f"{name} {which} {number}"):
                    for _ in range(steps):
                        step()
                    torch.cuda.synchronize()
                taken[which].append(time.perf_counter_ns() - begin)
        print(json.dumps({"pair": name, "change": change, "steps": steps, **taken}), flush=True)
        del before, after


if __name__ == "__main__":
    main()
