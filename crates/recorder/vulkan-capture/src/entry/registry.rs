//! Tests that no command is forgotten: every command of Vulkan's registry (the list of all its functions) that acts
//! is kept, refused, or listed here with the reason.

use gapscope_vulkan_layer::{entry, registry};

use crate::api::device::Device;
use crate::hooks::refused;

/// Commands outside of render passes that act and have no hook, in pairs of reason and names.
const NOT_HOOKED: &[(&str, &[&str])] = &[
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

fn is_hooked(name: &str) -> bool {
    entry::hook::<Device>(name.as_bytes()).is_some()
}

#[test]
fn every_command_that_acts_is_kept_refused_or_listed_with_the_reason() {
    let forgotten = registry::forgotten(NOT_HOOKED, is_hooked, false);
    assert!(
        forgotten.is_empty(),
        "add them to `opaque_commands.rs` of gapscope-vulkan-layer or to `hooks/refused.rs`, or to the list above: {forgotten:#?}"
    );
}

#[test]
fn what_is_listed_is_not_hooked_and_in_the_registry() {
    registry::check_not_hooked(NOT_HOOKED, is_hooked);
}

#[test]
fn a_command_is_hooked_by_all_its_names_or_by_none() {
    registry::check_names(is_hooked);
}

#[test]
fn parameters_have_the_types_of_the_registry() {
    registry::check_table(refused::FUNCTIONS);
}

#[test]
fn a_device_of_others_gets_the_same_answer_from_both_layers() {
    entry::check_unknown_device::<Device>();
}
