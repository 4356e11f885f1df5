// Multiplies and adds on the GPU with Dawn: 5 submissions of 4 dispatches in a labelled pass.
import { create, globals } from 'webgpu';

Object.assign(globalThis, globals);
const submissions = 5, dispatches = 4, n = 65536;
// Kept: Dawn crashes when its instance is collected.
const gpu = create(['backend=vulkan']);
const adapter = await gpu.requestAdapter();
if (!adapter) throw new Error('Dawn found no Vulkan adapter');
const device = await adapter.requestDevice();
const usage = GPUBufferUsage;
const values = device.createBuffer({ size: n * 4, usage: usage.STORAGE | usage.COPY_SRC });
const readback = device.createBuffer({ size: n * 4, usage: usage.MAP_READ | usage.COPY_DST });
const module = device.createShaderModule({
  code: `@group(0) @binding(0) var<storage, read_write> values: array<f32>;
    @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3u) {
      values[id.x] = values[id.x] * 0.5 + f32(id.x);
    }`,
});
const pipeline = device.createComputePipeline({ layout: 'auto', compute: { module, entryPoint: 'step' } });
const group = device.createBindGroup({
  layout: pipeline.getBindGroupLayout(0),
  entries: [{ binding: 0, resource: { buffer: values } }],
});
for (let submission = 0; submission < submissions; submission++) {
  const encoder = device.createCommandEncoder();
  encoder.pushDebugGroup(`step ${submission}`);
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  for (let dispatch = 0; dispatch < dispatches; dispatch++) pass.dispatchWorkgroups(n / 64);
  pass.end();
  encoder.popDebugGroup();
  encoder.copyBufferToBuffer(values, 0, readback, 0, n * 4);
  device.queue.submit([encoder.finish()]);
}
await readback.mapAsync(GPUMapMode.READ);
const result = new Float32Array(readback.getMappedRange());
let expected = 0;
for (let step = 0; step < submissions * dispatches; step++) expected = Math.fround(expected * 0.5 + 5);
if (result[5] !== expected) throw new Error(`the GPU's number is wrong: ${result[5]} and not ${expected}`);
readback.unmap();
device.destroy();
console.log(JSON.stringify({ dispatches: submissions * dispatches }));
process.exit(0);
