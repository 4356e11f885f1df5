//! Reads the structures of submissions (each a batch of command buffers with the semaphores that it waits for and
//! signals), of either version of Vulkan's functions, and makes copies of them with other command buffers.

use std::ffi::c_void;

use ash::vk;

use crate::arguments::{find, slice};

/// The function by which a program submits batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitFunction {
    /// `vkQueueSubmit`
    Submit,
    /// `vkQueueSubmit2`
    Submit2,
    /// `vkQueueSubmit2KHR`
    Submit2Khr,
}

/// A semaphore that a batch waits for or signals.
#[derive(Clone, Copy)]
pub struct SemaphoreUse {
    pub semaphore: vk::Semaphore,
    /// The value to wait for or to signal, which counts only for a timeline semaphore.
    pub value: u64,
    /// The stages of synchronization2 that wait, or that come before the signal.
    pub stages: u64,
}

/// Returns pairs of semaphore and value: those to wait for, then those to signal. The values are in the chain; 0
/// where it has none.
///
/// # Safety
/// The program's own structures, during its call.
pub unsafe fn with_values<'a>(
    chain: *const c_void,
    waits: &'a [vk::Semaphore],
    signals: &'a [vk::Semaphore],
) -> [impl Iterator<Item = (vk::Semaphore, u64)> + 'a; 2] {
    let kind = vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO;
    // SAFETY: as the caller promises.
    let values: [&[u64]; 2] = unsafe {
        let values = find::<vk::TimelineSemaphoreSubmitInfo<'_>>(chain, kind);
        values.map_or([&[], &[]], |values| {
            [
                slice(
                    values.p_wait_semaphore_values,
                    values.wait_semaphore_value_count,
                ),
                slice(
                    values.p_signal_semaphore_values,
                    values.signal_semaphore_value_count,
                ),
            ]
        })
    };
    let pairs = |(semaphores, values): (&'a [vk::Semaphore], &'a [u64])| {
        let values = values.iter().copied().chain(std::iter::repeat(0));
        semaphores.iter().copied().zip(values)
    };
    let [wait_values, signal_values] = values;
    [(waits, wait_values), (signals, signal_values)].map(pairs)
}

/// `VkSubmitInfo` or `VkSubmitInfo2`, as the program passes it.
#[expect(
    clippy::missing_safety_doc,
    reason = "the structure is the program's, during its call"
)]
pub trait SubmitInfo: Copy {
    /// An entry of the list of command buffers.
    type Entry;

    /// Whether an entry says itself which devices of a group run its command buffer; otherwise a chained structure
    /// says so for the whole list.
    const ENTRIES_NAME_DEVICES: bool;

    /// Returns the command buffers of the batch, in order.
    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone;

    /// Returns the semaphores that the batch waits for.
    unsafe fn waits(&self) -> impl Iterator<Item = SemaphoreUse>;

    /// Returns the semaphores that the batch signals.
    unsafe fn signals(&self) -> impl Iterator<Item = SemaphoreUse>;

    /// Returns whether protected work is submitted: all command buffers must then be so.
    unsafe fn is_protected(&self) -> bool;

    /// Returns whether the batch says which devices of a group run each command buffer.
    unsafe fn is_for_group(&self) -> bool;

    /// Returns the program's entry of a command buffer, or a new one where the program's list does not have it.
    unsafe fn entry(&self, command_buffer: vk::CommandBuffer) -> Self::Entry;

    /// Lists other command buffers, which must live as long as the structure is used.
    fn set_command_buffers(&mut self, entries: &[Self::Entry]);
}

/// Calls `call` with changed structures: each has the command buffers of its list, unless the list is `None`.
///
/// # Safety
/// The structures are the program's, during its call.
pub unsafe fn with_command_buffers<I: SubmitInfo, R>(
    infos: &[I],
    lists: impl Iterator<Item = Option<impl AsRef<[vk::CommandBuffer]>>>,
    call: impl FnOnce(&[I]) -> R,
) -> R {
    let entries: Vec<Option<Vec<I::Entry>>> = (infos.iter().zip(lists))
        .map(|(info, list)| {
            let list = list?;
            // SAFETY: as the caller promises.
            let entry = |one: &vk::CommandBuffer| unsafe { info.entry(*one) };
            Some(list.as_ref().iter().map(entry).collect())
        })
        .collect();
    let mut changed = infos.to_vec();
    for (info, entries) in changed.iter_mut().zip(&entries) {
        if let Some(entries) = entries {
            info.set_command_buffers(entries);
        }
    }
    call(&changed)
}

