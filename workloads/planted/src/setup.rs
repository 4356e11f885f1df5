//! Makes the state with which a mode of one device, one queue and one command buffer at a time starts.

use anyhow::Result;
use ash::vk;

use crate::args::{Args, Moment};
use crate::conduct;
use crate::gpu::Gpu;
use crate::recorded::Recorded;
use crate::recording::Recording;
use crate::spin::Spin;
use crate::truth::Truth;

/// A device with work for it, one command buffer, and the fence that every submission signals.
pub struct Setup {
    // The field is dropped before the device, to which its parts belong.
    pub spin: Spin,
    pub gpu: Gpu,
    pub buffer: vk::CommandBuffer,
    pub fence: vk::Fence,
}

impl Setup {
    pub fn open(args: &Args) -> Result<Self> {
        Self::on(Gpu::open(args)?, args)
    }

    pub fn on(gpu: Gpu, args: &Args) -> Result<Self> {
        let setup = Self {
            spin: Spin::new(&gpu, args)?,
            buffer: gpu.primaries(&gpu.queues[0], 1)?[0],
            fence: gpu.fence()?,
            gpu,
        };
        // The driver compiles the kernel when it first runs.
        if args.conduct.is_some() {
            setup.run_dispatches(1)?;
        }
        conduct::at(Moment::Work, args)?;
        Ok(setup)
    }

    /// Records `dispatches` and submits them.
    pub fn submit(&self, dispatches: u32) -> Result<()> {
        let recorded = self.spin.record_once(&self.gpu, self.buffer, dispatches)?;
        self.gpu.submit(&[&recorded], self.fence)
    }

    /// Starts to record the command buffer for one submission.
    pub fn recording(&self) -> Result<Recording<'_>> {
        let usage = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
        Recording::start(&self.gpu, self.buffer, usage)
    }

    /// Submits command buffers as one batch, and waits for them.
    pub fn run(&self, recorded: &[&Recorded]) -> Result<()> {
        self.gpu.submit(recorded, self.fence)?;
        self.wait()
    }

    /// Records `dispatches`, submits them and waits for them.
    pub fn run_dispatches(&self, dispatches: u32) -> Result<()> {
        self.submit(dispatches)?;
        self.wait()
    }

    pub fn wait(&self) -> Result<()> {
        self.gpu.wait(self.fence)
    }

    /// Adds the result and the work of the device to the truth, with which tests compare the trace.
    pub fn report(&self, truth: &mut Truth) -> Result<()> {
        truth.add_result(self.spin.data.read(&self.gpu)?);
        self.gpu.report(truth);
        Ok(())
    }
}
