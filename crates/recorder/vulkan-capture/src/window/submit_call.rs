//! A program's call that submits, of either version of Vulkan: reads its batches, and passes it on as it is or with
//! other command buffers.

use std::cell::Cell;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::layer::Queue;
use gapscope_vulkan_layer::submissions::{SemaphoreUse, SubmitInfo, with_command_buffers};

use crate::api::device::Device;

/// A call of vkQueueSubmit or vkQueueSubmit2.
pub struct SubmitCall<'a> {
    pub device: &'static Device,
    pub queue: vk::Queue,
    pub batches: SubmitInfos<'a>,
    pub fence: vk::Fence,
    /// The result of the call, once it has been passed on.
    pub passed: Cell<Option<vk::Result>>,
}

/// The program's structures, and the next layer's function.
#[derive(Clone, Copy)]
pub enum SubmitInfos<'a> {
    One(&'a [vk::SubmitInfo<'a>], vk::PFN_vkQueueSubmit),
    Two(&'a [vk::SubmitInfo2<'a>], vk::PFN_vkQueueSubmit2),
}

/// The batch of a submission, of either version.
pub struct SubmitBatch {
    pub waits: Vec<SemaphoreUse>,
    pub commands: Vec<vk::CommandBuffer>,
    pub signals: Vec<SemaphoreUse>,
    pub is_protected: bool,
}

/// Command buffers of the layer before and after what a call submits.
#[derive(Clone, Copy)]
pub struct TimingPair {
    pub before: vk::CommandBuffer,
    pub after: vk::CommandBuffer,
}

impl SubmitCall<'_> {
    /// Returns the queue, as the program got it.
    pub fn known_queue(&self) -> Option<Queue> {
        self.device.queue(self.queue)
    }

    /// Returns the batches of the call.
    pub fn batches(&self) -> Vec<SubmitBatch> {
        // SAFETY: the program's structures are valid during its call.
        unsafe {
            match self.batches {
                SubmitInfos::One(infos, _) => infos.iter().map(|info| batch(info)).collect(),
                SubmitInfos::Two(infos, _) => infos.iter().map(|info| batch(info)).collect(),
            }
        }
    }

    /// Returns all command buffers of the call.
    pub fn command_buffers(&self) -> Vec<vk::CommandBuffer> {
        self.batches()
            .into_iter()
            .flat_map(|batch| batch.commands)
            .collect()
    }

    /// Passes the call on as it is.
    ///
    /// # Safety
    /// It is the program's, and nobody else uses the queue.
    pub unsafe fn pass_on(&self) -> vk::Result {
        // SAFETY: as the caller promises.
        let result = unsafe {
            match self.batches {
                SubmitInfos::One(infos, call) => {
                    call(self.queue, infos.len() as u32, infos.as_ptr(), self.fence)
                }
                SubmitInfos::Two(infos, call) => {
                    call(self.queue, infos.len() as u32, infos.as_ptr(), self.fence)
                }
            }
        };
        self.passed.set(Some(result));
        result
    }

    /// Returns the command buffers, by batches.
    pub fn lists(&self) -> Vec<Vec<vk::CommandBuffer>> {
        self.batches()
            .into_iter()
            .map(|batch| batch.commands)
            .collect()
    }

    /// Returns whether the command buffers can be others: nothing is chained to the call that counts them.
    pub fn can_have_others(&self) -> bool {
        match self.batches {
            // SAFETY: the program's structures are valid during its call.
            SubmitInfos::One(infos, _) => infos.iter().all(|info| unsafe { !info.is_for_group() }),
            SubmitInfos::Two(..) => true,
        }
    }

    /// Passes the call on with other command buffers in its batches, and nothing else changed.
    ///
    /// # Safety
    /// As for [`SubmitCall::pass_on`]; each list is executable where it is.
    pub unsafe fn pass_on_with(&self, lists: &[Vec<vk::CommandBuffer>]) -> vk::Result {
        let lists = lists.iter().map(Some);
        // SAFETY: as the caller promises.
        let result = unsafe {
            match self.batches {
                SubmitInfos::One(infos, call) => with_command_buffers(infos, lists, |infos| {
                    call(self.queue, infos.len() as u32, infos.as_ptr(), self.fence)
                }),
                SubmitInfos::Two(infos, call) => with_command_buffers(infos, lists, |infos| {
                    call(self.queue, infos.len() as u32, infos.as_ptr(), self.fence)
                }),
            }
        };
        self.passed.set(Some(result));
        result
    }
}

/// Returns the batch that a structure of the program describes.
///
/// # Safety
/// `info` is valid.
unsafe fn batch<I: SubmitInfo>(info: &I) -> SubmitBatch {
    // SAFETY: as the caller promises.
    unsafe {
        SubmitBatch {
            waits: info.waits().collect(),
            commands: info.command_buffers().collect(),
            signals: info.signals().collect(),
            is_protected: info.is_protected(),
        }
    }
}

impl SubmitCall<'_> {
    /// Returns the reason why a semaphore keeps the call from running now, or `None` if nothing does once earlier
    /// work is finished.
    pub fn waits_for_what_has_not_come(&self) -> Option<String> {
        let mut signalled: Vec<(u64, u64)> = Vec::new();
        for batch in self.batches() {
            for wait in &batch.waits {
                let raw = wait.semaphore.as_raw();
                let known = self.device.objects.semaphores.get(raw);
                if known.is_some_and(|known| known.is_shared) {
                    return Some("it waits for a semaphore that is shared with others".to_owned());
                }
                // A binary semaphore is waited for only after what signals it has been submitted.
                if !known.is_some_and(|known| known.is_timeline)
                    || signalled
                        .iter()
                        .any(|(s, value)| *s == raw && *value >= wait.value)
                {
                    continue;
                }
                let next = &self.device.next;
                // SAFETY: the semaphore is a timeline of this device, and live.
                let value = unsafe { next.get_semaphore_counter_value(wait.semaphore) };
                match value {
                    Ok(value) if value >= wait.value => {}
                    _ => {
                        return Some(format!(
                            "it waits for value {} of a timeline semaphore, which nothing submitted before it signals",
                            wait.value
                        ));
                    }
                }
            }
            signalled.extend(
                batch
                    .signals
                    .iter()
                    .map(|s| (s.semaphore.as_raw(), s.value)),
            );
        }
        None
    }
}
