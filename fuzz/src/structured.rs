//! Imports files that are made by the grammar of each format: sound ones, whose rows are known, and ones with odd values,
//! missing and repeated members, and damage to the whole. A number of a case goes in; a broken promise is a panic.
//!
//! The promises: no panic, no more memory than [`crate::memory::LIMIT_BYTES`], an end within [`MAX_CPU_TIME`], the same
//! trace each time, ids that lead somewhere, nothing that ends before it starts, and of a sound file every piece of work.
//!
//! The tests run some hundred cases of each format; `examples/structured` runs as many as it is told.

mod chance;
mod chrome;
mod databases;
mod documents;
mod messages;
mod pickles;

use crate::outcome::{self, Choice};
use crate::{bytes, json, scratch};
use chance::Chance;
use flate2::Compression;
use flate2::write::GzEncoder;
use gapscope_import::{Importer, Options};
use gapscope_trace::Trace;
use gapscope_trace::tables::Table as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// The most processor time for one case. A sound file takes less than a thousandth of it.
pub const MAX_CPU_TIME: Duration = Duration::from_secs(5);

/// One case in so many is analysed and shown, because that takes many times as long as the import.
const SHOWN: u64 = 512;
/// One case in so many is imported twice.
const REPEATED: u64 = 8;

/// A generated import.
#[derive(Debug, Default, Clone)]
pub struct Document {
    /// The files with their names.
    pub files: Vec<(String, Vec<u8>)>,
    /// The pieces of GPU work that a sound file has, or [`Self::UNKNOWN`].
    pub work: u64,
}

impl Document {
    /// Stands for a number of pieces that is not known.
    pub const UNKNOWN: u64 = u64::MAX;
}

/// A format with the function that writes files of it.
#[derive(Clone, Copy)]
pub struct Format {
    /// The name of the importer.
    pub importer: &'static Importer,
    document: fn(&mut Chance) -> Document,
}

/// All formats that gapscope imports.
pub const ALL: [Format; 12] = [
    Format {
        importer: &gapscope_import::kineto::IMPORTER,
        document: chrome::document,
    },
    Format {
        importer: &gapscope_import::nsys::IMPORTER,
        document: databases::nsys,
    },
    Format {
        importer: &gapscope_import::rocpd::IMPORTER,
        document: databases::rocpd,
    },
    Format {
        importer: &gapscope_import::rpd::IMPORTER,
        document: databases::rpd,
    },
    Format {
        importer: &gapscope_import::rocprofv3::IMPORTER,
        document: documents::rocprofv3,
    },
    Format {
        importer: &gapscope_import::perfetto::IMPORTER,
        document: messages::perfetto,
    },
    Format {
        importer: &gapscope_import::xplane::IMPORTER,
        document: messages::xplane,
    },
    Format {
        importer: &gapscope_import::ggml::IMPORTER,
        document: documents::ggml,
    },
    Format {
        importer: &gapscope_import::counters_csv::IMPORTER,
        document: documents::counters,
    },
    Format {
        importer: &gapscope_import::xctrace::IMPORTER,
        document: documents::xctrace,
    },
    Format {
        importer: &gapscope_import::drawn::IMPORTER,
        document: documents::drawn,
    },
    Format {
        importer: &gapscope_import::memory_snapshot::IMPORTER,
        document: pickles::snapshot,
    },
];

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The file had no odd values, and all its work is in the trace.
    Whole,
    /// A trace came out of a file with odd values.
    Imported,
    /// The file was refused by this sentence.
    Refused(String),
}

/// Makes the file of a case, imports it, and checks the trace.
pub fn run(format: &Format, case: u64) -> Outcome {
    let mut chance = Chance::new(case);
    let mut document = (format.document)(&mut chance);
    let is_sound = chance.is_sound();
    if !is_sound {
        let damaged = chance.rng.usize(0..document.files.len());
        damage(&mut document.files[damaged].1, &mut chance);
    }
    let folder = scratch::folder();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (name, bytes) in &document.files {
        paths.push(scratch::file(folder.path(), name, bytes));
    }
    let importer = format.importer;
    let has = paths.iter().any(|path| (importer.recognises)(path));
    assert!(
        has || !is_sound || document.work == 0 || document.work == Document::UNKNOWN,
        "a sound file is recognised"
    );
    let options = Options {
        pid: chance.once_in(16).then_some(1000),
        ..Options::default()
    };
    let output = folder.path().join("out.gapscope");
    let traces = match importer.traces(&paths, &output, &options) {
        Ok(traces) => traces,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            let is_known = is_sound && options.pid.is_none() && document.work != Document::UNKNOWN;
            assert!(
                !is_known || document.work == 0,
                "a sound file was refused: {text}"
            );
            return Outcome::Refused(text);
        }
    };
    for trace in &traces {
        check(trace);
        // A trace behind the drawing of an export is a stranger's own, and kept as it is.
        if importer.name != gapscope_import::drawn::IMPORTER.name {
            check_ids(trace);
        }
    }
    if case.is_multiple_of(REPEATED) {
        let again = folder.path().join("again.gapscope");
        let again = importer
            .traces(&paths, &again, &options)
            .expect("what was read once is read again");
        assert!(traces == again, "two imports differ");
    }
    if case.is_multiple_of(SHOWN)
        && let Some(trace) = traces.first()
    {
        outcome::show(trace, &[], Choice::from_input(&document.files[0].1));
    }
    if !is_sound {
        return Outcome::Imported;
    }
    if document.work != Document::UNKNOWN && options.pid.is_none() {
        let rows: usize = traces.iter().map(work).sum();
        assert_eq!(rows as u64, document.work, "pieces of work");
    }
    Outcome::Whole
}

