//! Each target with its kept inputs and a fixed number of changes of them; and that the targets can fail.
//!
//! `cargo xtask fuzz` finds new inputs; what it keeps is run here from then on.

mod promises;
mod structured;

use fuzz::{replay, targets};
use std::path::Path;

/// Changes of kept inputs for each target: together about a minute of one core, without optimisation.
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
    manifest: 8_000,
    table: 800,
    rows: 5_000,
    events: 2_500,
    spool: 4_000,
    xctrace: 9_000,
    kineto: 400,
    capture: 10_000,
    database: 500,
    perfetto: 300,
    xplane: 200,
    ggml: 200,
    counters_csv: 200,
    interpreter: 300,
}
