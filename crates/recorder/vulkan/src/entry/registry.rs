//! Tests that no command is forgotten: every command of Vulkan's registry (the list of all its functions) that
//! acts, and every function of queues, has a hook or is listed here with the reason why not.

use crate::device::Device;
use crate::hooks::{opaque, timed_calls};
use gapscope_vulkan_layer::registry::NotHooked;
use gapscope_vulkan_layer::{entry, registry};

/// The functions without a hook, in pairs of reason and names: commands outside of render passes that act, and
/// functions of queues.
const NOT_HOOKED: &NotHooked = &[
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

#[test]
fn every_command_that_acts_is_hooked_or_listed_with_the_reason() {
    assert!(registry::commands().len() > 500);
    let tables = [opaque::FUNCTIONS, timed_calls::FUNCTIONS];
    registry::check_hooks::<Device>(NOT_HOOKED, &tables, true);
}

/// A scope that is started and never ended would hide all that follows.
#[test]
fn whatever_ends_a_scope_that_is_hooked_is_hooked() {
    let is_hooked = |name: &str| entry::hook::<Device>(name.as_bytes()).is_some();
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

/// A device of others is one that was not made through the layer. Both layers (this one, and the one that captures)
/// run this check.
#[test]
fn a_device_of_others_gets_the_same_answer_from_both_layers() {
    entry::check_unknown_device::<Device>();
}
