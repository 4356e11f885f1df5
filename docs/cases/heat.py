"""Implicit steps of the heat equation, with Taichi on Vulkan: `heat.py [--on-device] [--size N] [--steps N]`."""

import argparse
import time

import taichi as ti

parser = argparse.ArgumentParser()
parser.add_argument("--on-device", action="store_true", help="keep the scalars of the solver on the GPU")
parser.add_argument("--size", type=int, default=128)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()

ti.init(arch=ti.vulkan, log_level=ti.ERROR)
N = arguments.size
MOST, TOLERANCE, BETWEEN = 2000, 1e-4, 20
temperature, right = ti.field(ti.f32, (N, N)), ti.field(ti.f32, (N, N))


@ti.kernel
def start():
    for i, j in temperature:
        temperature[i, j] = ti.cast((i // 8 + j // 8) % 2, ti.f32)


@ti.kernel
def keep():
    for i, j in right:
        right[i, j] = temperature[i, j]


@ti.kernel
def operator(v: ti.template(), to: ti.template()):
    for i, j in v:
        left = v[ti.max(i - 1, 0), j] + v[ti.min(i + 1, N - 1), j]
        both = left + v[i, ti.max(j - 1, 0)] + v[i, ti.min(j + 1, N - 1)]
        to[i, j] = v[i, j] + 20.0 * (4.0 * v[i, j] - both)


p, r, ap = (ti.field(ti.f32, (N, N)) for _ in range(3))
rr, pap, ratio = ti.field(ti.f32, ()), ti.field(ti.f32, ()), ti.field(ti.f32, ())


@ti.kernel
def begin():
    rr[None] = 0.0
    for i, j in r:
        r[i, j] = right[i, j] - ap[i, j]
        p[i, j] = r[i, j]
        rr[None] += r[i, j] ** 2


@ti.kernel
def iterate():
    pap[None] = 0.0
    for i, j in p:
        pap[None] += p[i, j] * ap[i, j]
    ratio[None] = 0.0
    for i, j in temperature:
        alpha = rr[None] / pap[None]
        temperature[i, j] += alpha * p[i, j]
        r[i, j] -= alpha * ap[i, j]
        ratio[None] += r[i, j] ** 2
    for i, j in p:
        p[i, j] = r[i, j] + ratio[None] / rr[None] * p[i, j]
    rr[None] = ratio[None]


def solve():
    """The same method as `ti.linalg.MatrixFreeCG`; the host looks at the residual now and then."""
    operator(temperature, ap)
    begin()
    for n in range(1, MOST):
        operator(p, ap)
        iterate()
        if n % BETWEEN == 0 and rr[None] < TOLERANCE**2:
            return


def step():
    keep()
    if arguments.on_device:
        solve()
    else:
        ti.linalg.MatrixFreeCG(ti.linalg.LinearOperator(operator), right, temperature, tol=TOLERANCE, maxiter=MOST)


start()
for _ in range(2):
    step()
ti.sync()
began = time.perf_counter()
for _ in range(arguments.steps):
    step()
ti.sync()
took = time.perf_counter() - began
values = temperature.to_numpy()
operator(temperature, ap)
error = abs(ap.to_numpy() - right.to_numpy()).max()
print(f"mean {values.mean():.6f}, from {values.min():.6f} to {values.max():.6f}, greatest error {error:.1e}; {1e3 * took / arguments.steps:.1f} ms a step")
