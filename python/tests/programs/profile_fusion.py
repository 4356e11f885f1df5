"""Runs a chain of element-wise operations eagerly and compiled, as the guide "Profiling MLX with Xcode Instruments" does.

The argument is the number of runs of each. wgpu-py takes the place of MLX: eagerly each operation is a dispatch, and compiled one
dispatch is the whole chain. It prints the times of both.
"""

import sys
import time

import gapscope
import wgpu

N = 1 << 16
OPERATIONS = ("sin", "cos", "exp", "log")
RUNS = int(sys.argv[1])

kernels = {name: f"x[id.x] = {name}(x[id.x]);" for name in OPERATIONS}
kernels["fused"] = "x[id.x] = log(exp(cos(sin(x[id.x]))));"
source = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;" + "".join(
    f"@compute @workgroup_size(64) fn {name}_kernel(@builtin(global_invocation_id) id: vec3<u32>) {{ {body} }}\n"
    for name, body in kernels.items()
)
device = wgpu.gpu.request_adapter_sync().request_device_sync()
module = device.create_shader_module(code=source)
values = device.create_buffer(size=N * 4, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
storage = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}
group_layout = device.create_bind_group_layout(entries=[storage])
layout = device.create_pipeline_layout(bind_group_layouts=[group_layout])
pipelines = {
    name: device.create_compute_pipeline(layout=layout, compute={"module": module, "entry_point": f"{name}_kernel"}) for name in kernels
}
resource = {"buffer": values, "offset": 0, "size": values.size}
group = device.create_bind_group(layout=group_layout, entries=[{"binding": 0, "resource": resource}])


def run(names):
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_bind_group(0, group)
    for name in names:
        compute_pass.set_pipeline(pipelines[name])
        compute_pass.dispatch_workgroups(N // 64)
    compute_pass.end()
    device.queue.submit([encoder.finish()])


def timed(label, names):
    start = time.perf_counter()
    with gapscope.range(label):
        for _ in range(RUNS):
            run(names)
        device.queue.read_buffer(values)
    print(f"{label.capitalize()} Time: {time.perf_counter() - start:.4f}s")


print("Warming up...")
for names in (OPERATIONS, ["fused"]):
    run(names)
device.queue.read_buffer(values)
timed("eager", OPERATIONS)
timed("compiled", ["fused"])
