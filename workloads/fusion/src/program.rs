//! Lowers an expression to dispatches (executions of kernels) on the GPU: one for each operation (eager), or one for
//! all (compiled). `eager` or `compiled` makes a program, `evaluate` runs it, and `read` returns the result.

use std::borrow::Cow;
use std::collections::HashMap;

use anyhow::{Context, Result};
use wgpu::naga;
use wgpu::util::DeviceExt;

use crate::expr::{Expr, NodeId};
use crate::gpu::Gpu;
use crate::wgsl::{Kernel, PARSED_ENTRY_POINT};

/// A kernel with its buffers.
struct Dispatch {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
}

/// The dispatches of an expression over arrays of `n` floats; `output` is written by the last one.
pub struct Program<'gpu> {
    gpu: &'gpu Gpu,
    n: u32,
    label: String,
    dispatches: Vec<Dispatch>,
    output: wgpu::Buffer,
}

impl<'gpu> Program<'gpu> {
    /// Creates a program with one kernel and one dispatch for each operation, and with buffers for the values between
    /// them.
    pub fn eager(gpu: &'gpu Gpu, expr: &Expr, input: &wgpu::Buffer, n: u32) -> Result<Self> {
        let steps = expr.steps();
        let mut last_use = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            last_use.extend(step.reads.iter().map(|&node| (node, index)));
        }
        let mut pipelines = HashMap::new();
        let mut arrays: HashMap<NodeId, wgpu::Buffer> = HashMap::from([(0, input.clone())]);
        let mut free = Vec::new();
        let mut allocated = 0;
        let mut dispatches = Vec::new();
        let mut output = input.clone();
        for (index, step) in steps.iter().enumerate() {
            let kernel = Kernel::new(&step.expr);
            let pipeline = match pipelines.get(&kernel) {
                Some(pipeline) => wgpu::ComputePipeline::clone(pipeline),
                None => {
                    let pipeline = compile(gpu, &kernel)?;
                    pipelines.insert(kernel.clone(), pipeline.clone());
                    pipeline
                }
            };
            output = free.pop().unwrap_or_else(|| {
                allocated += 1;
                array(gpu, &format!("intermediate {allocated}"), n)
            });
            let inputs: Vec<_> = step.reads.iter().map(|node| &arrays[node]).collect();
            let bind_group = bind(gpu, &kernel.name, &pipeline, &inputs, &output);
            dispatches.push(Dispatch {
                pipeline,
                bind_group,
            });
            for node in &step.reads {
                // The input belongs to the caller, and the next evaluation reads it again.
                if *node != 0 && last_use[node] == index {
                    free.extend(arrays.remove(node));
                }
            }
            arrays.insert(step.output, output.clone());
        }
        Ok(Self {
            gpu,
            n,
            label: label(expr),
            dispatches,
            output,
        })
    }

    /// Creates a program with one kernel and one dispatch for the whole expression.
    pub fn compiled(gpu: &'gpu Gpu, expr: &Expr, input: &wgpu::Buffer, n: u32) -> Result<Self> {
        let kernel = Kernel::new(expr);
        let pipeline = compile(gpu, &kernel)?;
        let output = array(gpu, "compiled output", n);
        let bind_group = bind(gpu, &kernel.name, &pipeline, &[input], &output);
        Ok(Self {
            gpu,
            n,
            label: label(expr),
            dispatches: vec![Dispatch {
                pipeline,
                bind_group,
            }],
            output,
        })
    }

    /// Runs the program once, in one submission under the debug group `group`, and waits for it.
    pub fn evaluate(&self, group: &str) -> Result<()> {
        let device = &self.gpu.device;
        let (x, y) = self.gpu.grid(self.n);
        let mut encoder =
            device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(group) });
        encoder.push_debug_group(group);
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some(&self.label),
                timestamp_writes: None,
            });
            for dispatch in &self.dispatches {
                pass.set_pipeline(&dispatch.pipeline);
                pass.set_bind_group(0, &dispatch.bind_group, &[]);
                pass.dispatch_workgroups(x, y, 1);
            }
        }
        encoder.pop_debug_group();
        self.gpu.queue.submit([encoder.finish()]);
        device
            .poll(wgpu::PollType::wait_indefinitely())
            .context("the GPU did not finish")?;
        Ok(())
    }

    /// Returns the result of the last evaluation.
    pub fn read(&self) -> Result<Vec<f32>> {
        let device = &self.gpu.device;
        let readback = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("readback"),
            size: self.output.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor {
            label: Some("read back"),
        });
        encoder.copy_buffer_to_buffer(&self.output, 0, &readback, 0, self.output.size());
        self.gpu.queue.submit([encoder.finish()]);
        // An error makes get_mapped_range below fail.
        readback.map_async(wgpu::MapMode::Read, .., |_| {});
        device
            .poll(wgpu::PollType::wait_indefinitely())
            .context("the GPU did not finish")?;
        let bytes = readback
            .get_mapped_range(..)
            .context("the result could not be mapped")?;
        Ok(bytemuck::cast_slice(&bytes).to_vec())
    }
}

pub fn upload(gpu: &Gpu, values: &[f32]) -> wgpu::Buffer {
    gpu.device
        .create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("x"),
            contents: bytemuck::cast_slice(values),
            usage: wgpu::BufferUsages::STORAGE,
        })
}

/// Names an expression by its operations, for the trace.
fn label(expr: &Expr) -> String {
    expr.op_names().collect::<Vec<_>>().join(" ")
}

fn array(gpu: &Gpu, label: &str, n: u32) -> wgpu::Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: u64::from(n) * size_of::<f32>() as u64,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    })
}

/// Compiles a kernel. Its entry point gets the kernel's name, so that a trace shows that.
fn compile(gpu: &Gpu, kernel: &Kernel) -> Result<wgpu::ComputePipeline> {
    let mut module = naga::front::wgsl::parse_str(&kernel.source)
        .with_context(|| format!("the generated kernel {} is not valid WGSL", kernel.name))?;
    for entry_point in &mut module.entry_points {
        if entry_point.name == PARSED_ENTRY_POINT {
            entry_point.name.clone_from(&kernel.name);
        }
    }
    let module = gpu
        .device
        .create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(&kernel.name),
            source: wgpu::ShaderSource::Naga(Cow::Owned(module)),
        });
    Ok(gpu
        .device
        .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&kernel.name),
            layout: None,
            module: &module,
            entry_point: Some(&kernel.name),
            compilation_options: Default::default(),
            cache: None,
        }))
}

/// Binds the inputs in order, and the output after them.
fn bind(
    gpu: &Gpu,
    label: &str,
    pipeline: &wgpu::ComputePipeline,
    inputs: &[&wgpu::Buffer],
    output: &wgpu::Buffer,
) -> wgpu::BindGroup {
    let entries: Vec<_> = inputs
        .iter()
        .copied()
        .chain([output])
        .zip(0..)
        .map(|(buffer, binding)| wgpu::BindGroupEntry {
            binding,
            resource: buffer.as_entire_binding(),
        })
        .collect();
    gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some(label),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    })
}
