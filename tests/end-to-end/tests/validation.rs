//! Tests that Khronos' validation layer, placed below gapscope's layer, reports nothing that it does not report
//! without it.

use std::collections::BTreeSet;

use crate::recording::{Run, assert_contains, planted};

/// Returns the ids of the validation layer's messages, without handles and times.
pub fn messages(run: &Run) -> BTreeSet<String> {
    let text = format!("{}\n{}", run.stdout, run.stderr);
    let ids = text
        .split_whitespace()
        .filter(|word| word.starts_with("VUID-") || word.starts_with("UNASSIGNED-"));
    ids.map(|id| id.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
        .collect()
}

fn check(arguments: &str) {
    for mode in ["dispatch", "dispatch-serialised", "command-buffer"] {
        let program = planted(arguments)
            .variable("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
            .variable(
                "VK_LAYER_ENABLES",
                "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
            )
            .options(&["--mode", mode]);
        let alone = messages(&program.run().ok());
        let recorded = messages(&program.recorded().run);
        let new: Vec<_> = recorded.difference(&alone).collect();
        assert!(new.is_empty(), "{arguments} in {mode} mode: {new:?}");
    }
}

/// A program with a known error gets its message, so that silence in other tests has a meaning.
#[test]
fn the_validation_layer_speaks() {
    let program = planted("steady")
        .variable("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .variable("VK_LOADER_DEBUG", "layer");
    let run = program.run().ok();
    assert_contains(&run.stderr, "VK_LAYER_KHRONOS_validation");
}

macro_rules! validation {
    ($($name:ident: $arguments:literal;)+) => {$(
        #[test]
        fn $name() {
            check($arguments);
        }
    )+};
}

validation! {
    nothing_new_with_steady_work: "steady --n 400 --iterations 3";
    nothing_new_with_command_buffers_submitted_again: "resubmit";
    nothing_new_with_simultaneous_instances: "simultaneous";
    nothing_new_with_secondary_command_buffers: "secondary";
    nothing_new_with_handles_that_come_again: "host-pool-reset";
    nothing_new_with_push_descriptors: "push-descriptors";
    nothing_new_with_submit2: "submit2";
    nothing_new_with_threads: "threads --count 4";
    nothing_new_with_transfers: "transfers";
    nothing_new_with_render_passes: "render-pass";
    nothing_new_with_suspended_renderings: "suspended";
    nothing_new_with_resolves: "resolve";
    nothing_new_with_labels: "labels";
}
