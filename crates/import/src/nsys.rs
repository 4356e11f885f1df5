//! Imports the SQLite database that `nsys export --type sqlite` writes of a report of Nsight Systems.
//!
//! | in the export | in the trace |
//! |---|---|
//! | `CUPTI_ACTIVITY_KIND_KERNEL` | dispatches, with launch shape; kernels |
//! | `CUPTI_ACTIVITY_KIND_MEMCPY`, `…_MEMSET` | transfers |
//! | `CUPTI_ACTIVITY_KIND_GRAPH_TRACE`, and rows with a `graphNodeId` | opaque work of kind `graph`, and command buffers |
//! | `CUPTI_ACTIVITY_KIND_RUNTIME`, `…_DRIVER` | submissions where a row of work has the same correlation; host calls |
//! | `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`, `…_CUDA_EVENT` | queues of waits, dependencies |
//! | `CUPTI_ACTIVITY_KIND_OVERHEAD`, `PROFILER_OVERHEAD` | host calls: `queue-full`, `load-module`, `recording` |
//! | `NVTX_EVENTS` | markers and labels, with domain, category and payload |
//! | `OSRT_API`, `CUBLAS_EVENTS`, `CUDNN_EVENTS` | markers of a domain of their own, which label no work |
//! | `GPU_METRICS` | counters |
//! | `DIAGNOSTIC_EVENT` | notes, and losses where events were lost |
//!
//! Rows of other tables are counted in the ledger. Versions of nsys have different tables and columns: what is missing is
//! unknown. Times count from the start of the session, as in the file.

mod device;
mod facts;
mod host;
mod markers;
mod metrics;
mod strings;

use crate::output::Output;
use crate::profile::{About, Profile, Span};
use crate::sqlite::{self, Damage, Database, is_database};
use crate::{Error, Importer, Options};
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::{Api, Rank};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use strings::Strings;

/// Imports exports of Nsight Systems.
pub const IMPORTER: Importer = Importer {
    name: "nsys",
    reads: "exports of Nsight Systems (`nsys export --type sqlite`)",
    recognises,
    read,
};

/// Tables of nsys: one that each export has, and tables of which an export with events has at least one.
const OWN_TABLES: [&str; 4] = [
    "META_DATA_EXPORT",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
];

fn recognises(path: &Path) -> bool {
    is_report(path)
        || is_database(path)
            && Database::list(path).is_ok_and(|database| {
                database.table("StringIds").is_some()
                    && OWN_TABLES
                        .iter()
                        .any(|table| database.table(table).is_some())
            })
}

/// Returns true if a path names a report of nsys itself.
fn is_report(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "nsys-rep" || extension == "qdrep")
}

fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    if let Some(report) = inputs.iter().find(|input| is_report(input)) {
        return Err(Error::ToolOnly {
            path: report.clone(),
            form: "a report of Nsight Systems, which only nsys can read: run `nsys export --type sqlite` on it and import the database that it writes",
        });
    }
    match inputs {
        [input] => {
            let import = Import::new(Database::open(input)?, options);
            let bytes = (0, import.database.bytes);
            import.run(options, bytes, None, output)
        }
        _ => read_ranks(inputs, options, output),
    }
}

