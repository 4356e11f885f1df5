"""A program whose idle GPU time has known code: it says by its own clock how long it was in each function."""

import json
import sys
import time

import numpy
import wgpu
import wgpu.utils

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
device = wgpu.utils.get_default_device()
CODE = """
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    data[at.x] = data[at.x] * 0.5 + 1.0;
}
"""
buffer = device.create_buffer_with_data(
    data=numpy.zeros(4096, numpy.float32),
    usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC,
)
pipeline = device.create_compute_pipeline(
    layout="auto",
    compute={"module": device.create_shader_module(code=CODE), "entry_point": "main"},
)
group = device.create_bind_group(
    layout=pipeline.get_bind_group_layout(0),
    entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}],
)
spent = {"burn_long": 0.0, "burn_short": 0.0, "nap": 0.0}


def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def burn_long():
    burn(0.014)


def burn_short():
    burn(0.006)


def nap():
    time.sleep(0.010)


def step():
    for work in (burn_long, burn_short, nap):
        start = time.perf_counter()
        work()
        spent[work.__name__] += time.perf_counter() - start
    encoder = device.create_command_encoder()
    commands = encoder.begin_compute_pass()
    commands.set_pipeline(pipeline)
    commands.set_bind_group(0, group)
    commands.dispatch_workgroups(64)
    commands.end()
    device.queue.submit([encoder.finish()])
    return device.queue.read_buffer(buffer)


for _ in range(STEPS):
    result = step()
print(json.dumps({"spent": spent, "result": float(numpy.frombuffer(result, numpy.float32).sum())}))
