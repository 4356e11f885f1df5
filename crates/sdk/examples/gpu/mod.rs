//! A small model on a GPU for the examples: each layer adds, then takes the sine.

use gapscope_sdk::wgpu::Profiler;
use wgpu::util::DeviceExt;

/// The kernels: an addition, a sine, and both in one.
const SHADER: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) { x[id.x] = x[id.x] + 1.0; }
}

@compute @workgroup_size(64)
fn sine(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) { x[id.x] = sin(x[id.x]); }
}

@compute @workgroup_size(64)
fn add_sine(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) { x[id.x] = sin(x[id.x] + 1.0); }
}
";

/// The number of values.
const VALUES: usize = 1 << 16;
/// The number of workgroups of 64 that cover the values.
pub const GROUPS: u32 = (VALUES / 64) as u32;

/// A device with its queue, its profiler, the kernels and the buffer that they work on.
pub struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub profiler: Profiler,
    /// How often each kernel does its work in one dispatch.
    pub rounds: u32,
    add: wgpu::ComputePipeline,
    sine: wgpu::ComputePipeline,
    add_sine: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
}

impl Gpu {
    /// Opens the first GPU, which may be a software GPU. `timed` requests the features that timing needs.
    pub fn open(timed: bool) -> Result<Gpu, Box<dyn std::error::Error>> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            // Labels reach the driver, and so a recording, only with DEBUG.
            flags: wgpu::InstanceFlags::DEBUG,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
        let adapter = adapters
            .first()
            .ok_or("no GPU adapter was found: install Mesa's lavapipe")?;
        let wanted = Profiler::wanted_features(adapter.features());
        let (device, queue) =
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
                required_features: if timed {
                    wanted
                } else {
                    wgpu::Features::empty()
                },
                ..Default::default()
            }))?;
        let profiler = Profiler::new(&device, &queue);
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("layers"),
            source: wgpu::ShaderSource::Wgsl(SHADER.into()),
        });
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[wgpu::BindGroupLayoutEntry {
                binding: 0,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: false },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            }],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            ..Default::default()
        });
        let pipeline = |name| {
            profiler.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(name),
                compilation_options: Default::default(),
                cache: None,
            })
        };
        let (add, sine, add_sine) = (pipeline("add"), pipeline("sine"), pipeline("add_sine"));
        let buffer = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("x"),
            contents: &vec![0; VALUES * size_of::<f32>()],
            usage: wgpu::BufferUsages::STORAGE,
        });
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &[wgpu::BindGroupEntry {
                binding: 0,
                resource: buffer.as_entire_binding(),
            }],
        });
        Ok(Gpu {
            device,
            queue,
            profiler,
            rounds: 1,
            add,
            sine,
            add_sine,
            bindings,
        })
    }

    /// Submits layers as one command buffer, with two kernels each or with one that does both.
    pub fn forward(&self, label: &str, layers: u32, fused: bool) {
        let mut encoder = self.profiler.encoder(label);
        for layer in 0..layers {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some(&format!("layer {layer}")),
                timestamp_writes: None,
            });
            pass.set_bind_group(0, &self.bindings, &[]);
            let kernels: &[_] = if fused {
                &[&self.add_sine]
            } else {
                &[&self.add, &self.sine]
            };
            for kernel in kernels {
                pass.set_pipeline(kernel);
                pass.dispatch_workgroups(GROUPS, 1, self.rounds);
            }
        }
        self.queue.submit([encoder.finish()]);
    }

    /// Waits until all work has run.
    pub fn wait(&self) -> Result<(), Box<dyn std::error::Error>> {
        self.profiler.wait()?;
        Ok(())
    }
}
