//! Imports RPD, the SQLite database of rocmProfileData.
//!
//! `rocpd_api` has the calls of HIP and the program's ranges, which are calls named `UserMarker`; `rocpd_op` has the work of
//! GPUs. `rocpd_api_ops` joins both: work belongs to the process of its call. Arguments of launches and copies are in
//! `rocpd_kernelapi` and `rocpd_copyapi`, by their call. Older databases have the texts of ranges among all others, newer ones
//! in `rocpd_ustring`. Some writers give a grid in workgroups and others in work-items, so that the groups of a launch are unknown.

use crate::inventory::NO_PLACE;
use crate::output::Output;
use crate::profile::{Correlation, FileReasons, Profile};
use crate::rocm::{Agent, Copy, Dispatch, Recorded, Region, Symbol};
use crate::sqlite::{self, Damage, Database, Row, is_database};
use crate::transfers;
use crate::{Error, Importer, Options};
use gapscope_trace::manifest::{Api, Device};
use gapscope_trace::tables::TransferKind;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Imports databases of rocmProfileData.
pub const IMPORTER: Importer = Importer {
    name: "rpd",
    reads: "databases of rocmProfileData (.rpd)",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The name of the calls that are ranges or marks of the program.
const MARKER: &str = "UserMarker";

/// The tables that are read, or that hold nothing for a timeline.
const USED: [&str; 8] = [
    "rocpd_metadata",
    "rocpd_string",
    "rocpd_ustring",
    "rocpd_api",
    "rocpd_op",
    "rocpd_api_ops",
    "rocpd_kernelapi",
    "rocpd_copyapi",
];

/// Returns whether a file is a database with the tables of calls and of work.
fn recognises(path: &Path) -> bool {
    is_database(path)
        && Database::list(path).is_ok_and(|database| {
            let has = |name: &str| database.table(name).is_some();
            has("rocpd_api") && has("rocpd_op")
        })
}

/// Reads all processes of all files into one trace.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let mut profile = Profile::new("rocmProfileData", Api::Hip);
    let mut databases = Vec::new();
    for input in inputs {
        databases.push(Database::open(input)?);
    }
    let all: u64 = databases.iter().map(|database| database.bytes).sum();
    let mut read = 0;
    for database in &databases {
        let mut damage = database.damage;
        let file = File::read(database, &mut damage)?;
        file.add_to(&mut profile, options);
        damage.add_to(&mut profile.inventory.losses);
        for table in &database.tables {
            let name = table.name.as_str();
            if name.starts_with("rocpd_") && !USED.contains(&name) {
                let rows = database.count(table)?;
                let kind = format!("rows of {name}");
                profile.inventory.lose(kind, rows, NO_PLACE);
            }
        }
        read += database.bytes;
        output.progress(read, all);
    }
    if !profile.has_rows() {
        let what = "the database has no kernels, copies, calls or ranges";
        return Err(Error::nothing(match options.pid {
            Some(pid) => format!("{what} of process {pid}"),
            None => format!("{what}: record with `runTracer.sh -o FILE ./app`"),
        }));
    }
    let new = output.trace()?;
    profile.write(FileReasons::default(), options, new, output)
}

/// A call of HIP, or a range of the program.
struct Call {
    id: i64,
    pid: u32,
    thread: Option<u32>,
    times: Option<(i64, i64)>,
    name: i64,
    arguments: Option<i64>,
}

/// Work of a GPU.
struct Work {
    id: i64,
    gpu: u64,
    queue: Option<u64>,
    times: Option<(i64, i64)>,
    description: i64,
    kind: i64,
}

/// The arguments of a launch.
#[derive(Clone, Copy)]
struct Launch {
    workgroup: [Option<u32>; 3],
    group_bytes: Option<u32>,
    private_bytes: Option<u32>,
}

