"""sin, cos, exp, log on 64 MiB with JAX: one call of a jitted function, one kernel.

Argument: calls.
"""

import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
from region import finish, region


def chain(x):
    return jnp.log(jnp.exp(jnp.cos(jnp.sin(x))))


def main(calls):
    x = jax.random.uniform(jax.random.key(0), (4096, 4096))
    outcome = {"last": x}
    jitted = jax.jit(chain)

    def synchronise():
        jax.block_until_ready(outcome["last"])

    for _ in range(3):
        outcome["last"] = jitted(x)
    with region("jit", synchronise, kernels=calls):
        for _ in range(calls):
            outcome["last"] = jitted(x)
    for _ in range(3):
        outcome["last"] = chain(x)
    with region("eager", synchronise, kernels=4 * calls):
        for _ in range(calls):
            outcome["last"] = chain(x)
    synchronise()
    finish(result=float(outcome["last"][0, 0]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
