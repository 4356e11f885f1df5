//! Tests that no command is forgotten: every command of Vulkan's registry (the list of all its functions) that
//! acts, and every function of queues, has a hook or is listed here with the reason why not.

use crate::device::Device;
use crate::hooks::{opaque, timed_calls};
use gapscope_vulkan_layer::{entry, registry};

/// The functions without a hook, in pairs of reason and names: commands outside of render passes that act, and
/// functions of queues.
const NOT_HOOKED: &[(&str, &[&str])] = &[
    (
        "part of the video coding scope, which is timed as a whole",
        &[
            "vkCmdControlVideoCodingKHR",
            "vkCmdDecodeVideoKHR",
            "vkCmdEncodeVideoKHR",
        ],
    ),
    (
        "resets, starts or ends queries, or writes a timestamp: a word each",
        &[
            "vkCmdBeginQuery",
            "vkCmdBeginQueryIndexedEXT",
            "vkCmdEndQuery",
            "vkCmdEndQueryIndexedEXT",
            "vkCmdResetQueryPool",
            "vkCmdWriteTimestamp",
            "vkCmdWriteTimestamp2",
        ],
    ),
    (
        "writes a word for a debugger or a profiler",
        &[
            "vkCmdBeginGpaSampleAMD",
            "vkCmdBeginGpaSessionAMD",
            "vkCmdBeginShaderInstrumentationARM",
            "vkCmdCopyGpaSessionResultsAMD",
            "vkCmdEndGpaSampleAMD",
            "vkCmdEndGpaSessionAMD",
            "vkCmdEndShaderInstrumentationARM",
            "vkCmdSetCheckpointNV",
            "vkCmdSetPerformanceMarkerINTEL",
            "vkCmdSetPerformanceStreamMarkerINTEL",
            "vkCmdWriteBufferMarker2AMD",
            "vkCmdWriteBufferMarkerAMD",
            "vkCmdWriteMarkerToMemoryAMD",
        ],
    ),
    (
        "decides whether what follows runs, and does nothing itself",
        &[
            "vkCmdBeginConditionalRendering2EXT",
            "vkCmdBeginConditionalRenderingEXT",
            "vkCmdEndConditionalRenderingEXT",
        ],
    ),
    (
        "gives the driver a hint, or an image to the window system of a phone",
        &[
            "vkQueueNotifyOutOfBandLegacyNV",
            "vkQueueNotifyOutOfBandNV",
            "vkQueueSetPerfHintQCOM",
            "vkQueueSetPerformanceConfigurationINTEL",
            "vkQueueSignalReleaseImageANDROID",
            "vkQueueSignalReleaseImageOHOS",
        ],
    ),
    (
        "makes nothing wait: the wait for the event is recorded as the barrier",
        &[
            "vkCmdResetEvent",
            "vkCmdResetEvent2",
            "vkCmdSetEvent",
            "vkCmdSetEvent2",
        ],
    ),
];

fn is_hooked(name: &str) -> bool {
    entry::hook::<Device>(name.as_bytes()).is_some()
}

#[test]
fn every_command_that_acts_is_hooked_or_listed_with_the_reason() {
    assert!(registry::commands().len() > 500);
    let forgotten = registry::forgotten(NOT_HOOKED, is_hooked, true);
    assert!(
        forgotten.is_empty(),
        "add them to `opaque_commands.rs` of gapscope-vulkan-layer, or to the list above with the reason: {forgotten:#?}"
    );
}

#[test]
fn what_is_listed_as_not_hooked_is_a_command_without_a_hook() {
    registry::check_not_hooked(NOT_HOOKED, is_hooked);
}

#[test]
fn a_command_is_hooked_by_all_its_names_or_by_none() {
    registry::check_names(is_hooked);
}

#[test]
fn parameters_have_the_types_of_the_registry() {
    registry::check_table(opaque::FUNCTIONS);
    registry::check_table(timed_calls::FUNCTIONS);
}

/// A scope that is started and never ended would hide all that follows.
#[test]
fn whatever_ends_a_scope_that_is_hooked_is_hooked() {
    let starts = |name: &str| name.starts_with("vkCmdBegin") && is_hooked(name);
    for command in registry::commands()
        .iter()
        .filter(|command| starts(command.name))
    {
        let end = command.name.replacen("Begin", "End", 1);
        for other in registry::commands() {
            let version = other.name.strip_prefix(end.trim_end_matches("KHR"));
            if version
                .is_some_and(|rest| rest.trim_start_matches('2').chars().all(char::is_uppercase))
            {
                assert!(is_hooked(other.name), "{}", other.name);
            }
        }
    }
}

#[test]
fn a_device_of_others_gets_the_same_answer_from_both_layers() {
    entry::check_unknown_device::<Device>();
}