/// Returns the number of pieces of work in a trace.
fn work(trace: &Trace) -> usize {
    let tables = &trace.tables;
    tables.dispatches.len() + tables.transfers.len() + tables.opaque_work.len()
}

/// Checks what holds of every trace.
fn check(trace: &Trace) {
    let tables = &trace.tables;
    let times = [
        (&tables.dispatches.start_ns, &tables.dispatches.duration_ns),
        (&tables.transfers.start_ns, &tables.transfers.duration_ns),
        (
            &tables.opaque_work.start_ns,
            &tables.opaque_work.duration_ns,
        ),
        (
            &tables.command_buffers.start_ns,
            &tables.command_buffers.duration_ns,
        ),
    ];
    for (start_ns, duration_ns) in times {
        for (start_ns, duration_ns) in start_ns.iter().zip(duration_ns) {
            ends(start_ns.unwrap_or(0), duration_ns.unwrap_or(0));
        }
    }
    for (start_ns, duration_ns) in tables
        .submissions
        .start_ns
        .iter()
        .zip(&tables.submissions.duration_ns)
    {
        ends(*start_ns, *duration_ns);
    }
    for (start_ns, duration_ns) in tables
        .host_calls
        .start_ns
        .iter()
        .zip(&tables.host_calls.duration_ns)
    {
        ends(*start_ns, *duration_ns);
    }
    for (start_ns, duration_ns) in tables
        .markers
        .start_ns
        .iter()
        .zip(&tables.markers.duration_ns)
    {
        ends(start_ns.unwrap_or(0), duration_ns.unwrap_or(0));
    }
    let manifest = &trace.manifest;
    assert!(
        manifest.end_ns >= manifest.start_ns,
        "the trace ends before it starts"
    );
    assert!(
        manifest.losses.iter().all(|loss| loss.count > 0),
        "a loss of nothing"
    );
}

/// Checks that ids name rows.
fn check_ids(trace: &Trace) {
    let dangling = trace.dangling_ids();
    // Where the launch of a graph is missing, its id names nothing.
    assert!(
        dangling
            .iter()
            .all(|found| found.to_string().contains("submission")),
        "{dangling:?}"
    );
}

fn ends(start_ns: i64, duration_ns: i64) {
    assert!(
        duration_ns >= 0 && start_ns.checked_add(duration_ns).is_some(),
        "{start_ns} ns and {duration_ns} ns"
    );
}

/// Damages a whole file, one time in two.
fn damage(file: &mut Vec<u8>, chance: &mut Chance) {
    let is_json = file.starts_with(b"{") || file.starts_with(b"[");
    let end = file.len();
    match chance.rng.u8(0..20) {
        0 => file.truncate(chance.rng.usize(0..=end)),
        1 => *file = packed(file),
        2 => {
            *file = packed(file);
            let end = file.len();
            file.truncate(chance.rng.usize(0..=end));
        }
        3 => {
            let again = file.clone();
            file.extend(again);
        }
        4 => file.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
        5 => {
            let wide: Vec<u8> = file.iter().flat_map(|byte| [*byte, 0]).collect();
            *file = wide;
        }
        6 => bytes::change_lines(file, &mut chance.rng),
        7 => bytes::change_value(file, &mut chance.rng),
        8 if is_json => drop(json::change_document(file, &mut chance.rng)),
        8 | 9 => bytes::change(file, &mut chance.rng),
        _ => {}
    }
}

/// Packs a file by gzip.
fn packed(file: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(file)
        .expect("memory takes what is written");
    encoder.finish().expect("memory takes what is written")
}
