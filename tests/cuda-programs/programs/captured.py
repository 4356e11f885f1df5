"""Programs of which windows are captured: `captured.py KIND`. Each prints results that are the same in each run."""

import sys

# The other programs of this folder have names of packages.
sys.path.pop(0)


def seeded():
    import torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch


def train(compiled):
    torch = seeded()
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.before, self.after, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            parts = [part.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in self.project(self.before(x)).chunk(3, -1)]
            attended = functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
            return x + self.feed(self.after(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(4096, 512), nn.Linear(512, 4096)
            self.blocks = nn.Sequential(*[Block(512, 8) for _ in range(3)])

        def forward(self, tokens, targets):
            return functional.cross_entropy(self.head(self.blocks(self.embed(tokens))).flatten(0, 1).float(), targets.flatten())

    model = Model().cuda()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    tokens, targets = (torch.randint(0, 4096, (8, 256), device="cuda") for _ in range(2))
    for step in range(4):
        with torch.cuda.nvtx.range(f"step {step}"):
            with torch.autocast("cuda", torch.bfloat16):
                loss = run(tokens, targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        print("loss", loss.item(), flush=True)


def generate():
    torch = seeded()
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=4, vocab_size=8192)  # fmt: skip
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(0, 8192, (1, 32), device="cuda")
    with torch.no_grad():
        made = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=16, do_sample=True, top_p=0.9, pad_token_id=0)
    print(made.sum().item())


def decode():
    """A loop that decodes by one graph, as servers do."""
    torch = seeded()
    nn = torch.nn
    layers = nn.ModuleList([nn.Sequential(nn.LayerNorm(1024), nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(8)])
    layers.to("cuda", torch.bfloat16)
    state = torch.randn(4, 1024, device="cuda", dtype=torch.bfloat16)
    cache = torch.zeros(64, 4, 1024, device="cuda", dtype=torch.bfloat16)
    place = torch.zeros(1, device="cuda", dtype=torch.long)

    def step():
        x = state
        for layer in layers:
            x = x + layer(x)
        x = torch.softmax(x.float(), -1).to(torch.bfloat16) * 32
        cache.index_copy_(0, place, x[None])
        place.add_(1)
        state.copy_(x)

    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for _ in range(20):
            graph.replay()
    print(cache.double().sum().item(), state.double().sum().item(), place.item())


def large():
    """One kernel with 2 GiB of inputs."""
    torch = seeded()
    a, b = (torch.arange(1 << 28, device="cuda", dtype=torch.float32) * k for k in (0.5, 0.25))
    for _ in range(3):
        c = torch.hypot(a, b)
    print(c.double().sum().item())


# What `sparse` reads: rows of a page each, of so many.
ROWS, CHOSEN = 1 << 14, 20


def sparse():
    """A kernel that reads rows, of a page each, of a matrix of 64 MiB."""
    torch = seeded()
    rows = torch.randperm(ROWS, device="cuda")[:CHOSEN].contiguous()
    matrix = torch.arange(ROWS * 1024, device="cuda", dtype=torch.float32).view(ROWS, 1024)
    torch.cuda.synchronize()
    with torch.cuda.nvtx.range("gather"):
        gathered = torch.index_select(matrix, 0, rows)
    print(gathered.double().sum().item())


def jax():
    import jax as library
    import jax.numpy as jnp

    @library.jit
    def step(weights, x):
        loss = lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)
        return weights - 0.1 * library.grad(loss)(weights)

    key = library.random.PRNGKey(0)
    weights, x = library.random.normal(key, (512, 512)), library.random.normal(key, (256, 512))
    for _ in range(5):
        weights = step(weights, x)
    print(float(jnp.sum(weights)))


def cupy():
    import cupy
    import numpy

    x = cupy.arange(1 << 20, dtype=cupy.float32) * cupy.float32(1e-6)
    print(float(cupy.fft.fft(x).real[:100].sum()), float(cupy.sort(-x)[10]), float(cupy.cumsum(x)[-1]))
    a = cupy.sin(cupy.arange(256 * 256, dtype=cupy.float64)).reshape(256, 256)
    print(float(cupy.linalg.norm(cupy.linalg.svd(a)[1])))
    gather = cupy.RawKernel(
        'extern "C" __global__ void gather(const float* const* p, float* o, int n)'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = p[0][i] + p[1][i]; }",
        "gather",
    )
    ones, out = cupy.ones_like(x), cupy.empty_like(x)
    table = cupy.array([x.data.ptr, ones.data.ptr], dtype=cupy.uint64)
    gather((4096,), (256,), (table, out, numpy.int32(1 << 20)))
    print(float(out.sum()))


KINDS = {
    "train": lambda: train(False),
    "compiled": lambda: train(True),
    "generate": generate,
    "decode": decode,
    "large": large,
    "sparse": sparse,
    "jax": jax,
    "cupy": cupy,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
