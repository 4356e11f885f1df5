//! Reads the list of all commands of Vulkan from `registry/commands.tsv` (made from Vulkan's registry, the list of
//! all its functions), and compares the hooks of a layer with it in the layer's tests.

use crate::entry;
use crate::layer::Hooks;

/// The text of the list, which `UPDATE=1 cargo test -p end-to-end registry` writes.
const COMMANDS: &str = include_str!("../registry/commands.tsv");

/// A command of the registry.
pub struct Command {
    pub name: &'static str,
    /// All names, the first one included.
    pub names: Vec<&'static str>,
    /// Whether the command does more than set up what follows.
    pub acts: bool,
    /// Whether the command may be inside of render passes, outside or both, as the registry says.
    pub render_pass: &'static str,
    /// The types of the parameters after the first, as in the tables of functions.
    pub parameters: Vec<&'static str>,
}

/// Returns all commands of the registry.
///
/// # Panics
/// Panics if a row of the list does not have five columns.
pub fn commands() -> Vec<Command> {
    let rows = COMMANDS.lines().filter(|line| !line.starts_with('#'));
    let command = |line: &'static str| {
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
    };
    rows.map(command).collect()
}

/// Commands without a hook, in pairs of reason and names.
pub type NotHooked = [(&'static str, &'static [&'static str])];

/// The functions of a table, in pairs of names and types of the parameters after the first.
pub type FunctionTable = [(&'static [&'static str], &'static [&'static str])];

/// Checks the hooks of a layer:
///
/// - each command outside of render passes that acts, and if `with_queues` each function of queues, is hooked, or
///   listed in `not_hooked` and in the registry;
/// - each command has hooks under all its names or under none;
/// - the tables of functions have the parameters of the registry, and only names of one command in each row.
///
/// # Panics
/// Panics if a check fails.
pub fn check_hooks<L: Hooks>(
    not_hooked: &NotHooked,
    tables: &[&'static FunctionTable],
    with_queues: bool,
) {
    let commands = commands();
    let is_hooked = |name: &str| entry::hook::<L>(name.as_bytes()).is_some();
    let listed: Vec<&str> = (not_hooked.iter())
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    for name in &listed {
        assert!(!is_hooked(name), "{name} is listed as not hooked");
        assert!(
            commands.iter().any(|command| command.name == *name),
            "{name} is not in the registry"
        );
    }
    let mut forgotten = Vec::new();
    for command in &commands {
        let hooked = command.names.iter().filter(|name| is_hooked(name)).count();
        assert!(
            hooked == 0 || hooked == command.names.len(),
            "{:?} are not all hooked",
            command.names
        );
        // A command inside a render pass is part of it.
        let matters = command.render_pass != "inside"
            && (command.acts || with_queues && command.name.starts_with("vkQueue"));
        if matters && hooked == 0 && !listed.contains(&command.name) {
            forgotten.push((command.name, &command.parameters));
        }
    }
    assert!(
        forgotten.is_empty(),
        "these have no hook: add them to `opaque_commands.rs` of gapscope-vulkan-layer or a table of the layer, or to \
         the list of commands without a hook, with the reason: {forgotten:#?}"
    );
    for (names, parameters) in tables.iter().copied().flatten() {
        let command = (commands.iter())
            .find(|command| command.names.contains(&names[0]))
            .unwrap_or_else(|| panic!("{names:?} is not in the registry"));
        assert_eq!(command.parameters, *parameters, "{names:?}");
        for name in *names {
            assert!(
                command.names.contains(name),
                "{name} is no name of {}",
                command.name
            );
        }
    }
}
