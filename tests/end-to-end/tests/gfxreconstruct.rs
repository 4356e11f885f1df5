//! Counts what a program submits with GFXReconstruct, a capture layer by LunarG, as an independent witness.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::recording::{Program, Run};

/// The counts of submitted work. A command buffer that is submitted twice counts twice.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub dispatches: u64,
    pub command_buffers: u64,
}

/// Returns the program with the variables that make GFXReconstruct capture it to `file`.
pub fn captured(program: Program, file: &Path) -> Program {
    program
        .variable("VK_INSTANCE_LAYERS", "VK_LAYER_LUNARG_gfxreconstruct")
        .variable("GFXRECON_CAPTURE_FILE", file)
        .variable("GFXRECON_CAPTURE_FILE_TIMESTAMP", "false")
        .variable("GFXRECON_LOG_LEVEL", "error")
        // By default, it catches writes to mapped memory by page faults, and a fault in the recorder's own writes
        // is fatal.
        .variable("GFXRECON_MEMORY_TRACKING_MODE", "unassisted")
}

/// Counts the work in a capture.
pub fn counts(file: &Path) -> Counts {
    let run = Run::from_command(
        Command::new("gfxrecon-convert")
            .args(["--output", "stdout"])
            .arg(file),
    )
    .ok();
    let mut recorded: HashMap<String, u64> = HashMap::new();
    let mut counts = Counts::default();
    for line in run.stdout.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let call = &line["vkFunc"];
        let arguments = &call["args"];
        match call["name"].as_str().unwrap_or_default() {
            "vkBeginCommandBuffer" => {
                recorded.insert(arguments["commandBuffer"].to_string(), 0);
            }
            "vkCmdDispatch" | "vkCmdDispatchBase" | "vkCmdDispatchIndirect" => {
                *recorded
                    .entry(arguments["commandBuffer"].to_string())
                    .or_default() += 1;
            }
            "vkQueueSubmit" => {
                for buffer in command_buffers(arguments, "pCommandBuffers", |buffer| buffer) {
                    counts.command_buffers += 1;
                    counts.dispatches += recorded.get(&buffer).copied().unwrap_or_default();
                }
            }
            "vkQueueSubmit2" | "vkQueueSubmit2KHR" => {
                for buffer in command_buffers(
                    arguments,
                    "pCommandBufferInfos",
                    |info| &info["commandBuffer"],
                ) {
                    counts.command_buffers += 1;
                    counts.dispatches += recorded.get(&buffer).copied().unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    counts
}

fn command_buffers(arguments: &Value, list: &str, handle: fn(&Value) -> &Value) -> Vec<String> {
    let submits = arguments["pSubmits"].as_array().into_iter().flatten();
    let buffers = submits.flat_map(|submit| submit[list].as_array().into_iter().flatten());
    buffers.map(|buffer| handle(buffer).to_string()).collect()
}
