//! Metal command buffers whose work is timed, by a [`Batch`] of samples beside them.

use super::counters::AppleCounters;
use crate::metal::{Batch, CommandBufferError, Commands, Completion, Submitted};
use block2::RcBlock;
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{MTLCommandBuffer, MTLCommandBufferStatus};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Metal's own object.
type Raw = Retained<ProtocolObject<dyn MTLCommandBuffer>>;

/// A command buffer whose work is timed. It is discarded if it is dropped without a commit, as in Metal. See
/// [`super::Device`].
///
/// ```no_run
/// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
/// # use gapscope_sdk::metal::*;
/// let mut commands: CommandBuffer = queue.command_buffer()?;
/// commands.compute_pass("layer 3")?.end();
/// # Ok(())
/// # }
/// ```
pub struct CommandBuffer {
    raw: RawCommands,
    pub(super) batch: Batch<AppleCounters>,
    /// Whether kernels get debug groups.
    pub(super) debug: bool,
}

impl CommandBuffer {
    pub(super) fn new(raw: Raw, batch: Batch<AppleCounters>, debug: bool) -> CommandBuffer {
        CommandBuffer {
            raw: RawCommands(raw),
            batch,
            debug,
        }
    }

    /// Returns Metal's command buffer, for work that is not timed on its own (blits, events).
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// use objc2_metal::MTLCommandBuffer;
    /// queue.command_buffer()?.raw().enqueue();
    /// # Ok(())
    /// # }
    /// ```
    pub fn raw(&self) -> &ProtocolObject<dyn MTLCommandBuffer> {
        &self.raw.0
    }

    /// Begins a debug group, which Instruments and captures show.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let commands = queue.command_buffer()?;
    /// commands.push_debug_group("prefill");
    /// commands.pop_debug_group();
    /// # Ok(())
    /// # }
    /// ```
    pub fn push_debug_group(&self, text: &str) {
        self.raw.0.pushDebugGroup(&NSString::from_str(text));
    }

    /// Ends the innermost debug group.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let commands = queue.command_buffer()?;
    /// commands.push_debug_group("prefill");
    /// commands.pop_debug_group();
    /// # Ok(())
    /// # }
    /// ```
    pub fn pop_debug_group(&self) {
        self.raw.0.popDebugGroup();
    }

    /// Commits the command buffer under a label and waits for its end. Its encoders must have ended.
    ///
    /// # Errors
    /// The error of the GPU.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// match queue.command_buffer()?.commit_and_wait_labeled("layer 3") {
    ///     Ok(submitted) => println!("{:?}", submitted.time),
    ///     Err(error) => eprintln!("{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit_and_wait_labeled(self, label: &str) -> Result<Submitted, CommandBufferError> {
        self.batch.commit_and_wait(&self.raw, label)
    }

    /// Commits the command buffer under a label and returns at once. When it has ended, it is recorded and `done` is
    /// called on a thread of Metal's.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// queue.command_buffer()?.commit_labeled("layer 3", |outcome| println!("{outcome:?}"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit_labeled(
        self,
        label: &str,
        done: impl FnOnce(Result<Submitted, CommandBufferError>) + Send + 'static,
    ) {
        self.batch.commit(&self.raw, label, done);
    }
}

/// Implements what a [`Batch`] needs of a command buffer.
struct RawCommands(Raw);

/// Returns the state, the error and the GPU times of a command buffer.
fn completion_of(raw: &ProtocolObject<dyn MTLCommandBuffer>) -> Completion {
    let status = raw.status();
    let failed = status == MTLCommandBufferStatus::Error;
    let said = || {
        autoreleasepool(|_| {
            let error = raw.error()?;
            Some(error.localizedDescription().to_string())
        })
    };
    Completion {
        finished: failed || status == MTLCommandBufferStatus::Completed,
        error: failed.then(|| said().unwrap_or_else(|| "Metal gave no reason".to_owned())),
        gpu_start_s: raw.GPUStartTime(),
        gpu_end_s: raw.GPUEndTime(),
        ..Completion::default()
    }
}

impl Commands for RawCommands {
    fn set_label(&self, label: &str) {
        self.0.setLabel(Some(&NSString::from_str(label)));
    }

    // Objects that Metal autoreleases in these calls would otherwise live as long as a thread without a pool.
    fn commit(&self) {
        autoreleasepool(|_| self.0.commit());
    }

    fn wait(&self) {
        autoreleasepool(|_| self.0.waitUntilCompleted());
    }

    fn completion(&self) -> Completion {
        completion_of(&self.0)
    }

    fn on_completed(&self, done: Box<dyn FnOnce(Completion) + Send>) {
        let done = Mutex::new(Some(done));
        let block = RcBlock::new(move |raw: NonNull<ProtocolObject<dyn MTLCommandBuffer>>| {
            let once = done.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(done) = once {
                // SAFETY: Metal passes the command buffer that ended, which it keeps alive during the call.
                let completion = completion_of(unsafe { raw.as_ref() });
                // A panic must not reach Metal's thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| done(completion)));
            }
        });
        // SAFETY: Metal copies the block and calls it on another thread; its captured values are Send.
        unsafe { self.0.addCompletedHandler(RcBlock::as_ptr(&block)) };
    }
}
