//! Reads and passes on a call that submits, in either version.

use std::cell::Cell;
use std::ffi::c_void;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::arguments::{find, slice};
use gapscope_vulkan_layer::layer::Queue;

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

/// A semaphore that a batch waits for or signals.
pub struct SemaphoreUse {
    pub semaphore: vk::Semaphore,
    /// The value means something if the semaphore is a timeline.
    pub value: u64,
    pub stages: u64,
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

    pub fn batches(&self) -> Vec<SubmitBatch> {
        // SAFETY: the program's structures are valid during its call.
        unsafe {
            match self.batches {
                SubmitInfos::One(infos, _) => infos.iter().map(|info| batch(info)).collect(),
                SubmitInfos::Two(infos, _) => infos.iter().map(|info| batch2(info)).collect(),
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
        let group = vk::StructureType::DEVICE_GROUP_SUBMIT_INFO;
        match self.batches {
            SubmitInfos::One(infos, _) => infos.iter().all(|info| {
                // SAFETY: the program's structures are valid during its call.
                unsafe { find::<vk::BaseInStructure<'_>>(info.p_next, group) }.is_none()
            }),
            SubmitInfos::Two(..) => true,
        }
    }

    /// Passes the call on with other command buffers in its batches, and nothing else changed.
    ///
    /// # Safety
    /// As for [`SubmitCall::pass_on`]; each list is executable where it is.
    pub unsafe fn pass_on_with(&self, lists: &[Vec<vk::CommandBuffer>]) -> vk::Result {
        // SAFETY: as the caller promises; the changed structures live until the call returns.
        let result = unsafe {
            match self.batches {
                SubmitInfos::One(infos, call) => {
                    let infos: Vec<_> = (infos.iter().zip(lists))
                        .map(|(info, list)| vk::SubmitInfo {
                            command_buffer_count: list.len() as u32,
                            p_command_buffers: list.as_ptr(),
                            ..*info
                        })
                        .collect();
                    call(self.queue, infos.len() as u32, infos.as_ptr(), self.fence)
                }
                SubmitInfos::Two(infos, call) => {
                    let lists: Vec<Vec<_>> = (infos.iter().zip(lists))
                        .map(|(info, list)| infos_of(info, list))
                        .collect();
                    let infos: Vec<_> = (infos.iter().zip(&lists))
                        .map(|(info, list)| vk::SubmitInfo2 {
                            command_buffer_info_count: list.len() as u32,
                            p_command_buffer_infos: list.as_ptr(),
                            ..*info
                        })
                        .collect();
                    call(self.queue, infos.len() as u32, infos.as_ptr(), self.fence)
                }
            }
        };
        self.passed.set(Some(result));
        result
    }
}

/// Returns the program's own structures of its command buffers, and new ones for those of the layer.
///
/// # Safety
/// `info` is valid.
unsafe fn infos_of<'a>(
    info: &vk::SubmitInfo2<'a>,
    list: &[vk::CommandBuffer],
) -> Vec<vk::CommandBufferSubmitInfo<'a>> {
    // SAFETY: as the caller promises.
    let own = unsafe { slice(info.p_command_buffer_infos, info.command_buffer_info_count) };
    let of = |buffer: &vk::CommandBuffer| {
        let known = own.iter().find(|info| info.command_buffer == *buffer);
        known
            .copied()
            .unwrap_or_else(|| vk::CommandBufferSubmitInfo::default().command_buffer(*buffer))
    };
    list.iter().map(of).collect()
}

/// # Safety
/// `info` is valid.
unsafe fn batch(info: &vk::SubmitInfo<'_>) -> SubmitBatch {
    // SAFETY: as the caller promises.
    unsafe {
        let wanted = vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO;
        let values = find::<vk::TimelineSemaphoreSubmitInfo<'_>>(info.p_next, wanted);
        let wait_values = values.map_or(&[][..], |v| {
            slice(v.p_wait_semaphore_values, v.wait_semaphore_value_count)
        });
        let signal_values = values.map_or(&[][..], |v| {
            slice(v.p_signal_semaphore_values, v.signal_semaphore_value_count)
        });
        let waits = slice(info.p_wait_semaphores, info.wait_semaphore_count);
        let stages = slice(info.p_wait_dst_stage_mask, info.wait_semaphore_count);
        let signals = slice(info.p_signal_semaphores, info.signal_semaphore_count);
        SubmitBatch {
            waits: (waits.iter().enumerate())
                .map(|(index, semaphore)| SemaphoreUse {
                    semaphore: *semaphore,
                    value: wait_values.get(index).copied().unwrap_or(0),
                    stages: stages.get(index).map_or(0, |stages| stages.as_raw().into()),
                })
                .collect(),
            commands: slice(info.p_command_buffers, info.command_buffer_count).to_vec(),
            signals: (signals.iter().enumerate())
                .map(|(index, semaphore)| SemaphoreUse {
                    semaphore: *semaphore,
                    value: signal_values.get(index).copied().unwrap_or(0),
                    stages: vk::PipelineStageFlags2::ALL_COMMANDS.as_raw(),
                })
                .collect(),
            is_protected: is_protected(info.p_next),
        }
    }
}

/// # Safety
/// `chain` is a valid pNext chain.
unsafe fn is_protected(chain: *const c_void) -> bool {
    let wanted = vk::StructureType::PROTECTED_SUBMIT_INFO;
    // SAFETY: as the caller promises.
    let info = unsafe { find::<vk::ProtectedSubmitInfo<'_>>(chain, wanted) };
    info.is_some_and(|info| info.protected_submit != vk::FALSE)
}

/// # Safety
/// `info` is valid.
unsafe fn batch2(info: &vk::SubmitInfo2<'_>) -> SubmitBatch {
    let semaphore = |info: &vk::SemaphoreSubmitInfo<'_>| SemaphoreUse {
        semaphore: info.semaphore,
        value: info.value,
        stages: info.stage_mask.as_raw(),
    };
    // SAFETY: as the caller promises.
    unsafe {
        let waits = slice(info.p_wait_semaphore_infos, info.wait_semaphore_info_count);
        let signals = slice(
            info.p_signal_semaphore_infos,
            info.signal_semaphore_info_count,
        );
        let commands = slice(info.p_command_buffer_infos, info.command_buffer_info_count);
        SubmitBatch {
            waits: waits.iter().map(semaphore).collect(),
            commands: commands.iter().map(|info| info.command_buffer).collect(),
            signals: signals.iter().map(semaphore).collect(),
            is_protected: info.flags.contains(vk::SubmitFlags::PROTECTED),
        }
    }
}

impl SubmitCall<'_> {
    /// Returns why a semaphore keeps the call from running now, or `None` if nothing does once earlier work is
    /// finished.
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
