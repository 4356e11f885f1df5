//! Imports rocpd, the SQLite database that rocprofv3 writes by default.
//!
//! The names of its tables end with the id of the process that wrote them, `rocpd_kernel_dispatch_…`. A file may hold
//! several processes, and several files of one machine can be imported at once, because their times have one clock.
//! The table of [rocprofv3](crate::rocprofv3), which the same tool writes as JSON, also holds for these rows.

use crate::inventory::NO_PLACE;
use crate::output::Output;
use crate::profile::{Correlation, Profile};
use crate::rocm::{self, Agent, Copy, Dispatch, Memory, Recorded, Region, Symbol, device_name};
use crate::sqlite::{self, Damage, Database, Row, is_database};
use crate::{Error, Importer, Options};
use gapscope_trace::build::TextId;
use gapscope_trace::ids::ThreadId;
use gapscope_trace::manifest::{Device, DeviceProperties};
use gapscope_trace::tables::MemoryEvent;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Imports databases of rocprofv3.
pub const IMPORTER: Importer = Importer {
    name: "rocpd",
    reads: "rocpd databases of rocprofv3",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The start of the names of the tables of dispatches.
const DISPATCHES: &str = "rocpd_kernel_dispatch";

/// The names of the tables, besides those of dispatches and copies, that are read or that hold no events.
const USED: [&str; 17] = [
    "metadata",
    "string",
    "info_node",
    "info_process",
    "info_thread",
    "info_agent",
    "info_queue",
    "info_stream",
    "info_pmc",
    "info_code_object",
    "info_kernel_symbol",
    "track",
    "event",
    "arg",
    "region",
    "memory_allocate",
    "sample",
];

/// Returns whether a file is a database with a table of dispatches.
fn recognises(path: &Path) -> bool {
    is_database(path)
        && Database::list(path).is_ok_and(|database| {
            database
                .tables
                .iter()
                .any(|table| table.name.starts_with(DISPATCHES))
        })
}

/// Reads all processes of all files into one trace.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let mut profile = rocm::profile();
    let mut machines = Vec::new();
    let mut databases = Vec::new();
    for input in inputs {
        databases.push(Database::open(input)?);
    }
    let all: u64 = databases.iter().map(|database| database.bytes).sum();
    let mut read = 0;
    for database in &databases {
        let mut damage = database.damage;
        let suffixes = database
            .tables
            .iter()
            .filter_map(|table| table.name.strip_prefix(DISPATCHES));
        for suffix in suffixes {
            let mut file = File {
                database,
                suffix,
                damage: Damage::default(),
            };
            file.read(&mut profile, &mut machines, options)?;
            damage.add(file.damage);
        }
        damage.add_to(&mut profile.inventory.losses);
        count_the_rest(database, &mut profile)?;
        read += database.bytes;
        output.progress(read, all);
    }
    rocm::write(profile, machines, "database", options, output)
}

/// Counts the rows of all other tables as losses.
fn count_the_rest(database: &Database, profile: &mut Profile) -> Result<(), Error> {
    for table in &database.tables {
        let Some(name) = table.name.strip_prefix("rocpd_") else {
            continue;
        };
        let used = |known: &&&str| {
            let rest = name.strip_prefix(**known);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_') && rest.len() > 30)
        };
        if name.starts_with("kernel_dispatch")
            || name.starts_with("memory_copy")
            || USED.iter().find(used).is_some()
        {
            continue;
        }
        let rows = database.count(table)?;
        let plain = name
            .get(..name.len().saturating_sub(37))
            .filter(|_| name.len() > 37)
            .unwrap_or(name);
        let kind = format!("rows of rocpd_{plain}");
        profile.inventory.lose(kind, rows, NO_PLACE);
    }
    Ok(())
}

/// The tables of one process in a file.
struct File<'a> {
    database: &'a Database,
    /// The end of the names of the process's tables, with its underscore.
    suffix: &'a str,
    /// What could not be read.
    damage: Damage,
}

