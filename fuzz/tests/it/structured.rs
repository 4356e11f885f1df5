//! Imports some hundred generated files of each format.

use fuzz::structured::{ALL, Outcome, run};

/// The cases of each format: some seconds of one core, without optimisation.
const CASES: u64 = 300;

/// Runs the cases of an importer, and returns how many there were of each outcome.
fn outcomes(importer: &str) -> [usize; 3] {
    let format = ALL.iter().find(|format| format.importer.name == importer);
    let format = format.expect("there is such an importer");
    let mut counts = [0; 3];
    for case in 0..CASES {
        let ran = std::panic::catch_unwind(|| run(format, case));
        let outcome = ran.unwrap_or_else(|_| panic!("{importer}: case {case} breaks a promise"));
        counts[match outcome {
            Outcome::Whole => 0,
            Outcome::Imported => 1,
            Outcome::Refused(_) => 2,
        }] += 1;
    }
    counts
}

macro_rules! formats {
    ($($name:ident: $importer:literal,)+) => {
        $(
            #[test]
            fn $name() {
                let [whole, imported, refused] = outcomes($importer);
                // Files that are only refused, or never damaged, test little.
                assert!(whole > 30 && imported > 60, "{whole} whole, {imported} with odd values, {refused} refused");
            }
        )+

        #[test]
        fn every_importer_is_run() {
            let run = [$($importer),+];
            let all: Vec<_> = gapscope_import::IMPORTERS.iter().map(|importer| importer.name).collect();
            assert!(all.iter().all(|name| run.contains(name)), "{all:?}");
        }
    };
}
formats! {
    chrome_json: "kineto",
    nsight_systems: "nsys",
    rocpd: "rocpd",
    rpd: "rpd",
    rocprofv3: "rocprofv3",
    perfetto: "Perfetto",
    xspace: "XSpace",
    ggml: "ggml",
    xcode_counters: "Xcode",
    instruments: "xctrace",
    own_exports: "gapscope",
    memory_snapshots: "PyTorch's memory",
}
