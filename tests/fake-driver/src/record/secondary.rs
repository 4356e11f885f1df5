//! Records the execution of secondary command buffers.

use ash::vk;

use super::{ANYWHERE, record};
use crate::command::{Command, CommandBuffer, Recording, Secondary};
use crate::object::{self, Object};
use crate::{chain, misuse};

pub unsafe extern "system" fn execute_commands(
    buffer: vk::CommandBuffer,
    count: u32,
    secondaries: *const vk::CommandBuffer,
) {
    const CALL: &str = "vkCmdExecuteCommands";
    record(CALL, buffer, ANYWHERE, |buffer, recording| {
        if buffer.level != vk::CommandBufferLevel::PRIMARY {
            misuse::report(CALL, "the command buffer is a secondary one");
        }
        if recording.counting.is_some() {
            misuse::report(
                CALL,
                "a query is active, and the device has no inheritedQueries",
            );
        }
        for &secondary in chain::slice(secondaries, count) {
            let Some(secondary) = object::get::<CommandBuffer>(CALL, secondary) else {
                continue;
            };
            execute(CALL, recording, secondary);
        }
        // Bindings are undefined after the call.
        (recording.compute_pipeline, recording.graphics_pipeline) = (None, None);
    });
}

unsafe fn execute(
    call: &str,
    recording: &mut Recording,
    secondary: &'static Object<CommandBuffer>,
) {
    if secondary.level != vk::CommandBufferLevel::SECONDARY {
        misuse::report(call, "a primary command buffer cannot be executed");
        return;
    }
    let Recording {
        executable: Some(program),
        number,
        suspended,
        resumes,
        ..
    } = secondary.recording()
    else {
        misuse::report(call, "a secondary command buffer is not recorded");
        return;
    };
    if *resumes && !recording.suspended && !recording.program.commands.is_empty() {
        misuse::report(call, "resumes a rendering behind other commands");
    }
    recording.suspended = *suspended;
    recording
        .program
        .commands
        .push(Command::Execute(program.clone()));
    recording.program.secondaries.push(Secondary {
        buffer: secondary,
        recording: *number,
        program: program.clone(),
    });
}
