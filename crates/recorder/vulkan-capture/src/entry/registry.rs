//! Tests that no command is forgotten: every command of Vulkan's registry (the list of all its functions) that acts
//! is kept, refused, or listed here with the reason.

use gapscope_vulkan_layer::registry::NotHooked;
use gapscope_vulkan_layer::{entry, registry};

use crate::api::device::Device;
use crate::hooks::refused;

/// Commands outside of render passes that act and have no hook, in pairs of reason and names.
const NOT_HOOKED: &NotHooked = &[
    (
        "inside of a scope whose begin is refused, or its end",
        &[
            "vkCmdControlVideoCodingKHR",
            "vkCmdDecodeVideoKHR",
            "vkCmdEncodeVideoKHR",
            "vkCmdEndConditionalRenderingEXT",
            "vkCmdEndGpaSampleAMD",
            "vkCmdEndGpaSessionAMD",
            "vkCmdEndRenderPass",
            "vkCmdEndRenderPass2",
            "vkCmdEndRendering",
            "vkCmdEndRendering2KHR",
            "vkCmdEndVideoCodingKHR",
        ],
    ),
    (
        "queries that no capture needs",
        &["vkCmdBeginQueryIndexedEXT", "vkCmdEndQueryIndexedEXT"],
    ),
    (
        "a word for a debugger or a profiler, which the program cannot read from a buffer",
        &[
            "vkCmdBeginShaderInstrumentationARM",
            "vkCmdEndShaderInstrumentationARM",
            "vkCmdSetCheckpointNV",
            "vkCmdSetPerformanceMarkerINTEL",
            "vkCmdSetPerformanceStreamMarkerINTEL",
        ],
    ),
];

#[test]
fn every_command_that_acts_is_kept_refused_or_listed_with_the_reason() {
    registry::check_hooks::<Device>(NOT_HOOKED, &[refused::FUNCTIONS], false);
}

#[test]
fn a_device_of_others_gets_the_same_answer_from_both_layers() {
    entry::check_unknown_device::<Device>();
}
