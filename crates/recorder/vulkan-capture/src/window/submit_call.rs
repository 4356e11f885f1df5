//! Reads the batches of a program's call that submits, of either version of Vulkan, and passes the call on as it is
//! or with other command buffers.

use std::cell::Cell;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::submissions::{SemaphoreUse, SubmitInfo};

use crate::api::device::Device;

/// A call of vkQueueSubmit or vkQueueSubmit2.
pub struct SubmitCall<'a> {
    pub device: &'static Device,
    pub queue: vk::Queue,
    /// The batches of the call, in order.
    pub batches: Vec<SubmitBatch>,
    /// Whether the command buffers can be others: nothing is chained to the call that counts them.
    pub can_have_others: bool,
    /// The result of the call, once it has been passed on.
    pub passed: Cell<Option<vk::Result>>,
    call_next: &'a CallNext<'a>,
}

/// Calls the next layer's function with the program's structures, in which the command buffers of each batch are
/// replaced if there are lists of others.
type CallNext<'a> = dyn Fn(Option<&[Vec<vk::CommandBuffer>]>) -> vk::Result + 'a;

/// A batch of a call: command buffers with the semaphores that they wait for and signal.
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

impl<'a> SubmitCall<'a> {
    /// Reads a call with these structures.
    ///
    /// # Safety
    /// The structures are valid.
    pub unsafe fn new<I: SubmitInfo>(
        device: &'static Device,
        queue: vk::Queue,
        infos: &[I],
        call_next: &'a CallNext<'a>,
    ) -> SubmitCall<'a> {
        // SAFETY: as the caller promises.
        unsafe {
            let batch = |info: &I| SubmitBatch {
                waits: info.waits().collect(),
                commands: info.command_buffers().collect(),
                signals: info.signals().collect(),
                is_protected: info.is_protected(),
            };
            SubmitCall {
                device,
                queue,
                batches: infos.iter().map(batch).collect(),
                can_have_others: I::ENTRIES_NAME_DEVICES
                    || infos.iter().all(|info| !info.is_for_group()),
                passed: Cell::default(),
                call_next,
            }
        }
    }

    /// Returns all command buffers of the call.
    pub fn command_buffers(&self) -> Vec<vk::CommandBuffer> {
        self.lists().concat()
    }

    /// Returns the command buffers, by batches.
    pub fn lists(&self) -> Vec<Vec<vk::CommandBuffer>> {
        let lists = self.batches.iter().map(|batch| batch.commands.clone());
        lists.collect()
    }

    /// Passes the call on as it is, or with other command buffers in its batches and nothing else changed.
    ///
    /// # Safety
    /// The call is the program's, and nobody else uses the queue; each list is executable where it is.
    pub unsafe fn pass_on(&self, lists: Option<&[Vec<vk::CommandBuffer>]>) -> vk::Result {
        let result = (self.call_next)(lists);
        self.passed.set(Some(result));
        result
    }

    /// Returns the reason why a semaphore keeps the call from running now, or `None` if nothing does once earlier
    /// work is finished.
    pub fn waits_for_what_has_not_come(&self) -> Option<String> {
        let mut signalled: Vec<(u64, u64)> = Vec::new();
        for batch in &self.batches {
            for wait in &batch.waits {
                let raw = wait.semaphore.as_raw();
                let semaphore = self.device.objects.semaphores.get(raw);
                if semaphore.is_some_and(|semaphore| semaphore.is_shared) {
                    return Some("it waits for a semaphore that is shared with others".to_owned());
                }
                // A binary semaphore is waited for only after what signals it has been submitted.
                if !semaphore.is_some_and(|semaphore| semaphore.is_timeline)
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
