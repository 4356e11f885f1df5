//! Every command of the registry that acts is kept, refused, or listed here with the reason.

use super::hook;

/// See `registry/commands.tsv` of the layer that records.
const REGISTRY: &str = include_str!("../../../vulkan/registry/commands.tsv");

/// Commands outside of render passes that act and have no hook.
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

struct Command<'a> {
    names: Vec<&'a str>,
    acts: bool,
    render_pass: &'a str,
}

fn commands() -> impl Iterator<Item = Command<'static>> {
    let rows = REGISTRY.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        let [name, aliases, tasks, render_pass, _] = columns[..] else {
            panic!("five columns: {line}");
        };
        Command {
            names: std::iter::once(name)
                .chain(aliases.split_whitespace())
                .collect(),
            acts: !matches!(tasks, "state" | ""),
            render_pass,
        }
    })
}

fn is_hooked(name: &str) -> bool {
    hook(name.as_bytes()).is_some()
}

#[test]
fn every_command_that_acts_is_kept_refused_or_listed_with_the_reason() {
    let is_listed = |name: &str| NOT_HOOKED.iter().any(|(_, names)| names.contains(&name));
    let forgotten: Vec<_> = commands()
        .filter(|command| command.acts && command.render_pass != "inside")
        .filter(|command| !is_listed(command.names[0]))
        .filter(|command| !command.names.iter().all(|name| is_hooked(name)))
        .map(|command| command.names)
        .collect();
    assert!(
        forgotten.is_empty(),
        "add them to `hooks/refused.rs`, or to the list above: {forgotten:#?}"
    );
}

#[test]
fn what_is_listed_is_not_hooked_and_in_the_registry() {
    for name in NOT_HOOKED.iter().flat_map(|(_, names)| *names) {
        assert!(!is_hooked(name), "{name} is hooked");
        assert!(
            commands().any(|command| command.names[0] == *name),
            "{name}"
        );
    }
}

/// Hooks are found by names without KHR and EXT: none may be found by the name of something else.
#[test]
fn names_that_differ_by_their_suffix_alone_are_of_one_command() {
    for command in commands() {
        let hooked = command.names.iter().filter(|name| is_hooked(name)).count();
        assert!(
            hooked == 0 || hooked == command.names.len(),
            "{:?}",
            command.names
        );
    }
}
