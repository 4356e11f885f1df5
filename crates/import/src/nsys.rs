//! Nsight Systems: the SQLite database that `nsys export --type sqlite` writes of a report.
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
use crate::profile::{About, Profile};
use crate::sqlite::{self, Damage, Database, is_database};
use crate::{Error, Importer, Options};
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::Api;
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

/// A table that nsys writes into each export, and one that it writes of each recording with something in it.
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

/// Whether a path names a report of nsys itself.
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
    let [input] = inputs else {
        return Err(Error::NothingRecorded {
            reason:
                "exports of Nsight Systems are imported one at a time: each has a clock of its own"
                    .to_owned(),
        });
    };
    let mut import = Import::of(Database::open(input)?, options);
    import.read_strings()?;
    let about = import.read_about()?;
    import.read_rows()?;
    import.name_things()?;
    if !import.profile.has_work() && !import.profile.has_host_rows() {
        return Err(Error::NothingRecorded {
            reason: match options.pid {
                Some(pid) => format!(
                    "{} has no CUDA work, calls or labels of process {pid}",
                    input.display()
                ),
                None if import.damage != Damage::default() => format!(
                    "{} is cut or damaged, and what can be read of it has no CUDA work, calls or labels: export it again",
                    input.display()
                ),
                None => format!(
                    "{} has no CUDA work, calls or labels: record with `nsys profile --trace=cuda,nvtx`",
                    input.display()
                ),
            },
        });
    }
    let mut new = output.trace()?;
    import.read_metrics(&mut new)?;
    import.count_the_rest()?;
    let Import {
        profile,
        notes,
        database,
        ..
    } = import;
    output.progress(database.bytes, database.bytes);
    let about = About { notes, ..about };
    profile.write(about, options, new, output)
}

/// An import on its way.
struct Import {
    database: Database,
    profile: Profile,
    strings: Arc<Strings>,
    /// Only this process counts.
    pid: Option<u32>,
    /// Queues by process, context and number, once all work is read.
    queues: FxHashMap<(ProcessId, u32, u32), Option<QueueId>>,
    damage: Damage,
    notes: Vec<String>,
    /// Tables that were read, or say nothing of events.
    used: Vec<&'static str>,
}

impl Import {
    fn of(database: Database, options: &Options) -> Import {
        let damage = database.damage;
        Import {
            database,
            profile: Profile::new(Api::Cuda),
            strings: Arc::default(),
            pid: options.pid,
            queues: FxHashMap::default(),
            damage,
            notes: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Reads calls and work, and beside them labels, which are often most of a file.
    fn read_rows(&mut self) -> Result<(), Error> {
        let mut labels = Import {
            strings: self.strings.clone(),
            pid: self.pid,
            damage: Damage::default(),
            ..Import::of(self.database.clone(), &Options::default())
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

    /// Scans a table, if it is there. Gives whether it is.
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

    /// The process of a global id of a process or thread; `None` where it is not wanted.
    fn process(&mut self, global: Option<i64>) -> Option<ProcessId> {
        match global {
            Some(global) => {
                let pid = pid_of(global);
                if self.pid.is_some_and(|wanted| wanted != pid) {
                    return None;
                }
                Some(self.profile.process(pid))
            }
            // Before 2021 rows did not say it, nor do those of some converters.
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

/// The pid in a global id: bits 24 to 47.
fn pid_of(global: i64) -> u32 {
    ((global >> 24) & 0xff_ffff) as u32
}

/// The system's id of the thread in a global id: the lowest 24 bits.
fn thread_of(global: i64) -> ThreadId {
    ThreadId((global & 0xff_ffff) as u32)
}
