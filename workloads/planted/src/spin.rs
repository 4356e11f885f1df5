//! Makes the work that most modes run: a kernel that spins over its own buffer.

use anyhow::Result;
use ash::vk;

use crate::args::Args;
use crate::buffer::Buffer;
use crate::gpu::Gpu;
use crate::kernel::{SPIN_MULTIPLIER, Shader, WORKGROUP_SIZE, compile, spin_wgsl};
use crate::layout::{Binding, Layout};
use crate::recorded::Recorded;
use crate::recording::Recording;

/// The kernel with all that a dispatch of it needs; `groups` and `rounds` are those of the command line.
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
        let set = layout.allocate_set(gpu)?;
        layout.point(gpu, set, &data, vk::WHOLE_SIZE);
        Ok(Self {
            pipeline: layout.pipeline(gpu, &Shader::new(&spirv, "spin"))?,
            layout,
            set,
            data,
            groups: args.groups,
            rounds: args.spin,
        })
    }

    /// Sets all state that a dispatch of this work needs.
    pub fn bind(&self, recording: &Recording) {
        self.bind_pipeline(recording, self.pipeline);
        self.bind_set(recording);
    }

    pub fn bind_pipeline(&self, recording: &Recording, pipeline: vk::Pipeline) {
        recording.bind_pipeline(&self.layout, pipeline, self.rounds);
    }

    pub fn bind_set(&self, recording: &Recording) {
        recording.bind_set(&self.layout, self.set, &[]);
    }

    /// Records `dispatches` that run one after the other.
    pub fn record(
        &self,
        gpu: &Gpu,
        buffer: vk::CommandBuffer,
        usage: vk::CommandBufferUsageFlags,
        dispatches: u32,
    ) -> Result<Recorded> {
        let mut recording = Recording::start(gpu, buffer, usage)?;
        self.bind(&recording);
        for _ in 0..dispatches {
            recording.dispatch_in_order(self.groups);
        }
        recording.end()
    }

    /// Records `dispatches` for one submission; otherwise as `record`.
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
}

/// Returns the size of a buffer with one number for each invocation of a dispatch.
pub fn data_bytes(args: &Args) -> u64 {
    u64::from(args.groups) * u64::from(WORKGROUP_SIZE) * 4
}
