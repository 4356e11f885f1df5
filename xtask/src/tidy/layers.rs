//! Checks which crate depends on which: data flows in one direction, and hooks share only the trace with the
//! analyses.

use super::workspace::Package;

/// Each crate of the workspace, with the crates of the workspace that it may use outside its tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("gapscope-model", &[]),
    ("gapscope-trace", &["gapscope-model"]),
    (
        "gapscope-timeline-builder",
        &["gapscope-model", "gapscope-trace"],
    ),
    ("gapscope-spirv", &[]),
    ("gapscope-capture", &["gapscope-spirv"]),
    (
        "gapscope-dependencies",
        &["gapscope-capture", "gapscope-spirv"],
    ),
    (
        "gapscope-replay",
        &[
            "gapscope-capture",
            "gapscope-model",
            "gapscope-spirv",
            "gapscope-timeline-builder",
            "gapscope-trace",
        ],
    ),
    (
        "gapscope-fusion",
        &[
            "gapscope-capture",
            "gapscope-dependencies",
            "gapscope-device-peaks",
            "gapscope-replay",
            "gapscope-spirv",
        ],
    ),
    (
        "gapscope-device-peaks",
        &["gapscope-model", "gapscope-replay", "gapscope-trace"],
    ),
    ("gapscope-spool", &["gapscope-model"]),
    ("gapscope-stacks", &["gapscope-model"]),
    ("gapscope-vulkan-layer", &[]),
    (
        "gapscope-vulkan",
        &["gapscope-spirv", "gapscope-spool", "gapscope-vulkan-layer"],
    ),
    (
        "gapscope-vulkan-capture",
        &[
            "gapscope-capture",
            "gapscope-spirv",
            "gapscope-spool",
            "gapscope-vulkan-layer",
        ],
    ),
    ("gapscope-cupti", &["gapscope-model"]),
    ("gapscope-cuda", &["gapscope-cupti", "gapscope-spool"]),
    ("gapscope-metal", &["gapscope-import", "gapscope-trace"]),
    (
        "gapscope-recorder",
        &[
            "gapscope-cupti",
            "gapscope-model",
            "gapscope-spool",
            "gapscope-stacks",
            "gapscope-timeline-builder",
            "gapscope-trace",
        ],
    ),
    ("gapscope-timeline", &["gapscope-trace"]),
    (
        "gapscope-analysis",
        &["gapscope-timeline", "gapscope-trace"],
    ),
    (
        "gapscope-comparison",
        &["gapscope-analysis", "gapscope-timeline", "gapscope-trace"],
    ),
    (
        "gapscope-report",
        &[
            "gapscope-trace",
            "gapscope-timeline",
            "gapscope-analysis",
            "gapscope-comparison",
            "gapscope-companion",
        ],
    ),
    (
        "gapscope-export",
        &["gapscope-trace", "gapscope-timeline", "gapscope-analysis"],
    ),
    (
        "gapscope-import",
        &[
            "gapscope-model",
            "gapscope-timeline-builder",
            "gapscope-trace",
        ],
    ),
    (
        "gapscope-view",
        &[
            "gapscope-trace",
            "gapscope-timeline",
            "gapscope-analysis",
            "gapscope-comparison",
            "gapscope-capture",
            "gapscope-dependencies",
            "gapscope-report",
            "gapscope-companion",
        ],
    ),
    ("gapscope-companion", &[]),
    (
        "gapscope-query",
        &[
            "gapscope-trace",
            "gapscope-timeline",
            "gapscope-analysis",
            "gapscope-companion",
        ],
    ),
    ("gapscope-mcp", &["gapscope-companion"]),
    (
        "gapscope-sdk",
        &[
            "gapscope-model",
            "gapscope-spool",
            "gapscope-timeline-builder",
            "gapscope-trace",
        ],
    ),
    (
        "gapscope",
        &[
            "gapscope-trace",
            "gapscope-timeline",
            "gapscope-analysis",
            "gapscope-comparison",
            "gapscope-capture",
            "gapscope-dependencies",
            "gapscope-fusion",
            "gapscope-replay",
            "gapscope-report",
            "gapscope-companion",
            "gapscope-export",
            "gapscope-import",
            "gapscope-device-peaks",
            "gapscope-metal",
            "gapscope-view",
            "gapscope-recorder",
        ],
    ),
    // Programs that are recorded know nothing of the recorder.
    ("fusion", &[]),
    ("planted", &[]),
    // The program shows how the SDK is used.
    ("doubled", &["gapscope-sdk"]),
    ("fake-vulkan-driver", &[]),
    ("fake-cuda", &[]),
    ("stand-in-xctrace", &[]),
    (
        "end-to-end",
        &["gapscope-trace", "gapscope-capture", "gapscope-report"],
    ),
    // These are the formats that it reads, and the reports that a user sees of them.
    (
        "fuzz",
        &[
            "gapscope-capture",
            "gapscope-dependencies",
            "gapscope-trace",
            "gapscope-timeline",
            "gapscope-analysis",
            "gapscope-comparison",
            "gapscope-report",
            "gapscope-export",
            "gapscope-import",
            "gapscope-spool",
            "gapscope-stacks",
            "gapscope-recorder",
        ],
    ),
    ("xtask", &["gapscope-trace"]),
];

pub fn problems(package: &Package) -> Vec<String> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
        return vec![format!(
            "{}: add it to the table of xtask/src/tidy/layers.rs and to ARCHITECTURE.md, with the crates it may use",
            package.name
        )];
    };
    let forbidden = package
        .uses
        .iter()
        .filter(|used| !allowed.contains(&used.as_str()));
    forbidden
        .map(|used| format!("{} must not use {used}", package.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            description: None,
            uses: uses.iter().map(|&used| used.to_owned()).collect(),
            roots: Vec::new(),
        }
    }

    #[test]
    fn a_hook_that_reads_traces_is_named() {
        let found = problems(&package(
            "gapscope-vulkan",
            &["gapscope-spool", "gapscope-trace"],
        ));
        assert_eq!(found, ["gapscope-vulkan must not use gapscope-trace"]);
    }

    #[test]
    fn a_crate_that_the_rules_do_not_know_is_named() {
        assert!(problems(&package("gapscope-utils", &[]))[0].contains("gapscope-utils: add it"));
    }

    /// The SQL engine of the query program would be most of the command.
    #[test]
    fn a_command_that_holds_the_query_program_is_named() {
        let found = problems(&package("gapscope", &["gapscope-query"]));
        assert_eq!(found, ["gapscope must not use gapscope-query"]);
    }

    #[test]
    fn the_command_may_use_what_it_glues() {
        assert!(
            problems(&package(
                "gapscope",
                &["gapscope-report", "gapscope-recorder"]
            ))
            .is_empty()
        );
    }
}
