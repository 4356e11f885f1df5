//! Every command of the registry that acts is hooked, or listed here with the reason; so is each function of queues.

use super::hook;
use crate::hooks::{timed_calls, work};

/// See `registry/commands.tsv`.
const REGISTRY: &str = include_str!("../../registry/commands.tsv");

/// Commands outside of render passes that act and functions of queues, which have no hook.
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

struct Command<'a> {
    name: &'a str,
    names: Vec<&'a str>,
    acts: bool,
    render_pass: &'a str,
    parameters: Vec<&'a str>,
}

fn commands() -> Vec<Command<'static>> {
    let rows = REGISTRY.lines().filter(|line| !line.starts_with('#'));
    let commands = rows.map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        let [name, aliases, tasks, render_pass, parameters] = columns[..] else {
            panic!("five columns: {line}");
        };
        Command {
            name,
            names: std::iter::once(name)
                .chain(aliases.split_whitespace())
                .collect(),
            acts: !matches!(tasks, "state" | ""),
            render_pass,
            parameters: parameters.split_whitespace().collect(),
        }
    });
    commands.collect()
}

fn is_hooked(name: &str) -> bool {
    hook(name.as_bytes()).is_some()
}

fn is_listed(name: &str) -> bool {
    NOT_HOOKED.iter().any(|(_, names)| names.contains(&name))
}

#[test]
fn every_command_that_acts_is_hooked_or_listed_with_the_reason() {
    let commands = commands();
    assert!(commands.len() > 500, "{}", commands.len());
    let forgotten: Vec<_> = commands
        .iter()
        // What is inside a render pass is part of it.
        .filter(|command| command.acts || command.name.starts_with("vkQueue"))
        .filter(|command| command.render_pass != "inside")
        .filter(|command| !is_hooked(command.name) && !is_listed(command.name))
        .map(|command| format!("{} ({})", command.name, command.parameters.join(", ")))
        .collect();
    assert!(
        forgotten.is_empty(),
        "add them to `api/work.rs`, or to the list above with the reason: {forgotten:#?}"
    );
}

#[test]
fn what_is_listed_as_not_hooked_is_a_command_without_a_hook() {
    let commands = commands();
    for name in NOT_HOOKED.iter().flat_map(|(_, names)| *names) {
        assert!(!is_hooked(name), "{name} is hooked");
        assert!(
            commands.iter().any(|command| command.name == *name),
            "{name} is not in the registry"
        );
    }
}

#[test]
fn a_command_is_hooked_by_all_its_names_or_by_none() {
    for command in commands() {
        let hooked = command.names.iter().filter(|name| is_hooked(name)).count();
        assert!(
            hooked == 0 || hooked == command.names.len(),
            "{:?}",
            command.names
        );
    }
}

#[test]
fn parameters_have_the_types_of_the_registry() {
    let commands = commands();
    for (names, parameters) in work::FUNCTIONS.iter().chain(timed_calls::FUNCTIONS) {
        let known = commands
            .iter()
            .find(|command| command.names.contains(&names[0]))
            .unwrap_or_else(|| panic!("{names:?} is not in the registry"));
        assert_eq!(known.parameters, *parameters, "{names:?}");
        for name in *names {
            assert!(
                known.names.contains(name),
                "{name} is no name of {}",
                known.name
            );
        }
    }
}

/// A scope that is started and never ended would hide all that follows.
#[test]
fn whatever_ends_a_scope_that_is_hooked_is_hooked() {
    let starts = |name: &str| name.starts_with("vkCmdBegin") && is_hooked(name);
    for command in commands().iter().filter(|command| starts(command.name)) {
        let end = command.name.replacen("Begin", "End", 1);
        for other in commands() {
            let version = other.name.strip_prefix(end.trim_end_matches("KHR"));
            if version
                .is_some_and(|rest| rest.trim_start_matches('2').chars().all(char::is_uppercase))
            {
                assert!(is_hooked(other.name), "{}", other.name);
            }
        }
    }
}
