"""Squares numbers on the GPU with wgpu-py, and labels its work with gapscope.

The argument is a path for a capture. The program runs 1 dispatch, then 3 ranges `step` of 4 dispatches, the last of each in
`inner`, then a capture of 5 dispatches, then 1 more. It prints gapscope's answers as a line of JSON.
"""

import json
import sys

import gapscope
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

answers = {"before": gapscope.status().name}
with gapscope.range("init"):
    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    module = device.create_shader_module(code=SOURCE)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    values = device.create_buffer(size=N * 4, usage=usage)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "square"})
    entries = [{"binding": 0, "resource": {"buffer": values, "offset": 0, "size": values.size}}]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
answers["after"] = gapscope.status().name


def submit(dispatches):
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    for _ in range(dispatches):
        compute_pass.dispatch_workgroups(N // 64)
    compute_pass.end()
    device.queue.submit([encoder.finish()])


def read():
    return np.frombuffer(device.queue.read_buffer(values), np.uint32)


@gapscope.range("step")
def step():
    submit(3)
    with gapscope.range("inner"):
        submit(1)
    answers["mark"] = gapscope.mark("stepped").name


submit(1)
for _ in range(3):
    step()
read()
answers["start"] = gapscope.start_capture(sys.argv[1], synchronize=read).name
with gapscope.range("captured"):
    submit(5)
answers["stop"] = gapscope.stop_capture(synchronize=read).name
submit(1)

expected = np.zeros(N, np.uint32)
for _ in range(1 + 3 * 4 + 5 + 1):
    expected = expected * expected + np.arange(N, dtype=np.uint32)
answers["right"] = bool((read() == expected).all())
print(json.dumps(answers))