/// The facts of an event, to which the rows of calls, dispatches and copies refer.
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    /// The id of the text of the category.
    category: Option<i64>,
    correlation: Option<Correlation>,
    /// The text of the program's range; `None` for other events.
    message: Option<TextId>,
}

/// The texts and events of a process, to which its rows refer by id.
#[derive(Default)]
struct Names {
    texts: FxHashMap<i64, String>,
    events: FxHashMap<i64, Event>,
}

impl Names {
    /// Returns the text with an id; empty if there is none.
    fn text(&self, id: Option<i64>) -> &str {
        let text = id.and_then(|id| self.texts.get(&id));
        text.map_or("", String::as_str)
    }

    /// Returns the event with an id, or an event without facts.
    fn event(&self, id: Option<i64>) -> Event {
        let event = id.and_then(|id| self.events.get(&id));
        event.copied().unwrap_or_default()
    }
}

impl File<'_> {
    /// Passes the rows of one of the process's tables, if it exists, to `take`.
    fn scan(&mut self, table: &str, columns: &[&str], take: impl FnMut(&Row)) -> Result<(), Error> {
        let name = format!("rocpd_{table}{}", self.suffix);
        if let Some(facts) = self.database.table(&name) {
            let damage = sqlite::scan(&self.database.path, facts, columns, take)?;
            self.damage.add(damage);
        }
        Ok(())
    }

    /// Reads the tables of the process, unless the options name another one.
    fn read(
        &mut self,
        profile: &mut Profile,
        machines: &mut Vec<String>,
        options: &Options,
    ) -> Result<(), Error> {
        self.read_machine(profile, machines)?;
        let mut processes: Vec<(i64, u32, String)> = Vec::new();
        self.scan("info_process", &["id", "pid", "command"], |row| {
            if let (Some(id), Some(pid)) = (row.integer(0), row.small(1)) {
                processes.push((id, pid, row.string(2).unwrap_or_default()));
            }
        })?;
        let (_, pid, command) = processes.first().cloned().unwrap_or_default();
        if options.pid.is_some_and(|wanted| wanted != pid) {
            return Ok(());
        }
        // The database has the command as one text.
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let program = words.first().cloned().unwrap_or_default();
        let known = &mut profile.inventory.manifest.command;
        if known.is_empty() {
            *known = words;
        }
        let mut recorded = Recorded::new(profile, pid, &program);
        let mut names = Names::default();
        self.scan("string", &["id", "string"], |row| {
            names.texts.extend(row.integer(0).zip(row.string(1)));
        })?;
        self.read_agents(&mut recorded)?;
        self.read_names(&mut recorded)?;
        self.read_events(&mut names, &mut recorded)?;
        self.read_regions(&names, &mut recorded)?;
        self.read_work(&names, &mut recorded)?;
        recorded.finish();
        Ok(())
    }

    /// Adds the machine of the process to `machines` and to the manifest.
    fn read_machine(
        &mut self,
        profile: &mut Profile,
        machines: &mut Vec<String>,
    ) -> Result<(), Error> {
        let columns = [
            "machine_id",
            "system_name",
            "release",
            "hardware_name",
            "hostname",
        ];
        self.scan("info_node", &columns, |row| {
            let text = |at: usize| row.string(at).unwrap_or_default();
            machines.push(format!("{} {}", text(0), text(4)));
            let names = [1, 2, 3].map(text);
            profile.inventory.manifest.host = rocm::host(names.each_ref().map(String::as_str));
        })
    }

    /// Adds the GPUs.
    fn read_agents(&mut self, recorded: &mut Recorded) -> Result<(), Error> {
        let columns = [
            "id",
            "type",
            "nid",
            "absolute_index",
            "name",
            "product_name",
            "model_name",
            "extdata",
        ];
        self.scan("info_agent", &columns, |row| {
            let (Some(id), Some(b"GPU")) = (row.integer(0), row.text(1)) else {
                return;
            };
            let text = |at: usize| row.string(at).filter(|text| !text.is_empty());
            // The index of the GPU in its machine is the same in all processes.
            let index = row.integer(3).unwrap_or(id);
            let facts = Device {
                name: device_name(text(5).or(text(6)), text(4)),
                uuid: format!("{:x}-{index:x}", row.integer(2).unwrap_or(0)),
                limits: text(7).and_then(|json| limits(&json)),
                ..Device::default()
            };
            recorded.add_gpu(Agent(id as u64), facts);
        })
    }

    /// Names the streams and threads, and adds the kernels.
    fn read_names(&mut self, recorded: &mut Recorded) -> Result<(), Error> {
        self.scan("info_stream", &["id", "name"], |row| {
            if let (Some(id), Some(name)) = (row.integer(0), row.string(1)) {
                recorded.name_stream(id as u64, name);
            }
        })?;
        let process = recorded.process;
        self.scan("info_thread", &["tid", "name"], |row| {
            if let (Some(thread), Some(name)) = (row.small(0), row.string(1)) {
                let inventory = &mut recorded.profile.inventory;
                inventory.name_thread(process, ThreadId(thread), name);
            }
        })?;
        let columns = [
            "id",
            "kernel_name",
            "display_name",
            "group_segment_size",
            "arch_vgpr_count",
        ];
        self.scan("info_kernel_symbol", &columns, |row| {
            if let Some(id) = row.integer(0) {
                let [mangled, name] = [1, 2].map(|at| row.string(at).unwrap_or_default());
                let symbol = Symbol {
                    name: &name,
                    mangled: &mangled,
                    registers: row.small(4),
                    shared_bytes: row.small(3),
                };
                recorded.add_symbol(id as u64, symbol);
            }
        })
    }

    /// Reads the events, to which other rows refer, into `names`.
    fn read_events(&mut self, names: &mut Names, recorded: &mut Recorded) -> Result<(), Error> {
        let columns = ["id", "category_id", "stack_id", "extdata"];
        self.scan("event", &columns, |row| {
            let Some(id) = row.integer(0) else { return };
            let category = row.integer(1);
            let is_marker = rocm::is_of_marker(names.text(category));
            let message = row.text(3).filter(|_| is_marker).and_then(message);
            let event = Event {
                category,
                correlation: correlation(row.integer(2)),
                message: message.map(|text| recorded.profile.text(&text)),
            };
            names.events.insert(id, event);
        })
    }

    /// Reads the calls and ranges of threads, and samples, which are ranges without duration.
    fn read_regions(&mut self, names: &Names, recorded: &mut Recorded) -> Result<(), Error> {
        // A row refers to its thread by the id of a row in the table of threads.
        let mut threads: FxHashMap<i64, u32> = FxHashMap::default();
        self.scan("info_thread", &["id", "tid"], |row| {
            threads.extend(row.integer(0).zip(row.small::<u32>(1)));
        })?;
        let thread = |id: Option<i64>| {
            let id = id?;
            threads.get(&id).copied().or(u32::try_from(id).ok())
        };
        let columns = ["tid", "start", "end", "name_id", "event_id"];
        self.scan("region", &columns, |row| {
            let event = names.event(row.integer(4));
            recorded.add_region(Region {
                thread: thread(row.integer(0)),
                correlation: event.correlation,
                times: row.integer(1).zip(row.integer(2)),
                category: names.text(event.category),
                operation: names.text(row.integer(3)),
                message: event.message,
            });
        })?;
        let mut tracks: FxHashMap<i64, u32> = FxHashMap::default();
        self.scan("track", &["id", "tid"], |row| {
            tracks.extend(row.integer(0).zip(thread(row.integer(1))));
        })?;
        self.scan("sample", &["track_id", "timestamp", "event_id"], |row| {
            let event = names.event(row.integer(2));
            let category = names.text(event.category);
            recorded.add_region(Region {
                thread: row.integer(0).and_then(|id| tracks.get(&id).copied()),
                correlation: event.correlation,
                times: row.integer(1).zip(row.integer(1)),
                category,
                operation: category,
                message: event.message,
            });
        })
    }

    /// Reads dispatches, copies, and real allocations and frees of memory.
    fn read_work(&mut self, names: &Names, recorded: &mut Recorded) -> Result<(), Error> {
        let columns = [
            "agent_id",
            "kernel_id",
            "stream_id",
            "queue_id",
            "start",
            "end",
            "private_segment_size",
            "group_segment_size",
            "workgroup_size_x",
            "workgroup_size_y",
            "workgroup_size_z",
            "grid_size_x",
            "grid_size_y",
            "grid_size_z",
            "event_id",
        ];
        self.scan("kernel_dispatch", &columns, |row| {
            recorded.add_dispatch(Dispatch {
                agent: row.integer(0).map(|id| Agent(id as u64)),
                kernel: row.integer(1).unwrap_or(-1) as u64,
                stream: row.integer(2).or(row.integer(3)).map(|id| id as u64),
                times: row.integer(4).zip(row.integer(5)),
                private_bytes: row.small(6),
                group_bytes: row.small(7),
                workgroup: std::array::from_fn(|at| row.small(8 + at)),
                grid: std::array::from_fn(|at| row.small(11 + at)),
                correlation: names.event(row.integer(14)).correlation,
            });
        })?;
        let columns = [
            "start",
            "end",
            "name_id",
            "dst_agent_id",
            "src_agent_id",
            "size",
            "stream_id",
            "queue_id",
            "event_id",
        ];
        self.scan("memory_copy", &columns, |row| {
            let agent = |at: usize| row.integer(at).map(|id| Agent(id as u64));
            recorded.add_copy(Copy {
                times: row.integer(0).zip(row.integer(1)),
                operation: names.text(row.integer(2)),
                destination: agent(3),
                source: agent(4),
                bytes: row.small(5),
                stream: row.integer(6).or(row.integer(7)).map(|id| id as u64),
                correlation: names.event(row.integer(8)).correlation,
            });
        })?;
        self.scan(
            "memory_allocate",
            &["agent_id", "type", "level", "start", "address", "size"],
            |row| {
                let event = match (row.text(1), row.text(2)) {
                    (Some(b"ALLOC"), Some(b"REAL")) => MemoryEvent::Allocate,
                    (Some(b"FREE"), Some(b"REAL")) => MemoryEvent::Free,
                    _ => return,
                };
                if let (Some(at_ns), Some(address)) = (row.integer(3), row.integer(4)) {
                    recorded.add_memory(Memory {
                        agent: row.integer(0).map(|id| Agent(id as u64)),
                        at_ns,
                        event,
                        address: address as u64,
                        bytes: row.small(5),
                    });
                }
            },
        )
    }
}

/// Returns the correlation with an id (the number that joins a call with its work); 0 means none.
fn correlation(id: Option<i64>) -> Option<Correlation> {
    id.filter(|id| *id != 0).map(|id| Correlation(id as u64))
}

/// Returns the text of a range from `{"message": "…"}`; `None` for other texts.
fn message(json: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    Some(value.get("message")?.as_str()?.to_owned())
}

/// Returns the number of compute units and the highest clock of a device, from the description of its agent (AMD's word
/// for a GPU or CPU).
fn limits(json: &str) -> Option<DeviceProperties> {
    let agent: serde_json::Value = serde_json::from_str(json).ok()?;
    let number = |name: &str| {
        let number = agent.get(name).and_then(serde_json::Value::as_u64);
        number
            .filter(|number| *number > 0)
            .and_then(|number| u32::try_from(number).ok())
    };
    Some(DeviceProperties {
        multiprocessors: number("cu_count"),
        core_clock_khz: number("max_engine_clk_fcompute").and_then(|mhz| mhz.checked_mul(1000)),
        ..DeviceProperties::default()
    })
}