/// The rows of a file.
#[derive(Default)]
struct File {
    texts: FxHashMap<i64, String>,
    /// The texts of ranges; empty where they are among `texts`.
    messages: FxHashMap<i64, String>,
    calls: Vec<Call>,
    works: Vec<Work>,
    /// The call of each piece of work.
    callers: FxHashMap<i64, i64>,
    launches: FxHashMap<i64, Launch>,
    copied_bytes: FxHashMap<i64, u64>,
}

impl File {
    fn read(database: &Database, damage: &mut Damage) -> Result<File, Error> {
        let mut file = File::default();
        let mut scan = |table: &str, columns: &[&str], take: &mut dyn FnMut(&Row)| {
            if let Some(facts) = database.table(table) {
                damage.add(sqlite::scan(&database.path, facts, columns, take)?);
            }
            Ok::<_, Error>(())
        };
        let text = |texts: &mut FxHashMap<i64, String>, row: &Row| {
            texts.extend(row.integer(0).zip(row.string(1)));
        };
        scan("rocpd_string", &["id", "string"], &mut |row| {
            text(&mut file.texts, row);
        })?;
        scan("rocpd_ustring", &["id", "string"], &mut |row| {
            text(&mut file.messages, row);
        })?;
        let columns = ["id", "pid", "tid", "start", "end", "apiName_id", "args_id"];
        scan("rocpd_api", &columns, &mut |row| {
            let Some(id) = row.integer(0) else { return };
            file.calls.push(Call {
                id,
                pid: row.small(1).unwrap_or(0),
                thread: row.small(2),
                times: row.integer(3).zip(row.integer(4)),
                name: row.integer(5).unwrap_or(-1),
                arguments: row.integer(6),
            });
        })?;
        let columns = [
            "id",
            "gpuId",
            "queueId",
            "start",
            "end",
            "description_id",
            "opType_id",
        ];
        scan("rocpd_op", &columns, &mut |row| {
            let Some(id) = row.integer(0) else { return };
            file.works.push(Work {
                id,
                gpu: row.integer(1).unwrap_or(-1) as u64,
                queue: row.integer(2).map(|queue| queue as u64),
                times: row.integer(3).zip(row.integer(4)),
                description: row.integer(5).unwrap_or(-1),
                kind: row.integer(6).unwrap_or(-1),
            });
        })?;
        scan("rocpd_api_ops", &["api_id", "op_id"], &mut |row| {
            file.callers.extend(row.integer(1).zip(row.integer(0)));
        })?;
        let columns = [
            "api_ptr_id",
            "workgroupX",
            "workgroupY",
            "workgroupZ",
            "groupSegmentSize",
            "privateSegmentSize",
        ];
        scan("rocpd_kernelapi", &columns, &mut |row| {
            let launch = Launch {
                workgroup: [1, 2, 3].map(|at| row.small(at)),
                group_bytes: row.small(4),
                // Most writers have no bytes of local memory, and write 0.
                private_bytes: row.small(5).filter(|bytes| *bytes > 0),
            };
            file.launches.extend(row.integer(0).map(|id| (id, launch)));
        })?;
        scan("rocpd_copyapi", &["api_ptr_id", "size"], &mut |row| {
            let bytes = row.small(1).filter(|bytes| *bytes > 0);
            file.copied_bytes.extend(row.integer(0).zip(bytes));
        })?;
        Ok(file)
    }

    fn text(&self, id: i64) -> &str {
        self.texts.get(&id).map_or("", String::as_str)
    }

    /// Returns the text of a range.
    fn message(&self, id: Option<i64>) -> &str {
        let texts = match self.messages.is_empty() {
            true => &self.texts,
            false => &self.messages,
        };
        let text = id.and_then(|id| texts.get(&id));
        text.map_or("", String::as_str)
    }

