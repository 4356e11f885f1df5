//! Imports the SQLite database that `nsys export --type sqlite` writes of a report of Nsight Systems.
//!
//! | in the export | in the trace |
//! |---|---|
//! | `CUPTI_ACTIVITY_KIND_KERNEL` | dispatches, with launch shape; kernels |
//! | `CUPTI_ACTIVITY_KIND_MEMCPY`, `…_MEMSET` | transfers |
//! | `CUPTI_ACTIVITY_KIND_GRAPH_TRACE`, and rows with a `graphNodeId` | opaque work of kind `graph`, and command buffers |
//! | `CUDA_GRAPH_EVENTS`, `CUDA_GRAPH_NODE_EVENTS` | nodes of graphs; the labels of their work |
//! | `CUPTI_ACTIVITY_KIND_RUNTIME`, `…_DRIVER` | submissions where a row of work has the same correlation; host calls |
//! | `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`, `…_CUDA_EVENT` | queues of waits, dependencies |
//! | `CUPTI_ACTIVITY_KIND_OVERHEAD`, `PROFILER_OVERHEAD` | host calls: `queue-full`, `load-module`, `recording` |
//! | `NVTX_EVENTS` | markers and labels, with domain, category and payload |
//! | `OSRT_API`, `CUBLAS_EVENTS`, `CUDNN_EVENTS` | markers of a domain of their own, which label no work |
//! | `GPU_METRICS` | counters |
//! | `DIAGNOSTIC_EVENT` | notes, and losses where events were lost |
//!
//! Rows of other tables are counted in the ledger. Versions of nsys have different tables and columns: what is
//! missing is unknown. Times count from the start of the session, as in the file.

mod device;
mod facts;
mod graphs;
mod host;
mod import;
mod launches;
mod markers;
mod metrics;
mod strings;
mod unnamed;

use crate::output::{NewTrace, Output};
use crate::profile::Profile;
use crate::sqlite::{Database, is_database};
use crate::{Error, Importer, Options, ranks};
use gapscope_model::Span;
use gapscope_trace::manifest::Rank;
use import::Import;
pub(crate) use launches::{ExportLaunches, launches};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Imports exports of Nsight Systems.
pub const IMPORTER: Importer = Importer {
    name: "nsys",
    reads: "exports of Nsight Systems (`nsys export --type sqlite`)",
    recognises,
    read,
    joins_named_ranks: true,
};

/// The beginnings of the names of tables of which each export of nsys has one, beside `StringIds`. Exports of 2021 have no
/// `META_DATA_EXPORT`, and those without CUDA have only facts about the machine, and calls and threads of the system.
const OWN_TABLES: [&str; 7] = [
    "META_DATA_EXPORT",
    "CUPTI_ACTIVITY_KIND_",
    "NVTX_EVENTS",
    "TARGET_INFO_",
    "OSRT_API",
    "SCHED_EVENTS",
    "COMPOSITE_EVENTS",
];

/// Returns whether a path is a report of nsys, which [`read`] refuses with advice, or a database with nsys' tables.
pub(crate) fn recognises(path: &Path) -> bool {
    is_report(path)
        || is_database(path)
            && Database::list(path).is_ok_and(|database| {
                // Cuts may lack the names. nvprof's databases have tables of CUPTI, too.
                let has_kernels = database.table("CUPTI_ACTIVITY_KIND_KERNEL").is_some()
                    && database.table("StringTable").is_none();
                (database.table("StringIds").is_some() || has_kernels)
                    && database.tables.iter().any(|table| {
                        let mut own = OWN_TABLES.iter();
                        own.any(|start| table.name.starts_with(start))
                    })
            })
}

/// Returns true if a path names a report of nsys itself.
pub(crate) fn is_report(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "nsys-rep" || extension == "qdrep")
}

/// Imports one export into one trace, or several as those of ranks.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    read_amended(inputs, options, None, &mut Unamended, output)
}

/// Adds the rows of further files to those of exports.
pub(crate) trait Amend {
    /// Adds rows to the profile and the trace of the export with an index among the inputs, to whose times `shift_ns` was
    /// added.
    fn amend(
        &mut self,
        export: usize,
        shift_ns: i64,
        profile: Profile,
        new: NewTrace,
        output: &Output,
    ) -> Result<(Profile, NewTrace), Error>;
}

/// Adds nothing.
struct Unamended;

impl Amend for Unamended {
    fn amend(
        &mut self,
        _: usize,
        _: i64,
        profile: Profile,
        new: NewTrace,
        _: &Output,
    ) -> Result<(Profile, NewTrace), Error> {
        Ok((profile, new))
    }
}