/// Imports exports of several ranks of a program, each into its own trace. The exports do not name their ranks.
fn read_ranks(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let mut imports = Vec::new();
    for input in inputs {
        let mut import = Import::new(Database::open(input)?, options);
        let about = import.read_about()?;
        imports.push((import.database, about.zero_unix_ns));
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
    let notes = vec![format!(
        "Imported from {} exports of Nsight Systems, one for each rank: ranks are numbered in the order of the files, which do not say them. {clocks}",
        inputs.len()
    )];
    let new = output.trace()?;
    let all_bytes = imports.iter().map(|(database, _)| database.bytes).sum();
    let ranks: Vec<u32> = (0..).take(imports.len()).collect();
    let (mut before, world_size) = (0, ranks.len() as u32);
    for (rank, (database, zero)) in ranks.iter().zip(imports) {
        let own_bytes = database.bytes;
        let rank = Rank {
            rank: *rank,
            local_rank: None,
            world_size,
        };
        let import = Import {
            shift_ns: zero
                .zip(first)
                .map_or(0, |(own, first)| own.saturating_sub(first)),
            ..Import::new(database, options)
        };
        import.run(options, (before, all_bytes), Some(rank), output)?;
        before += own_bytes;
    }
    output.finish_ranks(new, ranks, options, notes)
}

/// The state of an import.
struct Import {
    database: Database,
    profile: Profile,
    strings: Arc<Strings>,
    /// The only process that is imported, if the options name one.
    pid: Option<u32>,
    /// The queues by process, context and number, once all work was read.
    queues: FxHashMap<(ProcessId, u32, u32), Option<QueueId>>,
    damage: Damage,
    notes: Vec<String>,
    /// The offset that puts the times on the clock of the first rank.
    shift_ns: i64,
    /// The tables that were read or hold no events.
    used: Vec<&'static str>,
}

impl Import {
    fn new(database: Database, options: &Options) -> Import {
        let damage = database.damage;
        Import {
            database,
            profile: Profile::new(Api::Cuda),
            strings: Arc::default(),
            pid: options.pid,
            queues: FxHashMap::default(),
            damage,
            notes: Vec::new(),
            shift_ns: 0,
            used: Vec::new(),
        }
    }

    /// Imports the file into the trace, or into that of a rank. `bytes` are the size of the files before and of all
    /// files.
    fn run(
        mut self,
        options: &Options,
        (before, all_bytes): (u64, u64),
        rank: Option<Rank>,
        output: &mut Output,
    ) -> Result<(), Error> {
        self.read_strings()?;
        let about = self.read_about()?;
        self.read_rows()?;
        self.name_things()?;
        if !self.profile.has_work() && !self.profile.has_host_rows() {
            return Err(self.nothing_recorded());
        }
        let mut new = match &rank {
            Some(rank) => output.rank(rank.rank)?,
            None => output.trace()?,
        };
        self.read_metrics(&mut new)?;
        self.count_the_rest()?;
        let Import {
            mut profile,
            notes,
            database,
            shift_ns,
            ..
        } = self;
        output.progress(before + database.bytes, all_bytes);
        profile.shift(shift_ns);
        let about = About {
            notes,
            rank,
            zero_unix_ns: about
                .zero_unix_ns
                .and_then(|zero| zero.checked_sub(shift_ns)),
            ..about
        };
        profile.write(about, options, new, output)
    }

    fn nothing_recorded(&self) -> Error {
        let path = self.database.path.display();
        Error::NothingRecorded {
            reason: match self.pid {
                Some(pid) => format!("{path} has no CUDA work, calls or labels of process {pid}"),
                None if self.damage != Damage::default() => format!(
                    "{path} is cut or damaged, and what can be read of it has no CUDA work, calls or labels: export it again"
                ),
                None => format!(
                    "{path} has no CUDA work, calls or labels: record with `nsys profile --trace=cuda,nvtx`"
                ),
            },
        }
    }

    /// Reads calls and work, and at the same time labels, which are often most of a file.
    fn read_rows(&mut self) -> Result<(), Error> {
        let mut labels = Import {
            strings: self.strings.clone(),
            pid: self.pid,
            damage: Damage::default(),
            ..Import::new(self.database.clone(), &Options::default())
        };
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| labels.read_markers());
            self.read_host()?;
            self.read_device_work()?;
            let read = reading.join();
            read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        self.damage.add(labels.damage);
        self.used.append(&mut labels.used);
        self.profile.take_labels(labels.profile);
        Ok(())
    }

    /// Scans a table and returns whether it exists.
    fn scan(
        &mut self,
        table: &'static str,
        columns: &[&str],
        mut take: impl FnMut(&mut Import, &crate::sqlite::Row),
    ) -> Result<bool, Error> {
        self.used.push(table);
        let Some(facts) = self.database.table(table).cloned() else {
            return Ok(false);
        };
        let path = self.database.path.clone();
        let damage = sqlite::scan(&path, &facts, columns, |row| take(self, row))?;
        self.damage.add(damage);
        Ok(true)
    }

    /// Returns the process of a global id of a process or thread; `None` if its work is not wanted.
    fn process(&mut self, global: Option<i64>) -> Option<ProcessId> {
        match global {
            Some(global) => {
                let pid = pid_of(global);
                if self.pid.is_some_and(|wanted| wanted != pid) {
                    return None;
                }
                Some(self.profile.process(pid))
            }
            // Exports from before 2021 have no such id, nor have those of some converters.
            None => Some(match self.pid {
                Some(pid) => self.profile.process(pid),
                None => self.profile.unnamed_process(),
            }),
        }
    }

    fn count_the_rest(&mut self) -> Result<(), Error> {
        let names: Vec<String> = (self.database.tables.iter())
            .map(|table| table.name.clone())
            .filter(|name| {
                !self.used.contains(&name.as_str()) && !facts::says_nothing_of_events(name)
            })
            .collect();
        for name in names {
            let rows = match self.database.table(&name) {
                Some(table) => self.database.count(table)?,
                None => 0,
            };
            let kind = format!("rows of {name}");
            let reason = "a trace has no place for them, or gapscope does not import them yet";
            self.profile.ledger.add(kind.into(), rows, reason);
        }
        self.damage.add_to(&mut self.profile.ledger);
        Ok(())
    }
}

/// Returns the pid of a global id, in bits 24 to 47.
fn pid_of(global: i64) -> u32 {
    ((global >> 24) & 0xff_ffff) as u32
}

/// Returns the thread id of a global id, in bits 0 to 23.
fn thread_of(global: i64) -> ThreadId {
    ThreadId((global & 0xff_ffff) as u32)
}