    /// Adds the rows to a profile, process by process.
    fn add_to(&self, profile: &mut Profile, options: &Options) {
        let pid_of: FxHashMap<i64, u32> =
            self.calls.iter().map(|call| (call.id, call.pid)).collect();
        let mut pids: Vec<u32> = self.calls.iter().map(|call| call.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        let first = pids.first().copied().unwrap_or(0);
        if pids.is_empty() {
            pids.push(first);
        }
        let mut gpus: Vec<u64> = self.works.iter().map(|work| work.gpu).collect();
        gpus.sort_unstable();
        gpus.dedup();
        let is_wanted = |pid: &u32| options.pid.is_none_or(|wanted| wanted == *pid);
        for pid in pids.into_iter().filter(is_wanted) {
            let mut recorded = Recorded::new(profile, pid, "");
            for gpu in &gpus {
                let facts = Device {
                    name: format!("GPU {gpu}"),
                    // The number of a GPU is the same in all processes.
                    uuid: format!("gpu-{gpu}"),
                    ..Device::default()
                };
                recorded.add_gpu(Agent(*gpu), facts);
            }
            for call in self.calls.iter().filter(|call| call.pid == pid) {
                self.add_call(call, &mut recorded);
            }
            let mut kernels = FxHashMap::default();
            for work in &self.works {
                let caller = self.callers.get(&work.id).copied();
                let owner = caller.and_then(|call| pid_of.get(&call).copied());
                if owner.unwrap_or(first) == pid {
                    self.add_work(work, caller, &mut recorded, &mut kernels);
                }
            }
            recorded.finish();
        }
    }

    fn add_call(&self, call: &Call, recorded: &mut Recorded) {
        let name = self.text(call.name);
        let is_marker = name == MARKER;
        let message = is_marker.then(|| self.message(call.arguments));
        let message = message.map(|text| recorded.profile.text(text));
        recorded.add_region(Region {
            thread: call.thread,
            correlation: Some(Correlation(call.id as u64)),
            times: call.times,
            category: if is_marker {
                "MARKER"
            } else {
                "HIP_RUNTIME_API"
            },
            operation: name,
            message,
        });
    }

    /// Adds work. `kernels` are the numbers of kernels, by the ids of their names.
    fn add_work(
        &self,
        work: &Work,
        caller: Option<i64>,
        recorded: &mut Recorded,
        kernels: &mut FxHashMap<i64, u64>,
    ) {
        let kind = self.text(work.kind);
        let correlation = caller.map(|id| Correlation(id as u64));
        // Barriers order work and do none.
        if kind.contains("arrier") || kind == "Marker" {
            return;
        }
        if kind == "FillBuffer" || kind == "Memset" || transfers::is_transfer(kind) {
            let named = match transfers::kind(kind) {
                // The direction may stand in the description.
                TransferKind::Unknown => self.text(work.description),
                _ => kind,
            };
            let gpu = Some(Agent(work.gpu));
            let is_from_gpu = transfers::kind(named) == TransferKind::DeviceToHost;
            recorded.add_copy(Copy {
                source: gpu.filter(|_| is_from_gpu),
                destination: gpu.filter(|_| !is_from_gpu),
                stream: work.queue,
                correlation,
                times: work.times,
                operation: named,
                bytes: caller.and_then(|id| self.copied_bytes.get(&id).copied()),
            });
            return;
        }
        let next = kernels.len() as u64;
        let kernel = *kernels.entry(work.description).or_insert_with(|| {
            let symbol = Symbol {
                name: self.text(work.description),
                ..Symbol::default()
            };
            recorded.add_symbol(next, symbol);
            next
        });
        let launch = caller.and_then(|id| self.launches.get(&id).copied());
        recorded.add_dispatch(Dispatch {
            agent: Some(Agent(work.gpu)),
            stream: work.queue,
            kernel,
            correlation,
            times: work.times,
            workgroup: launch.map_or([None; 3], |launch| launch.workgroup),
            grid: [None; 3],
            private_bytes: launch.and_then(|launch| launch.private_bytes),
            group_bytes: launch.and_then(|launch| launch.group_bytes),
        });
    }
}
