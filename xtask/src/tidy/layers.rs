//! Checks which crate depends on which: data flows in one direction, and hooks share only the trace with the
//! analyses. The table of crates in ARCHITECTURE.md and a crate go in, and sentences about its violations come out.

use super::workspace::Package;

/// Returns a sentence for each crate of the workspace that `package` uses outside its tests without being allowed to.
pub fn problems(architecture: &str, package: &Package) -> Vec<String> {
    let name = &package.name;
    let start = format!("| `{name}` | ");
    let row = architecture.lines().find(|line| line.starts_with(&start));
    let Some(allowed) = row.and_then(|row| row.trim_end_matches(" |").rsplit(" | ").next()) else {
        return vec![format!(
            "{name}: add it to the table of crates in ARCHITECTURE.md, with the crates it may use"
        )];
    };
    let is_allowed = |used: &str| {
        allowed
            .split(", ")
            .any(|name| format!("gapscope-{name}") == used || name == used)
    };
    let forbidden = package.uses.iter().filter(|used| !is_allowed(used));
    forbidden
        .map(|used| format!("{name} must not use {used}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHITECTURE: &str = include_str!("../../../ARCHITECTURE.md");

    #[test]
    fn uses_that_the_table_does_not_name_are_found() {
        let trace = ["gapscope-vulkan must not use gapscope-trace"];
        // The SQL engine of the query program would be most of the command.
        let query = ["gapscope must not use gapscope-query"];
        let unknown = [
            "gapscope-utils: add it to the table of crates in ARCHITECTURE.md, with the crates it may use",
        ];
        let cases: [(&str, [&str; 2], &[&str]); 5] = [
            (
                "gapscope-vulkan",
                ["gapscope-spool", "gapscope-trace"],
                &trace,
            ),
            ("gapscope", ["gapscope-report", "gapscope-recorder"], &[]),
            ("gapscope", ["gapscope-report", "gapscope-query"], &query),
            (
                "gapscope-export",
                ["gapscope-trace", "gapscope-timeline"],
                &[],
            ),
            ("gapscope-utils", ["", ""], &unknown),
        ];
        for (name, uses, expected) in cases {
            let package = Package {
                name: name.to_owned(),
                description: None,
                uses: uses.map(str::to_owned).to_vec(),
                roots: Vec::new(),
            };
            assert_eq!(problems(ARCHITECTURE, &package), expected);
        }
    }
}
