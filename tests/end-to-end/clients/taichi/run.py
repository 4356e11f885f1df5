"""Blurs a field with Taichi: each of its kernels is one parallel loop, so one dispatch, and so is the read of an element."""

import json

import taichi as ti

N, BLURS = 512, 5
ti.init(arch=ti.vulkan, log_level=ti.ERROR)
assert ti.lang.impl.current_cfg().arch == ti.vulkan, "Taichi fell back to the CPU"
a = ti.field(ti.f32, (N, N))
b = ti.field(ti.f32, (N, N))


@ti.kernel
def fill():
    for i, j in a:
        a[i, j] = i * 0.5 + j


@ti.kernel
def blur():
    for i, j in b:
        total = 0.0
        for di in ti.static(range(-1, 2)):
            for dj in ti.static(range(-1, 2)):
                total += a[ti.min(ti.max(i + di, 0), N - 1), ti.min(ti.max(j + dj, 0), N - 1)]
        b[i, j] = total / 9


fill()
for _ in range(BLURS):
    blur()
ti.sync()
inner = b[10, 20]
assert abs(inner - 25.0) < 1e-3, f"the GPU's number is wrong: {inner}"
print(json.dumps({"dispatches": 1 + BLURS + 1, "inner": inner}))
