//! Cuts a submission of which a window (the captured part of the run) holds only some dispatches into three parts:
//! what runs before the window, in it, and after it.

use std::ops::Range;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::handles::lock;

use super::rerecord::{is_repeatable, record};
use super::staging::{Failure, Staging};
use super::submit_call::SubmitCall;
use crate::objects::command::Command;

/// A part of a command buffer.
pub struct BufferPart {
    /// The number of the batch (the command buffers of one `VkSubmitInfo`) in the call.
    pub batch: usize,
    /// The program's command buffer.
    pub of: vk::CommandBuffer,
    /// The indices of its commands that belong to the part.
    pub commands: Range<usize>,
    /// The command buffer to execute: the program's if that is not cut, else one of the layer, null until `record`.
    pub run: vk::CommandBuffer,
}

/// The parts of a submission, in their order.
#[derive(Default)]
pub struct SplitSubmission {
    pub before: Vec<BufferPart>,
    pub inside: Vec<BufferPart>,
    pub after: Vec<BufferPart>,
}

/// The places of the window's first dispatch, and of the command after its last.
struct Cuts {
    /// The numbers of the command buffer, and of the command in it.
    start: (usize, usize),
    end: (usize, usize),
}

impl SplitSubmission {
    /// Cuts a call around the given dispatches; `None` if all dispatches of the call are captured, or the call
    /// cannot be cut.
    pub fn cut(
        call: &SubmitCall<'_>,
        dispatches: &Range<u64>,
        count: u64,
    ) -> Option<SplitSubmission> {
        if *dispatches == (0..count) || !call.can_have_others {
            return None;
        }
        let lists = call.lists();
        let buffers: Vec<(usize, vk::CommandBuffer)> = (lists.iter().enumerate())
            .flat_map(|(batch, list)| list.iter().map(move |buffer| (batch, *buffer)))
            .collect();
        let cuts = cuts(call, &buffers, dispatches, count)?;
        let mut split = SplitSubmission::default();
        for (index, (batch, buffer)) in buffers.iter().enumerate() {
            let state = call.device.objects.command_buffers.get(buffer.as_raw())?;
            let all = lock(&state).commands.len();
            let at = |cut: (usize, usize)| match index.cmp(&cut.0) {
                std::cmp::Ordering::Less => all,
                std::cmp::Ordering::Equal => cut.1.min(all),
                std::cmp::Ordering::Greater => 0,
            };
            let (start, end) = (at(cuts.start), at(cuts.end));
            let parts = [
                (&mut split.before, 0..start),
                (&mut split.inside, start..end),
                (&mut split.after, end..all),
            ];
            let is_cut = parts.iter().filter(|(_, part)| !part.is_empty()).count() > 1;
            if is_cut && !is_repeatable(call.device, *buffer) {
                return None;
            }
            for (list, commands) in parts {
                if !commands.is_empty() {
                    let run = match is_cut {
                        true => vk::CommandBuffer::null(),
                        false => *buffer,
                    };
                    list.push(BufferPart {
                        batch: *batch,
                        of: *buffer,
                        commands,
                        run,
                    });
                }
            }
        }
        Some(split)
    }

    /// Records the parts of command buffers that are cut.
    ///
    /// # Safety
    /// The call is the program's own and has not been passed on.
    pub unsafe fn record(
        &mut self,
        call: &SubmitCall<'_>,
        family: u32,
        staging: &mut Staging,
    ) -> Result<(), Failure> {
        let parts = self
            .before
            .iter_mut()
            .chain(&mut self.inside)
            .chain(&mut self.after);
        for part in parts.filter(|part| part.run == vk::CommandBuffer::null()) {
            let ours = staging.command_buffer(family)?;
            // SAFETY: as the caller promises; ours is new.
            unsafe { record(call.device, part.of, part.commands.clone(), ours)? };
            part.run = ours;
        }
        Ok(())
    }
}

/// Returns the command buffers of parts, for each of so many batches.
pub fn lists<'a>(
    parts: impl IntoIterator<Item = &'a BufferPart>,
    batches: usize,
) -> Vec<Vec<vk::CommandBuffer>> {
    let mut lists = vec![Vec::new(); batches];
    for part in parts {
        lists[part.batch].push(part.run);
    }
    lists
}

/// Finds where the window begins and ends in the command buffers of a call; `None` if one executes others.
fn cuts(
    call: &SubmitCall<'_>,
    buffers: &[(usize, vk::CommandBuffer)],
    dispatches: &Range<u64>,
    count: u64,
) -> Option<Cuts> {
    let mut cuts = Cuts {
        start: (0, 0),
        end: (buffers.len(), 0),
    };
    let mut number = 0;
    for (index, (_, buffer)) in buffers.iter().enumerate() {
        let state = call.device.objects.command_buffers.get(buffer.as_raw())?;
        let recorded = lock(&state);
        for (at, command) in recorded.commands.iter().enumerate() {
            if let Command::Secondary(_) = command {
                // The dispatches of a secondary command buffer are counted, and cannot be cut here.
                return None;
            }
            if !command.is_dispatch() {
                continue;
            }
            if number == dispatches.start && number > 0 {
                cuts.start = (index, at);
            }
            number += 1;
            if number == dispatches.end && number < count {
                cuts.end = (index, at + 1);
            }
        }
    }
    Some(cuts)
}
