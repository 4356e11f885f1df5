//! Metal compute passes whose dispatches are timed.

use super::counters::SampleBuffer;
use super::{CommandBuffer, MetalError};
use crate::metal::{Dispatch, Ladder, SampleSlot};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLCommandBuffer, MTLCommandEncoder, MTLComputeCommandEncoder, MTLComputePassDescriptor,
    MTLDispatchType,
};

/// Metal's encoder of a compute pass.
type Encoder = ProtocolObject<dyn MTLComputeCommandEncoder>;

/// A compute pass, which ends when it is dropped.
///
/// ```no_run
/// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
/// # use gapscope_sdk::metal::*;
/// let mut commands = queue.command_buffer()?;
/// let mut pass: ComputePass<'_> = commands.compute_pass("layer 3")?;
/// pass.dispatch(Dispatch { kernel: "softmax".into(), ..Dispatch::default() }, |_encoder| {
///     // set the pipeline and the buffers, and dispatch
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct ComputePass<'a> {
    commands: &'a mut CommandBuffer,
    label: String,
    /// Whether dispatches run one after the other.
    order: MTLDispatchType,
    /// The open encoder; `None` before the first dispatch where each dispatch opens an encoder of its own.
    encoder: Option<Retained<Encoder>>,
}

impl CommandBuffer {
    /// Begins a compute pass with a label. Instruments reads the label of an encoder when it ends.
    ///
    /// # Errors
    /// Metal gives no encoder.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let mut commands = queue.command_buffer()?;
    /// let pass = commands.compute_pass("layer 3")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn compute_pass(&mut self, label: &str) -> Result<ComputePass<'_>, MetalError> {
        ComputePass::begin(self, label, MTLDispatchType::Serial)
    }

    /// Begins a compute pass whose dispatches may run at the same time; barriers are up to the program. Samples
    /// around each dispatch ([`Ladder::DispatchBoundary`](crate::metal::Ladder)) serialise the dispatches, and so do
    /// passes of their own.
    ///
    /// # Errors
    /// Metal gives no encoder.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let mut commands = queue.command_buffer()?;
    /// let pass = commands.concurrent_compute_pass("experts")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn concurrent_compute_pass(&mut self, label: &str) -> Result<ComputePass<'_>, MetalError> {
        ComputePass::begin(self, label, MTLDispatchType::Concurrent)
    }
}

impl<'a> ComputePass<'a> {
    /// Begins a pass, with its samples where whole passes are timed.
    pub(super) fn begin(
        commands: &'a mut CommandBuffer,
        label: &str,
        order: MTLDispatchType,
    ) -> Result<ComputePass<'a>, MetalError> {
        let mut pass = ComputePass {
            commands,
            label: label.to_owned(),
            order,
            encoder: None,
        };
        let slot = pass.commands.batch.begin_pass(label);
        // If each dispatch has its own pass, the dispatches create their encoders.
        if pass.commands.batch.ladder() != Ladder::PassPerDispatch {
            pass.open(slot)?;
        }
        Ok(pass)
    }

    /// Encodes one dispatch. `encode` sets the pipeline and all buffers, and dispatches once. If only passes can be
    /// timed, each dispatch has an encoder of its own, and earlier settings do not apply to it.
    ///
    /// # Errors
    /// Metal returns no encoder.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let mut commands = queue.command_buffer()?;
    /// let mut pass = commands.compute_pass("layer 3")?;
    /// pass.dispatch(Dispatch { kernel: "softmax".into(), ..Dispatch::default() }, |_encoder| {})?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch(
        &mut self,
        dispatch: Dispatch,
        encode: impl FnOnce(&Encoder),
    ) -> Result<(), MetalError> {
        let CommandBuffer { batch, debug, .. } = &mut *self.commands;
        let debug = debug.then(|| NSString::from_str(&dispatch.kernel));
        let ladder = batch.ladder();
        let mut around = batch.dispatch(dispatch);
        if ladder == Ladder::PassPerDispatch {
            self.close();
            self.open(around.take())?;
        }
        let encoder = self.encoder.as_deref().ok_or(MetalError::NoEncoder)?;
        if let Some(kernel) = &debug {
            encoder.pushDebugGroup(kernel);
        }
        if let Some(slot) = &around {
            sample_at(encoder, &slot.buffer, slot.pair.start());
        }
        encode(encoder);
        if let Some(slot) = &around {
            sample_at(encoder, &slot.buffer, slot.pair.end());
        }
        if debug.is_some() {
            encoder.popDebugGroup();
        }
        Ok(())
    }

    /// Returns the open encoder, for work that is not timed on its own. If each dispatch has an encoder of its own,
    /// that is the last dispatch's, and `None` before the first dispatch.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// use objc2_metal::MTLComputeCommandEncoder;
    /// let mut commands = queue.command_buffer()?;
    /// let pass = commands.compute_pass("layer 3")?;
    /// if let Some(encoder) = pass.encoder() {
    ///     encoder.memoryBarrierWithScope(objc2_metal::MTLBarrierScope::Buffers);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn encoder(&self) -> Option<&Encoder> {
        self.encoder.as_deref()
    }

    /// Ends the pass.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let mut commands = queue.command_buffer()?;
    /// commands.compute_pass("empty")?.end();
    /// # Ok(())
    /// # }
    /// ```
    pub fn end(self) {}

    /// Opens an encoder, with samples at its start and end where there is a slot.
    fn open(&mut self, slot: Option<SampleSlot<SampleBuffer>>) -> Result<(), MetalError> {
        let (commands, order) = (self.commands.raw(), self.order);
        let encoder = autoreleasepool(|_| match &slot {
            None => commands.computeCommandEncoderWithDispatchType(order),
            Some(SampleSlot { pair, buffer }) => {
                let descriptor = MTLComputePassDescriptor::computePassDescriptor();
                descriptor.setDispatchType(order);
                // SAFETY: Metal has four attachments, and the pair lies within the buffer.
                unsafe {
                    let attachments = descriptor.sampleBufferAttachments();
                    let attachment = attachments.objectAtIndexedSubscript(0);
                    attachment.setSampleBuffer(Some(buffer.raw()));
                    attachment.setStartOfEncoderSampleIndex(pair.start() as usize);
                    attachment.setEndOfEncoderSampleIndex(pair.end() as usize);
                }
                commands.computeCommandEncoderWithDescriptor(&descriptor)
            }
        });
        let encoder = encoder.ok_or(MetalError::NoEncoder)?;
        encoder.setLabel(Some(&NSString::from_str(&self.label)));
        self.encoder = Some(encoder);
        Ok(())
    }

    /// Ends the encoder that is open.
    fn close(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            encoder.endEncoding();
        }
    }
}

impl Drop for ComputePass<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Has the GPU write a sample, after a barrier.
fn sample_at(encoder: &Encoder, buffer: &SampleBuffer, index: u32) {
    // SAFETY: the ladder samples here only where the device supports it, and the index lies within the buffer.
    unsafe {
        encoder.sampleCountersInBuffer_atSampleIndex_withBarrier(
            buffer.raw(),
            index as usize,
            true,
        );
    }
}
