//! Each target with its kept inputs and a fixed number of changes of them; and that the targets can fail.
//!
//! `cargo xtask fuzz` finds new inputs; what it keeps is run here from then on.

mod promises;
mod structured;

use fuzz::{replay, targets};
use std::path::Path;

/// Changes of kept inputs for each target: together about two minutes of one core, without optimisation.
macro_rules! targets {
    ($($name:ident: $changed:literal,)+) => {
        $(
            #[test]
            fn $name() {
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
                let target = targets::ALL.iter().find(|target| target.name == stringify!($name));
                replay::replay(target.expect("there is such a target"), $changed, kept);
            }
        )+

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),+];
            let all: Vec<_> = targets::ALL.iter().map(|target| target.name).collect();
            assert_eq!(run.as_slice(), all);
        }
    };
}
targets! {
    manifest: 1_500,
    table: 150,
    rows: 700,
    events: 300,
    spool: 500,
    xctrace: 1_500,
    kineto: 100,
    capture: 2_500,
    database: 120,
    perfetto: 100,
    xplane: 80,
    ggml: 100,
    memory_snapshot: 150,
    counters_csv: 100,
    interpreter: 150,
}
