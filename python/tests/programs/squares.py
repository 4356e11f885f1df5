"""Squares numbers on the GPU with wgpu-py, which opens the device when this module is imported."""

import numpy as np
import wgpu

N = 4096
SOURCE = """
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@compute @workgroup_size(64)
fn square(@builtin(global_invocation_id) id: vec3<u32>) {
    values[id.x] = values[id.x] * values[id.x] + id.x;
}
"""

device = wgpu.gpu.request_adapter_sync().request_device_sync()
module = device.create_shader_module(code=SOURCE)
usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
values = device.create_buffer(size=N * 4, usage=usage)
pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "square"})
entries = [{"binding": 0, "resource": {"buffer": values, "offset": 0, "size": values.size}}]
group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)


def submit(dispatches):
    """Submits so many dispatches."""
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    for _ in range(dispatches):
        compute_pass.dispatch_workgroups(N // 64)
    compute_pass.end()
    device.queue.submit([encoder.finish()])


def read():
    """Waits for the GPU and returns the numbers."""
    return np.frombuffer(device.queue.read_buffer(values), np.uint32)


def are_right(dispatches):
    """Tells whether the numbers are those of so many dispatches."""
    expected = np.zeros(N, np.uint32)
    for _ in range(dispatches):
        expected = expected * expected + np.arange(N, dtype=np.uint32)
    return bool((read() == expected).all())
