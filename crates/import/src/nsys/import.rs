//! Imports one export into a trace: reads the tables of an open database, and writes the rows. [`Import::run`] does
//! all in order; the other files of this folder read one kind of table each.

use super::Amend;
use super::strings::Strings;
use crate::inventory::NO_PLACE;
use crate::output::Output;
use crate::profile::{FileReasons, FunctionId, Profile};
use crate::sqlite::{self, Damage, Database, Row};
use crate::{Error, Options};
use gapscope_model::{LossKind, Span};
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::{Api, Rank};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The beginnings of the names of tables whose rows are not events, or only details of events.
const STARTS: [&str; 9] = [
    "ENUM_",
    "META_DATA_",
    "TARGET_INFO_",
    "ANALYSIS_",
    "NVTX_PAYLOAD_SCHEMA",
    "sqlite_",
    "_nsysai",
    "ProcessStreams",
    "EXPORT_",
];
/// The ends of the names of such tables.
const ENDS: [&str; 3] = ["_CALLCHAINS", "_DESCRIPTORS", "_CALLCHAIN"];

/// Returns true if the rows of a table are not events.
fn says_nothing_of_events(table: &str) -> bool {
    STARTS.iter().any(|start| table.starts_with(start))
        || ENDS.iter().any(|end| table.ends_with(end))
}

/// What has no name because its text is missing.
#[derive(Debug, Default)]
pub(super) struct Unnamed {
    pub functions: FxHashSet<FunctionId>,
    pub kernels: u64,
    pub labels: u64,
}

/// The state of an import of one export.
pub(super) struct Import {
    pub(super) database: Database,
    pub(super) profile: Profile,
    pub(super) strings: Arc<Strings>,
    /// The only process that is imported, if the options name one.
    pub(super) pid: Option<u32>,
    /// The queues of streams that events and waits name, by process, context and number.
    pub(super) queues: FxHashMap<(ProcessId, u32, u32), QueueId>,
    /// The pages and rows that could not be read so far.
    pub(super) damage: Damage,
    /// The offset that puts the times on the clock of the first rank.
    pub(super) shift_ns: i64,
    /// What has no name because its text is missing.
    pub(super) unnamed: Unnamed,
    /// The names of the tables that were read or hold no events.
    pub(super) used: Vec<&'static str>,
}

impl Import {
    pub(super) fn new(database: Database, options: &Options) -> Import {
        let damage = database.damage;
        Import {
            database,
            profile: Profile::new("Nsight Systems", Api::Cuda),
            strings: Arc::default(),
            pid: options.pid,
            queues: FxHashMap::default(),
            damage,
            shift_ns: 0,
            unnamed: Unnamed::default(),
            used: Vec::new(),
        }
    }

    /// Imports the export into the trace, or into the trace of a rank. `bytes` are the size of the files before it
    /// and the size of all files; `index` is that of the export among them. `since_1970_ns` is what is added to times since
    /// 1970; the first export decides it for all whose times are on one axis. `amend` adds rows of further files.
    pub(super) fn run(
        mut self,
        options: &Options,
        (before, all_bytes): (u64, u64),
        (index, rank): (usize, Option<Rank>),
        since_1970_ns: &mut Option<i64>,
        amend: &mut dyn Amend,
        output: &mut Output,
    ) -> Result<(), Error> {
        self.read_strings()?;
        let zero_unix_ns = self.read_about()?;
        self.read_rows()?;
        self.name_things()?;
        if !self.profile.has_rows() {
            return Err(self.nothing_recorded());
        }
        let mut new = match &rank {
            Some(rank) => output.rank(rank.rank)?,
            None => output.trace()?,
        };
        let zero_ns = match zero_unix_ns {
            Some(_) => &mut *since_1970_ns,
            None => &mut None,
        };
        let since_1970_ns =
            *zero_ns.get_or_insert_with(|| self.profile.shift_since_1970(self.shift_ns));
        self.shift_ns = self.shift_ns.saturating_add(since_1970_ns);
        self.read_metrics(&mut new)?;
        self.count_the_rest()?;
        let Import {
            mut profile,
            database,
            shift_ns,
            ..
        } = self;
        profile.times.streams_are_queues = true;
        output.progress(before + database.bytes, all_bytes);
        profile.shift(shift_ns);
        let manifest = &mut profile.inventory.manifest;
        manifest.rank = rank;
        manifest.start_unix_ns = zero_unix_ns.and_then(|zero| zero.checked_sub(shift_ns));
        let (profile, new) = amend.amend(index, shift_ns, profile, new, output)?;
        profile.write(FileReasons::default(), options, new, output)
    }

