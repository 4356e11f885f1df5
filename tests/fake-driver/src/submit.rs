//! Implements `vkQueueSubmit` and `vkQueueSubmit2`, and checks what is submitted.

use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use ash::vk;

use crate::clock::monotonic_ns;
use crate::command::{CommandBuffer, Program};
use crate::config::config;
use crate::object::{self, Object};
use crate::queue::{Queue, SemaphoreOperation, Submission};
use crate::sync::{Fence, Semaphore};
use crate::{chain, misuse};

pub unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    const CALL: &str = "vkQueueSubmit";
    let submitted_ns = monotonic_ns();
    let Some(queue) = object::get::<Queue>(CALL, queue) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let _entered = queue.sync.enter(CALL, "queue");
    let batches = chain::slice(infos, count).iter().map(|info| {
        let values = chain::find::<vk::TimelineSemaphoreSubmitInfo<'_>>(info.p_next)
            .copied()
            .unwrap_or_default();
        let waits = chain::slice(info.p_wait_semaphores, info.wait_semaphore_count);
        let wait_values = chain::slice(
            values.p_wait_semaphore_values,
            values.wait_semaphore_value_count,
        );
        let signals = chain::slice(info.p_signal_semaphores, info.signal_semaphore_count);
        let signal_values = chain::slice(
            values.p_signal_semaphore_values,
            values.signal_semaphore_value_count,
        );
        let buffers = chain::slice(info.p_command_buffers, info.command_buffer_count);
        let protected = chain::find::<vk::ProtectedSubmitInfo<'_>>(info.p_next)
            .is_some_and(|info| info.protected_submit != 0);
        check_protection(CALL, protected, buffers);
        Submission {
            call: CALL,
            submitted_ns,
            waits: operations(CALL, pairs(waits, wait_values), wait_operation),
            command_buffers: command_buffers(CALL, queue, buffers.iter().copied()),
            signals: operations(CALL, pairs(signals, signal_values), signal_operation),
            fence: None,
        }
    });
    enqueue(CALL, queue, batches, fence, submitted_ns)
}

/// Pairs semaphores with values, of which there may be fewer where the rest are binary.
fn pairs<'a>(
    semaphores: &'a [vk::Semaphore],
    values: &'a [u64],
) -> impl Iterator<Item = (vk::Semaphore, u64)> + 'a {
    semaphores
        .iter()
        .copied()
        .zip(values.iter().copied().chain(std::iter::repeat(0)))
}

pub unsafe extern "system" fn submit2(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    const CALL: &str = "vkQueueSubmit2";
    let submitted_ns = monotonic_ns();
    let Some(queue) = object::get::<Queue>(CALL, queue) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    queue.device.requires(
        CALL,
        "synchronization2",
        queue.device.enabled.synchronization2,
    );
    let _entered = queue.sync.enter(CALL, "queue");
    let batches = chain::slice(infos, count).iter().map(|info| {
        let waits = chain::slice(info.p_wait_semaphore_infos, info.wait_semaphore_info_count);
        let signals = chain::slice(
            info.p_signal_semaphore_infos,
            info.signal_semaphore_info_count,
        );
        let buffers = chain::slice(info.p_command_buffer_infos, info.command_buffer_info_count);
        let pair = |info: &vk::SemaphoreSubmitInfo<'_>| (info.semaphore, info.value);
        Submission {
            call: CALL,
            submitted_ns,
            waits: operations(CALL, waits.iter().map(pair), wait_operation),
            command_buffers: command_buffers(
                CALL,
                queue,
                buffers.iter().map(|info| info.command_buffer),
            ),
            signals: operations(CALL, signals.iter().map(pair), signal_operation),
            fence: None,
        }
    });
    enqueue(CALL, queue, batches, fence, submitted_ns)
}

fn enqueue(
    call: &'static str,
    queue: &Object<Queue>,
    batches: impl Iterator<Item = Submission>,
    fence: vk::Fence,
    submitted_ns: u64,
) -> vk::Result {
    if queue.device.is_lost() {
        return vk::Result::ERROR_DEVICE_LOST;
    }
    let mut submissions: Vec<_> = batches.collect();
    if fence != vk::Fence::null() {
        if submissions.is_empty() {
            submissions.push(Submission {
                call,
                submitted_ns,
                ..Submission::default()
            });
        }
        if let (Some(last), Some(fence)) =
            (submissions.last_mut(), object::get::<Fence>(call, fence))
        {
            if fence.signalled.load(Acquire) || fence.submitted.swap(true, AcqRel) {
                misuse::report(
                    call,
                    "the fence is signalled or a submission will signal it",
                );
            }
            last.fence = Some(fence);
        }
    }
    for submission in submissions {
        queue.push(submission);
    }
    vk::Result::SUCCESS
}

