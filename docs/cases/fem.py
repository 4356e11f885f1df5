"""Steps of Taichi's example `implicit_fem` on Vulkan: `fem.py [--on-device] [--steps N]`, beside a copy of the example."""

import argparse
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--on-device", action="store_true", help="keep alpha and beta there; read the residual in every fifth iteration")
parser.add_argument("--steps", type=int, default=60)
options = parser.parse_args()

os.environ.update(TI_ARCH="vulkan", TI_LOG_LEVEL="error")
sys.argv[1:] = ["--gui", "cpu"]
import taichi as ti  # noqa: E402

# The example makes a direct solver too, which Taichi has for other backends only and this solver does not use.
ti.linalg.SparseMatrixBuilder = ti.linalg.SparseSolver = lambda *_, **__: None
import implicit_fem as fem  # noqa: E402

ITERATIONS, EPSILON, EVERY = 50, 1e-6, 5
squares, squares_before, curvature = (ti.field(ti.f32, ()) for _ in range(3))


@ti.kernel
def dot(into: ti.template(), a: ti.template(), b: ti.template()):
    into[None] = 0.0
    for i in a:
        into[None] += a[i].dot(b[i])


@ti.kernel
def descend(squares: ti.template()):
    for i in fem.F_v:
        alpha = squares[None] / ti.max(curvature[None], 1e-30)
        fem.F_v[i] += alpha * fem.F_p0[i]
        fem.F_r0[i] -= alpha * fem.F_mul_ans[i]


@ti.kernel
def turn(squares: ti.template(), before: ti.template()):
    for i in fem.F_p0:
        beta = squares[None] / ti.max(before[None], 1e-30)
        fem.F_p0[i] = fem.F_r0[i] + beta * fem.F_p0[i]


def cg():
    """The example's solver, whose `dot` gives its result to the host twice in each iteration, without that."""
    now, before = squares, squares_before
    fem.get_force()
    fem.get_b()
    fem.matmul_cell(fem.F_mul_ans, fem.F_v)
    fem.add(fem.F_r0, fem.F_b, -1, fem.F_mul_ans)
    fem.F_p0.copy_from(fem.F_r0)
    dot(now, fem.F_r0, fem.F_r0)
    first = now[None]
    for iteration in range(1, ITERATIONS + 1):
        fem.matmul_cell(fem.F_mul_ans, fem.F_p0)
        dot(curvature, fem.F_p0, fem.F_mul_ans)
        descend(now)
        now, before = before, now
        dot(now, fem.F_r0, fem.F_r0)
        if iteration % EVERY == 0 and now[None] <= first * EPSILON**2:
            break
        turn(now, before)
    fem.F_f.fill(0)
    fem.add(fem.F_x, fem.F_x, fem.dt, fem.F_v)


if options.on_device:
    fem.cg = cg
fem.get_vertices()
fem.init()
for _ in range(5):
    fem.substep()
ti.sync()
start = time.perf_counter()
for _ in range(options.steps):
    fem.substep()
ti.sync()
took = time.perf_counter() - start
heights = fem.F_x.to_numpy()[:, 1]
print(f"lowest {heights.min():.5f}, mean {heights.mean():.5f}")
print(f"{1e3 * took / options.steps:.2f} ms a step")