/// Imports exports, to which `amend` adds rows. `origin` says in words where the ranks of the options are from, unless the
/// user named them.
pub(crate) fn read_amended(
    inputs: &[PathBuf],
    options: &Options,
    origin: Option<&str>,
    amend: &mut dyn Amend,
    output: &mut Output,
) -> Result<(), Error> {
    if let Some(report) = inputs.iter().find(|input| is_report(input)) {
        return Err(Error::ToolOnly {
            path: report.clone(),
            form: "a report of Nsight Systems, which only nsys can read: run `nsys export --type sqlite` on it and import the database that it writes",
        });
    }
    match inputs {
        [input] if options.ranks.is_empty() => {
            let import = Import::new(Database::open(input)?, options);
            let bytes = (0, import.database.bytes);
            import.run(options, bytes, (0, None), &mut None, amend, output)
        }
        _ => read_ranks(inputs, options, origin, amend, output),
    }
}

/// The session of an export.
struct Session<'a> {
    path: &'a Path,
    /// The processes that used a GPU.
    pids: BTreeSet<u32>,
    /// When it was recorded, in time since 1970, where the file says it.
    time_ns: Option<Range<i64>>,
}

/// Refuses exports of one process that follow each other, which are no ranks.
fn refuse_windows(sessions: &[Session]) -> Result<(), Error> {
    for (index, later) in sessions.iter().enumerate() {
        for earlier in &sessions[..index] {
            let Some((a, b)) = earlier.time_ns.as_ref().zip(later.time_ns.as_ref()) else {
                continue;
            };
            let follow = a.end <= b.start || b.end <= a.start;
            let Some(pid) = later.pids.first().filter(|_| follow) else {
                continue;
            };
            if earlier.pids == later.pids {
                return Err(Error::nothing(format!(
                    "{} and {} are no ranks: both are of process {pid} and one was recorded after the other, as `nsys profile --capture-range-end=repeat` does. Import each by itself, and compare them with `gapscope diff`",
                    earlier.path.display(),
                    later.path.display()
                )));
            }
        }
    }
    Ok(())
}

/// Imports exports of several ranks of a program (its processes), each into its own trace. The exports do not name
/// their ranks, which are those that the user names, or else numbered from 0 in the order of the inputs. Their times are put on the clock of
/// the earliest session, if all files say when theirs began.
fn read_ranks(
    inputs: &[PathBuf],
    options: &Options,
    origin: Option<&str>,
    amend: &mut dyn Amend,
    output: &mut Output,
) -> Result<(), Error> {
    let mut imports = Vec::new();
    let mut sessions = Vec::new();
    for input in inputs {
        let mut import = Import::new(Database::open(input)?, options);
        let zero_unix_ns = import.read_about()?;
        sessions.push(Session {
            path: input,
            pids: import.pids_of_devices()?,
            time_ns: zero_unix_ns
                .zip(import.profile.times.end_ns)
                .map(|(zero_ns, length_ns)| zero_ns..zero_ns.saturating_add(length_ns)),
        });
        imports.push((import.database, zero_unix_ns));
    }
    if options.ranks.is_empty() {
        refuse_windows(&sessions)?;
    }
    let zeros: Option<Vec<i64>> = imports.iter().map(|(_, zero)| *zero).collect();
    let first = zeros.and_then(|zeros| {
        let (first, last) = (*zeros.iter().min()?, *zeros.iter().max()?);
        // Sessions that are years apart do not belong to one program.
        let apart = last.checked_sub(first)?;
        (apart < Span::MAX_NS).then_some(first)
    });
    let clocks = match first {
        Some(_) => {
            "Their times are on one axis by the wall clocks of their machines when the sessions began."
        }
        None => {
            "The times of each count from the start of its session, and those of different ranks cannot be compared: not all files say when that was."
        }
    };
    let named = ranks::named(inputs, options)?;
    let origin = origin.unwrap_or(match named {
        Some(_) => "the user named the ranks of the files, which do not say them",
        None => "ranks are numbered in the order of the files, which do not say them",
    });
    let notes = vec![format!(
        "Imported from {} exports of Nsight Systems, one for each rank: {origin}. {clocks}",
        inputs.len()
    )];
    let new = output.trace()?;
    let all_bytes = imports.iter().map(|(database, _)| database.bytes).sum();
    let world_size = imports.len() as u32;
    let numbered = (0..world_size).map(|rank| Rank {
        rank,
        local_rank: None,
        world_size,
    });
    let ranks = named.unwrap_or_else(|| numbered.collect());
    let mut before = 0;
    let mut since_1970_ns = None;
    for (index, (rank, (database, zero))) in ranks.iter().zip(imports).enumerate() {
        let own_bytes = database.bytes;
        let import = Import {
            shift_ns: zero
                .zip(first)
                .map_or(0, |(own, first)| own.saturating_sub(first)),
            ..Import::new(database, options)
        };
        let place = (index, Some(*rank));
        let bytes = (before, all_bytes);
        import.run(options, bytes, place, &mut since_1970_ns, amend, output)?;
        before += own_bytes;
    }
    let ranks = ranks.iter().map(|rank| rank.rank).collect();
    output.finish_ranks(new, ranks, options, notes)
}