fn operations(
    call: &str,
    pairs: impl Iterator<Item = (vk::Semaphore, u64)>,
    check: fn(&str, &Semaphore),
) -> Vec<SemaphoreOperation> {
    let operations = pairs.filter_map(|(semaphore, value)| {
        let semaphore = object::get::<Semaphore>(call, semaphore)?;
        check(call, semaphore);
        Some(SemaphoreOperation { semaphore, value })
    });
    operations.collect()
}

fn wait_operation(call: &str, semaphore: &Semaphore) {
    if !semaphore.timeline && !semaphore.promised.swap(false, AcqRel) {
        misuse::report(
            call,
            "nothing signals the binary semaphore that is waited for",
        );
    }
}

fn signal_operation(call: &str, semaphore: &Semaphore) {
    if !semaphore.timeline && semaphore.promised.swap(true, AcqRel) {
        misuse::report(call, "the binary semaphore is already signalled");
    }
}

/// Checks that all command buffers of a protected submission are protected, and none of another.
fn check_protection(call: &str, protected: bool, buffers: &[vk::CommandBuffer]) {
    for buffer in buffers {
        let buffer = object::get::<CommandBuffer>(call, *buffer);
        if buffer.is_some_and(|buffer| buffer.pool.is_protected() != protected) {
            misuse::report(call, "protected and other command buffers are mixed");
        }
    }
}

fn command_buffers(
    call: &str,
    queue: &Queue,
    handles: impl Iterator<Item = vk::CommandBuffer>,
) -> Vec<(&'static Object<CommandBuffer>, Arc<Program>)> {
    let buffers = handles.filter_map(|handle| {
        let buffer = object::get::<CommandBuffer>(call, handle)?;
        // SAFETY: nobody may record into a buffer that is being submitted.
        let recording = unsafe { buffer.recording() };
        let Some(program) = recording.executable.clone() else {
            misuse::report(
                call,
                format_args!("a command buffer is in the state {:?}", recording.state),
            );
            return None;
        };
        if config().null {
            return Some((buffer, program));
        }
        let runnable = check_command_buffer(call, queue, buffer, recording.usage)
            & check_program(call, &program);
        if !runnable {
            return None;
        }
        buffer.header.begin_use();
        program.begin_use();
        Some((buffer, program))
    });
    buffers.collect()
}

/// Checks a command buffer; returns whether it can run, which it can under most misuse.
fn check_command_buffer(
    call: &str,
    queue: &Queue,
    buffer: &Object<CommandBuffer>,
    usage: vk::CommandBufferUsageFlags,
) -> bool {
    if buffer.level != vk::CommandBufferLevel::PRIMARY {
        misuse::report(call, "a secondary command buffer is submitted");
    }
    if !buffer.header.has_loader_data() {
        misuse::report(
            call,
            "a command buffer has no dispatch table: its layer did not set the loader's data",
        );
    }
    if buffer.pool.family != queue.family {
        let (own, other) = (buffer.pool.family, queue.family);
        misuse::report(
            call,
            format_args!("a command buffer of queue family {own} on family {other}"),
        );
        return buffer.pool.queue_flags == queue.flags;
    }
    if buffer.header.is_pending() && !usage.contains(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
    {
        misuse::report(
            call,
            "a command buffer is not complete and not for simultaneous use",
        );
    }
    let one_time = usage.contains(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
    if buffer.submitted_once.swap(true, AcqRel) && one_time {
        misuse::report(
            call,
            "a command buffer for one submission is submitted again",
        );
    }
    true
}

/// Checks that all that a command recording uses still exists, without which it cannot run.
fn check_program(call: &str, program: &Program) -> bool {
    let mut runnable = true;
    for object in program
        .objects
        .iter()
        .filter(|object| object.is_destroyed())
    {
        let address = std::ptr::from_ref(*object);
        misuse::report(
            call,
            format_args!("a command buffer uses the destroyed object {address:p}"),
        );
        runnable = false;
    }
    for secondary in &program.secondaries {
        // SAFETY: nobody may record into a buffer whose primary is being submitted.
        let recording = unsafe { secondary.buffer.recording() };
        if secondary.buffer.header.is_destroyed() || recording.number != secondary.recording {
            misuse::report(
                call,
                "a secondary command buffer was recorded again or freed",
            );
            runnable = false;
        }
        let simultaneous = recording
            .usage
            .contains(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        if secondary.buffer.header.is_pending() && !simultaneous {
            misuse::report(
                call,
                "a secondary command buffer is not complete and not for simultaneous use",
            );
        }
        runnable &= check_program(call, &secondary.program);
    }
    runnable
}
