//! Tests the imports of all tools: a module for each tool, or for a promise that all of them keep (`hostile`, `properties`,
//! `unknown`). This file has the helpers of the tests of Instruments: exports that a stand-in for xctrace writes of planted
//! scenes.

mod counters_csv;
mod damage;
mod database;
mod doubtful_times;
mod ggml;
mod gpu_rows;
mod hints;
mod hostile;
mod imported;
mod joined;
mod joined_planted;
mod kineto;
mod kineto_documents;
mod kineto_faults;
mod kineto_lines;
mod kineto_shared;
mod kineto_truth;
mod kineto_windows;
mod labels;
mod live_and_imported;
mod memory_snapshot;
mod named_ranks;
mod nsys;
mod nsys_graphs;
mod nsys_ranks;
mod packed;
mod perfetto;
mod perfetto_times;
mod planted;
mod producers;
mod properties;
mod real_values;
mod rocm;
mod round_trip;
mod rpd;
mod since_1970;
mod strange_files;
mod stray_devices;
mod unknown;

// From the tests of the timeline builder: events written as a script, and rows of a trace printed as lines, by which
// `live_and_imported` compares an import with a recording.
#[path = "../../../timeline-builder/tests/it/script.rs"]
mod script;
mod xplane;
mod xplane_graphs;

use gapscope_import::xctrace::read;
use gapscope_import::{Error, Options};
use gapscope_trace::Trace;
use stand_in_xctrace::{Quirks, SCHEMAS, Scene};
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder of xctrace's exports of a scene (planted work of a made-up program): the table of contents, and a file for
/// each table.
struct Exports {
    folder: TempDir,
}

impl Exports {
    fn new() -> Exports {
        Exports {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn from_scene(scene: &Scene, quirks: &Quirks) -> Exports {
        let exports = Exports::new();
        exports.add("toc", &scene.toc());
        for (schema, _) in SCHEMAS.iter() {
            exports.add(schema, &scene.table(schema, quirks));
        }
        exports
    }

    fn add(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.xml"));
        std::fs::write(&path, text).unwrap();
        path
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join(format!("{name}.xml"))).unwrap();
    }

    fn read(&self) -> Result<Trace, Error> {
        read(&[self.folder.path().to_owned()], &Options::default())
    }

    fn trace(&self) -> Trace {
        self.read().unwrap()
    }
}

/// Imports a scene, exported without quirks (deviations of real exports), and returns its trace.
fn plain(scene: &Scene) -> Trace {
    Exports::from_scene(scene, &Quirks::default()).trace()
}