    /// Reads the texts, to which all other rows refer.
    pub(super) fn read_strings(&mut self) -> Result<(), Error> {
        let mut strings = Strings::default();
        self.scan("StringIds", &["id", "value"], |_, row| {
            if let (Some(id), Some(text)) = (row.integer(0), row.text(1)) {
                strings.push(id, text);
            }
        })?;
        self.strings = Arc::new(strings);
        Ok(())
    }

    /// Returns the error that the export has nothing to import, with advice.
    fn nothing_recorded(&self) -> Error {
        let path = self.database.path.display();
        Error::nothing(match self.pid {
            Some(pid) => format!("{path} has no CUDA work, calls or labels of process {pid}"),
            None if self.damage != Damage::default() => format!(
                "{path} is cut or damaged, and what can be read of it has no CUDA work, calls or labels: export it again"
            ),
            None => format!(
                "{path} has no CUDA work, calls or labels: record with `nsys profile --trace=cuda,nvtx`"
            ),
        })
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
            self.read_graphs()?;
            let read = reading.join();
            read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        self.damage.add(labels.damage);
        self.used.append(&mut labels.used);
        self.unnamed.labels += labels.unnamed.labels;
        self.profile.take_labels(labels.profile);
        self.classify_unnamed()
    }

    /// Scans a table, calls `take` with each row of the given columns, and returns whether the table exists. A table
    /// that was scanned is not counted as a loss later.
    pub(super) fn scan(
        &mut self,
        table: &'static str,
        columns: &[&str],
        mut take: impl FnMut(&mut Import, &Row),
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

    /// Returns the process of a global id (nsys' number for a process and thread); `None` if its work is not wanted,
    /// because the options name another process.
    pub(super) fn process(&mut self, global: Option<i64>) -> Option<ProcessId> {
        let inventory = &mut self.profile.inventory;
        match global {
            Some(global) => {
                let pid = pid_of(global);
                if self.pid.is_some_and(|wanted| wanted != pid) {
                    return None;
                }
                Some(inventory.process(pid))
            }
            // Exports from before 2021 have no global ids, nor have those of some converters.
            None => Some(match self.pid {
                Some(pid) => inventory.process(pid),
                None => inventory.unnamed_process(),
            }),
        }
    }

    /// Scans a table of intervals, which begins with `start`, `end` and `globalTid`, and counts rows whose times are
    /// missing or impossible as losses of a kind. Each row comes with its process, thread and span.
    pub(super) fn scan_spans(
        &mut self,
        (table, kind): (&'static str, LossKind),
        columns: &[&str],
        mut take: impl FnMut(&mut Import, &Row, (ProcessId, Option<ThreadId>, Span)),
    ) -> Result<(), Error> {
        let mut refused = 0;
        let columns = [&["start", "end", "globalTid"], columns].concat();
        self.scan(table, &columns, |import, row| {
            let Some(process) = import.process(row.integer(2)) else {
                return;
            };
            match span(row) {
                Some(span) => take(import, row, (process, row.integer(2).map(thread_of), span)),
                None => refused += 1,
            }
        })?;
        let reason = "the file has no times of them, or impossible ones";
        self.profile.inventory.lose(kind, refused, reason);
        Ok(())
    }

    /// Counts the rows of tables that were not read, and the damage to the file, as losses.
    fn count_the_rest(&mut self) -> Result<(), Error> {
        let names: Vec<String> = (self.database.tables.iter())
            .map(|table| table.name.clone())
            .filter(|name| !self.used.contains(&name.as_str()) && !says_nothing_of_events(name))
            .collect();
        for name in names {
            let rows = match self.database.table(&name) {
                Some(table) => self.database.count(table)?,
                None => 0,
            };
            let kind = format!("rows of {name}");
            self.profile.inventory.lose(kind, rows, NO_PLACE);
        }
        self.damage.add_to(&mut self.profile.inventory.losses);
        Ok(())
    }
}

/// Returns the span of a row whose first columns are `start` and `end`; `None` for missing or impossible times.
pub(super) fn span(row: &Row) -> Option<Span> {
    Span::checked(row.integer(0)?, row.integer(1)?)
}

/// Returns the pid of a global id, in bits 24 to 47.
pub(super) fn pid_of(global: i64) -> u32 {
    ((global >> 24) & 0xff_ffff) as u32
}

/// Returns the thread id of a global id, in bits 0 to 23.
pub(super) fn thread_of(global: i64) -> ThreadId {
    ThreadId((global & 0xff_ffff) as u32)
}