impl SubmitInfo for vk::SubmitInfo<'_> {
    type Entry = vk::CommandBuffer;
    const ENTRIES_NAME_DEVICES: bool = false;

    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone {
        // SAFETY: as the caller promises.
        let list = unsafe { slice(self.p_command_buffers, self.command_buffer_count) };
        list.iter().copied()
    }

    unsafe fn waits(&self) -> impl Iterator<Item = SemaphoreUse> {
        // SAFETY: as the caller promises.
        unsafe {
            let waits = slice(self.p_wait_semaphores, self.wait_semaphore_count);
            let stages = slice(self.p_wait_dst_stage_mask, self.wait_semaphore_count);
            let stages = stages.iter().map(|stages| stages.as_raw().into());
            let [waits, _] = with_values(self.p_next, waits, &[]);
            let stages = stages.chain(std::iter::repeat(0));
            waits
                .zip(stages)
                .map(|((semaphore, value), stages)| SemaphoreUse {
                    semaphore,
                    value,
                    stages,
                })
        }
    }

    unsafe fn signals(&self) -> impl Iterator<Item = SemaphoreUse> {
        // SAFETY: as the caller promises.
        unsafe {
            let signals = slice(self.p_signal_semaphores, self.signal_semaphore_count);
            let [_, signals] = with_values(self.p_next, &[], signals);
            signals.map(|(semaphore, value)| SemaphoreUse {
                semaphore,
                value,
                stages: vk::PipelineStageFlags2::ALL_COMMANDS.as_raw(),
            })
        }
    }

    unsafe fn is_protected(&self) -> bool {
        let kind = vk::StructureType::PROTECTED_SUBMIT_INFO;
        // SAFETY: as the caller promises.
        let info = unsafe { find::<vk::ProtectedSubmitInfo<'_>>(self.p_next, kind) };
        info.is_some_and(|info| info.protected_submit != vk::FALSE)
    }

    unsafe fn is_for_group(&self) -> bool {
        let kind = vk::StructureType::DEVICE_GROUP_SUBMIT_INFO;
        // SAFETY: as the caller promises.
        unsafe { find::<vk::BaseInStructure<'_>>(self.p_next, kind) }.is_some()
    }

    unsafe fn entry(&self, command_buffer: vk::CommandBuffer) -> vk::CommandBuffer {
        command_buffer
    }

    fn set_command_buffers(&mut self, entries: &[vk::CommandBuffer]) {
        self.command_buffer_count = entries.len() as u32;
        self.p_command_buffers = entries.as_ptr();
    }
}

fn semaphore_use(info: &vk::SemaphoreSubmitInfo<'_>) -> SemaphoreUse {
    SemaphoreUse {
        semaphore: info.semaphore,
        value: info.value,
        stages: info.stage_mask.as_raw(),
    }
}

impl<'a> SubmitInfo for vk::SubmitInfo2<'a> {
    type Entry = vk::CommandBufferSubmitInfo<'a>;
    const ENTRIES_NAME_DEVICES: bool = true;

    unsafe fn command_buffers(&self) -> impl Iterator<Item = vk::CommandBuffer> + Clone {
        // SAFETY: as the caller promises.
        let list = unsafe { slice(self.p_command_buffer_infos, self.command_buffer_info_count) };
        list.iter().map(|entry| entry.command_buffer)
    }

    unsafe fn waits(&self) -> impl Iterator<Item = SemaphoreUse> {
        // SAFETY: as the caller promises.
        let waits = unsafe { slice(self.p_wait_semaphore_infos, self.wait_semaphore_info_count) };
        waits.iter().map(semaphore_use)
    }

    unsafe fn signals(&self) -> impl Iterator<Item = SemaphoreUse> {
        let (first, count) = (
            self.p_signal_semaphore_infos,
            self.signal_semaphore_info_count,
        );
        // SAFETY: as the caller promises.
        unsafe { slice(first, count) }.iter().map(semaphore_use)
    }

    unsafe fn is_protected(&self) -> bool {
        self.flags.contains(vk::SubmitFlags::PROTECTED)
    }

    unsafe fn is_for_group(&self) -> bool {
        // SAFETY: as the caller promises.
        let list = unsafe { slice(self.p_command_buffer_infos, self.command_buffer_info_count) };
        list.iter()
            .any(|entry| entry.device_mask != 0 || !entry.p_next.is_null())
    }

    unsafe fn entry(&self, command_buffer: vk::CommandBuffer) -> vk::CommandBufferSubmitInfo<'a> {
        // SAFETY: as the caller promises.
        let list = unsafe { slice(self.p_command_buffer_infos, self.command_buffer_info_count) };
        let own = list
            .iter()
            .find(|entry| entry.command_buffer == command_buffer);
        own.copied().unwrap_or_else(|| {
            vk::CommandBufferSubmitInfo::default().command_buffer(command_buffer)
        })
    }

    fn set_command_buffers(&mut self, entries: &[vk::CommandBufferSubmitInfo<'a>]) {
        self.command_buffer_info_count = entries.len() as u32;
        self.p_command_buffer_infos = entries.as_ptr();
    }
}
