"""The experiment of MLX's Xcode guide on MLX's CUDA backend: sin, cos, exp, log on 64 MiB, eager or compiled.

Arguments: `eager` or `compiled`, iterations.
"""

import sys

import mlx.core as mx
from region import finish, region


def chain(x):
    return mx.log(mx.exp(mx.cos(mx.sin(x))))


def main(how, iterations):
    run = mx.compile(chain) if how == "compiled" else chain
    x = mx.random.uniform(shape=(4096, 4096), key=mx.random.key(0))
    mx.eval(x)
    for _ in range(3):
        mx.eval(run(x))
    kernels = iterations * (1 if how == "compiled" else 4)
    with region(how, mx.synchronize, kernels=kernels):
        for _ in range(iterations):
            y = run(x)
            mx.eval(y)
    finish(result=round(y[0, 0].item(), 5))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
