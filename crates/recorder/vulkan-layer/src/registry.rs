//! Reads the list of all commands of Vulkan from `registry/commands.tsv`, with which the tests of both layers
//! compare their hooks.

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

/// Checks that each command has hooks under all its names or under none.
///
/// # Panics
/// Panics if a command has hooks under some of its names.
pub fn check_names(is_hooked: impl Fn(&str) -> bool) {
    for command in commands() {
        let hooked = command.names.iter().filter(|name| is_hooked(name)).count();
        assert!(
            hooked == 0 || hooked == command.names.len(),
            "{:?}",
            command.names
        );
    }
}

/// Checks that a table of functions has the parameters of the registry, and only names of one command in each row.
///
/// # Panics
/// Panics if the table differs.
pub fn check_table(table: &[(&[&str], &[&str])]) {
    let commands = commands();
    for (names, parameters) in table {
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

/// Checks that no command that is listed as not hooked has a hook, and that the registry has each listed command.
///
/// # Panics
/// Panics if one has a hook, or is not in the registry.
pub fn check_not_hooked(listed: &[(&str, &[&str])], is_hooked: impl Fn(&str) -> bool) {
    let commands = commands();
    for name in listed.iter().flat_map(|(_, names)| *names) {
        assert!(!is_hooked(name), "{name} is hooked");
        assert!(
            commands.iter().any(|command| command.name == *name),
            "{name} is not in the registry"
        );
    }
}

/// Returns the names and parameters of the commands outside of render passes that act, or belong to queues if
/// `with_queues`, and are neither hooked nor listed.
pub fn forgotten(
    listed: &[(&str, &[&str])],
    is_hooked: impl Fn(&str) -> bool,
    with_queues: bool,
) -> Vec<String> {
    let is_listed = |name: &str| listed.iter().any(|(_, names)| names.contains(&name));
    commands()
        .iter()
        .filter(|command| command.acts || with_queues && command.name.starts_with("vkQueue"))
        // A command inside a render pass is part of it.
        .filter(|command| command.render_pass != "inside")
        .filter(|command| !is_listed(command.name))
        .filter(|command| !command.names.iter().all(|name| is_hooked(name)))
        .map(|command| format!("{} ({})", command.name, command.parameters.join(", ")))
        .collect()
}
