"""Squares numbers on the GPU with wgpu-py: 6 submissions of 4 dispatches, then 1 of 2 dispatches."""

import json

import numpy as np
import wgpu

SUBMISSIONS, DISPATCHES = 6, 4
N = 65536
SOURCE = """
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@compute @workgroup_size(64)
fn square_main(@builtin(global_invocation_id) id: vec3<u32>) {
    values[id.x] = values[id.x] * values[id.x] + id.x;
}
@compute @workgroup_size(64)
fn halve_main(@builtin(global_invocation_id) id: vec3<u32>) {
    values[id.x] = values[id.x] / 2u;
}
"""

device = wgpu.gpu.request_adapter_sync().request_device_sync()
module = device.create_shader_module(code=SOURCE)
usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
values = device.create_buffer(size=N * 4, usage=usage)


def submit(entry_point, dispatches):
    compute = {"module": module, "entry_point": entry_point}
    pipeline = device.create_compute_pipeline(layout="auto", compute=compute)
    entries = [{"binding": 0, "resource": {"buffer": values, "offset": 0, "size": values.size}}]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    for _ in range(dispatches):
        compute_pass.dispatch_workgroups(N // 64)
    compute_pass.end()
    device.queue.submit([encoder.finish()])


for _ in range(SUBMISSIONS):
    submit("square_main", DISPATCHES)
submit("halve_main", 2)
result = np.frombuffer(device.queue.read_buffer(values), np.uint32)

expected = np.zeros(N, np.uint32)
for _ in range(SUBMISSIONS * DISPATCHES):
    expected = expected * expected + np.arange(N, dtype=np.uint32)
expected //= 4
assert (result == expected).all(), "the GPU's numbers are wrong"
print(json.dumps({"dispatches": SUBMISSIONS * DISPATCHES + 2, "kernels": {"square_main": SUBMISSIONS * DISPATCHES, "halve_main": 2}}))
