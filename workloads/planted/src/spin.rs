//! The work that most modes run: a kernel that spins over its own buffer.

use anyhow::Result;
use ash::vk;

use crate::args::Args;
use crate::buffer::Buffer;
use crate::gpu::{Gpu, Object};
use crate::kernel::{Binding, Layout, SPIN_MULTIPLIER, WORKGROUP_SIZE, compile, spin_wgsl};
use crate::recording::{Recorded, Recording};
use crate::truth::Truth;

pub struct Spin {
    pub layout: Layout,
    pub pipeline: vk::Pipeline,
    pub set: vk::DescriptorSet,
    pub data: Buffer,
    pub groups: u32,
    rounds: u32,
}

impl Spin {
    pub fn new(gpu: &Gpu, args: &Args) -> Result<Self> {
        let layout = Layout::new(gpu, Binding::Set)?;
        let spirv = compile(&spin_wgsl("spin", SPIN_MULTIPLIER))?;
        let data = Buffer::new(gpu, data_bytes(args))?;
        let set = descriptor_sets(gpu, &layout, Binding::Set, 1)?[0];
        point(gpu, set, &data, Binding::Set);
        Ok(Self {
            pipeline: layout.pipeline(gpu, &spirv, "spin", None)?,
            layout,
            set,
            data,
            groups: args.groups,
            rounds: args.spin,
        })
    }

    /// Sets all that a dispatch of this work needs.
    pub fn bind(&self, recording: &Recording) {
        self.bind_pipeline(recording, self.pipeline);
        self.bind_set(recording);
    }

    pub fn bind_pipeline(&self, recording: &Recording, pipeline: vk::Pipeline) {
        let (device, buffer) = (&recording.gpu.device, recording.buffer);
        unsafe { device.cmd_bind_pipeline(buffer, vk::PipelineBindPoint::COMPUTE, pipeline) };
        push_rounds(recording, &self.layout, self.rounds);
    }

    pub fn bind_set(&self, recording: &Recording) {
        bind_set(recording, &self.layout, self.set, &[]);
    }

    /// Records `dispatches` that run one after the other.
    pub fn record(
        &self,
        gpu: &Gpu,
        buffer: vk::CommandBuffer,
        usage: vk::CommandBufferUsageFlags,
        dispatches: u32,
    ) -> Result<Recorded> {
        let mut recording = Recording::begin(gpu, buffer, usage)?;
        self.bind(&recording);
        for _ in 0..dispatches {
            recording.dispatch(self.groups);
            recording.barrier();
        }
        recording.end()
    }

    /// As `record`, for one submission.
    pub fn record_once(
        &self,
        gpu: &Gpu,
        buffer: vk::CommandBuffer,
        dispatches: u32,
    ) -> Result<Recorded> {
        self.record(
            gpu,
            buffer,
            vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT,
            dispatches,
        )
    }

    /// Adds the results, and what ran on `gpu`, to the truth.
    pub fn report(&self, gpu: &Gpu, truth: &mut Truth) -> Result<()> {
        truth.add_result(self.data.read(gpu)?);
        gpu.report(truth);
        Ok(())
    }
}

pub fn data_bytes(args: &Args) -> u64 {
    u64::from(args.groups) * u64::from(WORKGROUP_SIZE) * 4
}

pub fn push_rounds(recording: &Recording, layout: &Layout, rounds: u32) {
    unsafe {
        recording.gpu.device.cmd_push_constants(
            recording.buffer,
            layout.pipeline,
            vk::ShaderStageFlags::COMPUTE,
            0,
            &rounds.to_le_bytes(),
        );
    }
}

pub fn bind_set(recording: &Recording, layout: &Layout, set: vk::DescriptorSet, offsets: &[u32]) {
    unsafe {
        recording.gpu.device.cmd_bind_descriptor_sets(
            recording.buffer,
            vk::PipelineBindPoint::COMPUTE,
            layout.pipeline,
            0,
            &[set],
            offsets,
        );
    }
}

pub fn descriptor_sets(
    gpu: &Gpu,
    layout: &Layout,
    binding: Binding,
    count: u32,
) -> Result<Vec<vk::DescriptorSet>> {
    let sizes = [vk::DescriptorPoolSize::default()
        .ty(binding.descriptor_type())
        .descriptor_count(count)];
    let info = vk::DescriptorPoolCreateInfo::default()
        .max_sets(count)
        .pool_sizes(&sizes);
    let pool = unsafe { gpu.device.create_descriptor_pool(&info, None)? };
    gpu.own(Object::DescriptorPool(pool));
    let layouts = vec![layout.set; count as usize];
    let info = vk::DescriptorSetAllocateInfo::default()
        .descriptor_pool(pool)
        .set_layouts(&layouts);
    Ok(unsafe { gpu.device.allocate_descriptor_sets(&info)? })
}

/// Points the descriptor of `set` at `buffer`.
pub fn point(gpu: &Gpu, set: vk::DescriptorSet, buffer: &Buffer, binding: Binding) {
    point_range(gpu, set, buffer, binding, vk::WHOLE_SIZE);
}

pub fn point_range(
    gpu: &Gpu,
    set: vk::DescriptorSet,
    buffer: &Buffer,
    binding: Binding,
    range: u64,
) {
    let info = [vk::DescriptorBufferInfo::default()
        .buffer(buffer.handle)
        .range(range)];
    let write = vk::WriteDescriptorSet::default()
        .dst_set(set)
        .descriptor_type(binding.descriptor_type())
        .buffer_info(&info);
    unsafe { gpu.device.update_descriptor_sets(&[write], &[]) };
}
