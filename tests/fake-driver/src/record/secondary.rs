//! Records the execution of secondary command buffers.

use ash::vk;

use super::{ANYWHERE, Recorder, record};
use crate::command::{Command, CommandBuffer, Recording, Secondary};
use crate::object::Object;
use crate::{chain, misuse};

pub unsafe extern "system" fn execute_commands(
    buffer: vk::CommandBuffer,
    count: u32,
    secondaries: *const vk::CommandBuffer,
) {
    record("vkCmdExecuteCommands", buffer, ANYWHERE, |recorder| {
        if recorder.buffer.level != vk::CommandBufferLevel::PRIMARY {
            recorder.report("the command buffer is a secondary one");
        }
        if recorder.recording.counting.is_some() {
            recorder.report("a query is active, and the device has no inheritedQueries");
        }
        for &secondary in chain::slice(secondaries, count) {
            if let Some(secondary) = recorder.get::<CommandBuffer>(secondary) {
                recorder.execute(secondary);
            }
        }
        // Bindings are undefined after the call.
        recorder.recording.compute_pipeline = None;
        recorder.recording.graphics_pipeline = None;
    });
}

impl Recorder<'_> {
    unsafe fn execute(&mut self, secondary: &'static Object<CommandBuffer>) {
        if secondary.level != vk::CommandBufferLevel::SECONDARY {
            return self.report("a primary command buffer cannot be executed");
        }
        let Recording {
            executable: Some(program),
            number,
            suspended,
            resumes,
            ..
        } = secondary.recording()
        else {
            return self.report("a secondary command buffer is not recorded");
        };
        let recording = &mut *self.recording;
        if *resumes && !recording.suspended && !recording.program.commands.is_empty() {
            misuse::report(self.call, "resumes a rendering behind other commands");
        }
        recording.suspended = *suspended;
        recording.program.secondaries.push(Secondary {
            buffer: secondary,
            recording: *number,
            program: program.clone(),
        });
        self.push(Command::Execute(program.clone()));
    }
}
