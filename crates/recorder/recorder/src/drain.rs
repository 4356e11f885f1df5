//! Drains a recording's spool (the files into which hooks, the parts of gapscope inside the program's processes,
//! write events): reads the events, passes them to the assembler, which turns them into rows, and writes the rows to
//! the trace. Checkpoints keep the state from which another session (process of `gapscope record`) can continue.
//!
//! [`Drain::create`] or [`Drain::resume`] comes first; then [`Drain::drain`] and [`Drain::checkpoint`] again and
//! again; at the end [`Drain::drain_all`] and `finish` (module `finish`).

mod checkpoint;
mod counters;
mod finish;
mod process;
mod ranks;
mod stacks;

use crate::assembler::{Assembler, BusyInterval};
use crate::conditions::ConditionUpdate;
use crate::{Error, procfs};
use checkpoint::{Checkpoint, CheckpointRef, STATE_VERSION, SpoolPosition};
pub use finish::remove_leftovers;
use finish::write_sources;
use gapscope_files::ContainedPath;
use gapscope_model::LossKind;
use gapscope_spool::event::CommonEvent;
use gapscope_spool::reader::{Damage, DrainUntil};
use gapscope_spool::{Event, ProcessSpool, SpoolReader};
use gapscope_timeline_builder::kernel_accesses;
use gapscope_trace::Names;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::{Device, Manifest, SamplingMode, Unmeasured};
use gapscope_trace::measured::Store;
use gapscope_trace::tables::Tables;
use gapscope_trace::writer::SOURCES_FOLDER;
use gapscope_trace::{Parts, Selection, Trace, TraceWriter};
pub use process::DrainedProcess;
use ranks::{RankTrace, rank_folder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// The spool's folder inside a trace.
pub const SPOOL_FOLDER: &str = "spool";
/// The folder of the layer's manifest inside a trace.
pub const LAYER_FOLDER: &str = "layer";

/// The facts of a recording that are fixed when it begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordingHeader {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether the trace gets the arguments, of the command and of its processes.
    pub keeps_arguments: bool,
    /// The mode of timing: what of the GPU's work gets times.
    pub mode: SamplingMode,
    /// The names of kernels that the user has given, for the rows.
    pub names: Names,
    /// The rate at which stacks are sampled; absent when they are not.
    pub stack_rate_hz: Option<u32>,
    /// The start on the host's monotonic clock.
    pub start_ns: i64,
    /// The start on the wall clock.
    pub start_unix_ns: i64,
    /// The session's process.
    pub session_pid: u32,
}

impl RecordingHeader {
    /// Leaves the arguments out of a manifest, where the user does not want them in the trace.
    fn cut_arguments(&self, manifest: &mut Manifest) {
        if self.keeps_arguments {
            return;
        }
        manifest.command.truncate(1);
        for process in &mut manifest.processes {
            process.arguments.truncate(1);
        }
    }
}

/// Drains the spool of one recording.
#[derive(Debug)]
pub struct Drain {
    pub header: RecordingHeader,
    /// Turns events of processes without a rank into rows.
    pub assembler: Assembler,
    writer: TraceWriter,
    /// Whether files of source that code names are read. Events that are recovered may be a stranger's and name any file
    /// of the user.
    reads_code_files: bool,
    /// The traces of ranks (processes of a distributed program), each in a folder of its own.
    ranks: Vec<RankTrace>,
    /// Finds the processes that have begun to record; each is then in `processes`.
    spool: SpoolReader,
    processes: Vec<DrainedProcess>,
    /// The positions in a checkpoint of processes that have not been found again yet.
    resumed: Vec<SpoolPosition>,
    /// The folders that cannot be read as spools, each of which is reported once, and why.
    unreadable: BTreeMap<PathBuf, String>,
    /// The conditions that could not be measured.
    unmeasured: Vec<Unmeasured>,
    followed: stacks::FollowedThreads,
}

impl Drain {
    /// Begins a recording in a new folder.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(folder: &Path, header: RecordingHeader) -> Result<Drain, Error> {
        let writer = TraceWriter::create(folder)?;
        let spool = folder.join(SPOOL_FOLDER);
        gapscope_trace::create_private_folder(&spool).map_err(Error::io(&spool))?;
        let mut drain = Drain {
            assembler: Assembler::new(header.mode),
            header,
            writer,
            reads_code_files: true,
            ranks: Vec::new(),
            spool: SpoolReader::attach(spool),
            processes: Vec::new(),
            resumed: Vec::new(),
            unreadable: BTreeMap::new(),
            unmeasured: Vec::new(),
            followed: stacks::FollowedThreads::default(),
        };
        drain.checkpoint()?;
        Ok(drain)
    }

    /// Continues from the last checkpoint of a recording whose session is gone.
    ///
    /// # Errors
    /// There is no checkpoint, it is of another version, or the trace cannot be continued.
    pub fn resume(folder: &Path) -> Result<Drain, Error> {
        let checkpoint = Checkpoint::read(folder)?;
        let writer = TraceWriter::resume(folder, &checkpoint.parts)?;
        let ranks = checkpoint
            .ranks
            .into_iter()
            .map(|(rank, parts, assembler)| {
                let own = rank_folder(folder, rank);
                // The checkpoint may be a stranger's, and the folder a link to one of the user's.
                if !ContainedPath::from(&*own).is_folder() {
                    return Err(Error::NotRecoverable {
                        path: folder.to_owned(),
                        reason: format!("{} is no folder in it", own.display()),
                    });
                }
                let writer = TraceWriter::resume(&own, &parts)?;
                Ok(RankTrace {
                    rank,
                    refused_windows: assembler.captures().len(),
                    assembler,
                    writer,
                })
            });
        Ok(Drain {
            header: checkpoint.header,
            assembler: checkpoint.assembler,
            writer,
            reads_code_files: false,
            ranks: ranks.collect::<Result<_, Error>>()?,
            spool: SpoolReader::open(folder.join(SPOOL_FOLDER)),
            processes: Vec::new(),
            resumed: checkpoint.processes,
            unreadable: BTreeMap::new(),
            unmeasured: checkpoint.unmeasured,
            followed: stacks::FollowedThreads::default(),
        })
    }

    pub fn folder(&self) -> &Path {
        self.writer.folder()
    }

    /// Returns the size of the trace so far.
    pub fn bytes_written(&self) -> u64 {
        let ranks: u64 = self.ranks.iter().map(|r| r.writer.bytes_written()).sum();
        self.writer.bytes_written() + ranks
    }

    pub fn processes(&self) -> &[DrainedProcess] {
        &self.processes
    }

    /// Returns why processes could not be read.
    pub fn unreadable(&self) -> impl Iterator<Item = &str> {
        self.unreadable.values().map(String::as_str)
    }

    /// Returns the bytes of spool that the processes have written and that are not deleted yet.
    pub fn waiting_bytes(&self) -> u64 {
        self.processes
            .iter()
            .map(DrainedProcess::waiting_bytes)
            .sum()
    }

    /// Finds processes that have begun to record since the last call, and gives each its trace: its rank's, or the
    /// recording's own. A folder that cannot be read counts as a lost process, once.
    pub fn find_processes(&mut self) {
        let found = match self.spool.new_processes() {
            Ok(found) => found,
            Err(error) => {
                let path = error.path().to_owned();
                if let Entry::Vacant(new) = self.unreadable.entry(path) {
                    let reason = match &error {
                        gapscope_spool::Error::OtherBuild { .. } => error.to_string(),
                        _ => format!("their spool cannot be read: {error}"),
                    };
                    let reason = new.insert(reason).clone();
                    self.assembler.lose(LossKind::Processes, 1, reason);
                }
                return;
            }
        };
        for mut spool in found {
            let name = folder_name(&spool);
            let known = self.resumed.iter().position(|p| p.folder == name);
            let rank = spool.control().rank();
            let resumed = known.map(|index| self.resumed.swap_remove(index));
            let (trace, id, earlier_damage) = match resumed {
                Some(position) => {
                    spool.resume_at(position.position);
                    (position.trace, position.id, position.damage)
                }
                None => {
                    let trace = rank.and_then(|rank| self.rank_trace(rank));
                    let (assembler, _) = self.trace_mut(trace);
                    let id = assembler.add_process(spool.pid(), spool.start_ns());
                    (trace, id, Damage::default())
                }
            };
            let pid_here = procfs::pid_here(&spool);
            let on_session_clock = &spool.control().page().on_session_clock;
            if on_session_clock.load(Relaxed) == 0 && pid_here.is_some_and(procfs::has_own_clocks) {
                let (assembler, _) = self.trace_mut(trace);
                assembler.note(&format!(
                    "Process {} has clocks of its own (a time namespace), and it is not known by how much they differ: its times \
                     differ by a fixed amount from those of other processes, of stacks and of the machine's conditions.",
                    spool.pid()
                ));
            }
            self.processes.push(DrainedProcess {
                id,
                trace,
                pid_here,
                spool,
                earlier_damage,
                ended: false,
            });
        }
    }

    /// Drains what is committed. A process that has ended is drained to its end.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.find_processes();
        for index in 0..self.processes.len() {
            if !self.processes[index].ended {
                // Liveness is asked first, so that everything a dead process has written is there to read.
                let until = if self.processes[index].is_alive() {
                    DrainUntil::Committed
                } else {
                    DrainUntil::End
                };
                self.drain_process(index, until)?;
            }
        }
        self.refuse_windows_of_ranks();
        Ok(())
    }

    /// Drains everything to its end.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub fn drain_all(&mut self) -> Result<(), Error> {
        self.find_processes();
        for index in 0..self.processes.len() {
            self.drain_process(index, DrainUntil::End)?;
        }
        Ok(())
    }

    /// Drains the spool of the process with this index up to `until` into its trace. At [`DrainUntil::End`] its rows
    /// are completed, and it counts as ended.
    fn drain_process(&mut self, index: usize, until: DrainUntil) -> Result<(), Error> {
        let process = &mut self.processes[index];
        let id = process.id;
        let (assembler, writer) = match process.trace {
            Some(trace) => {
                let rank = &mut self.ranks[trace];
                (&mut rank.assembler, &mut rank.writer)
            }
            None => (&mut self.assembler, &mut self.writer),
        };
        let mut refused = None;
        process.watch_filters();
        let pid = process.pid();
        process.spool.drain(until, |thread, event| {
            let unnamed = matches!(&event, Event::Common(CommonEvent::Thread { name: "", .. }));
            assembler.apply(id, thread, event, writer.tables_mut());
            // A process that filters its system calls asks for no names.
            if unnamed && let Some(name) = procfs::thread_name(pid, thread.0) {
                assembler.name_thread(id, ThreadId(thread.0), name);
            }
            if let Err(error) = writer.flush_full() {
                refused.get_or_insert(error);
            }
        })?;
        if until == DrainUntil::End {
            process.ended = true;
            process.spool.finish();
            if !process.is_alive() {
                assembler.ended_suddenly(id);
            }
            while assembler.settle_some(id, writer.tables_mut()) {
                writer.flush_full()?;
            }
            assembler.end_process(id, writer.tables_mut());
            writer.flush_full()?;
        }
        write_sources(assembler, writer, self.reads_code_files)?;
        refused.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns, from all traces, the times of the command buffers that were seen finished since the last call.
    pub fn take_busy(&mut self) -> Vec<BusyInterval> {
        self.traces_mut()
            .flat_map(|(assembler, _)| assembler.take_busy())
            .collect()
    }

    /// Makes everything drained so far durable, then deletes it from the spool.
    ///
    /// # Errors
    /// The trace cannot be written. The last checkpoint stays.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        let parts = self.close_parts()?;
        let ranks = self.close_rank_parts()?;
        self.write_state(&parts, &ranks)?;
        self.delete_consumed();
        Ok(())
    }

    /// Returns the trace so far, as if everything had ended now. The recording continues.
    ///
    /// # Errors
    /// The trace cannot be written or read.
    pub fn trace_so_far(&mut self) -> Result<Trace, Error> {
        self.checkpoint()?;
        let (mut trace, _) = gapscope_trace::read(self.folder(), &Selection::all())?;
        // The checkpoint gives a copy of the assembler, so that finishing it does not disturb the recording.
        let mut copy = Checkpoint::read(self.folder())?.assembler;
        copy.finish(&self.header.names, &mut trace.tables);
        let sources = ContainedPath::new(self.folder(), SOURCES_FOLDER);
        kernel_accesses::fill(&sources, &mut trace.tables.kernels);
        copy.describe(&mut trace.manifest);
        self.header.cut_arguments(&mut trace.manifest);
        Ok(trace)
    }

    /// Tells a process of the recording's own trace that the session is done with its window (a captured part of its
    /// run) of this number, and whether that failed.
    pub fn window_done(&self, process: ProcessId, number: u32, failed: bool) {
        let of_own = |p: &&DrainedProcess| p.trace.is_none() && p.id == process;
        let Some(process) = self.processes.iter().find(of_own) else {
            return;
        };
        process.window_done(number, failed);
    }

    /// Writes the rows so far and the manifest of the recording's own trace.
    fn close_parts(&mut self) -> Result<Parts, Error> {
        let parts = self.writer.checkpoint()?;
        self.writer.write_manifest(&self.manifest())?;
        Ok(parts)
    }

    /// Writes the state from which a resumed session continues behind what has been drained.
    fn write_state(&self, parts: &Parts, ranks: &[Parts]) -> Result<(), Error> {
        let processes = self
            .processes
            .iter()
            .map(|process| SpoolPosition {
                folder: folder_name(&process.spool),
                trace: process.trace,
                id: process.id,
                position: process.spool.position(),
                damage: process.damage(),
            })
            .collect();
        let checkpoint = CheckpointRef {
            version: STATE_VERSION,
            header: &self.header,
            parts,
            assembler: &self.assembler,
            ranks: (self.ranks.iter().zip(ranks))
                .map(|(rank, parts)| (rank.rank, parts, &rank.assembler))
                .collect(),
            processes,
            unmeasured: &self.unmeasured,
        };
        checkpoint.write(self.folder())
    }

    /// Deletes from the spools what has been drained.
    fn delete_consumed(&mut self) {
        for process in &mut self.processes {
            process.spool.delete_consumed();
        }
    }

    /// Returns the manifest of the recording's own trace as far as it is known.
    pub fn manifest(&self) -> Manifest {
        let mut manifest = self.manifest_of(&self.assembler);
        manifest.ranks = self.ranks.iter().map(|r| r.rank.rank).collect();
        manifest.ranks.sort_unstable();
        manifest
    }

    /// Returns the manifest of the trace of an assembler, without the facts of ranks.
    fn manifest_of(&self, assembler: &Assembler) -> Manifest {
        let mut manifest = Manifest {
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.header.command.clone(),
            sampling_mode: self.header.mode,
            start_ns: self.header.start_ns,
            start_unix_ns: Some(self.header.start_unix_ns),
            host: crate::machine::describe(),
            stack_rate_hz: self.header.stack_rate_hz,
            ..Manifest::default()
        };
        assembler.describe(&mut manifest);
        self.header.cut_arguments(&mut manifest);
        manifest.unmeasured.clone_from(&self.unmeasured);
        if let Some(store) = Store::for_user() {
            store.add_to(&mut manifest);
        }
        manifest.end_ns = assembler.latest_ns().max(manifest.start_ns);
        manifest
    }

    /// Returns the assembler and the tables of the rank's trace with this index, or of the recording's own for
    /// `None`.
    fn trace_mut(&mut self, trace: Option<usize>) -> (&mut Assembler, &mut Tables) {
        match trace {
            Some(trace) => {
                let rank = &mut self.ranks[trace];
                (&mut rank.assembler, rank.writer.tables_mut())
            }
            None => (&mut self.assembler, self.writer.tables_mut()),
        }
    }

    /// Returns the assemblers and the tables of the recording's own trace and of those of ranks.
    fn traces_mut(&mut self) -> impl Iterator<Item = (&mut Assembler, &mut Tables)> {
        let ranks = self.ranks.iter_mut();
        let ranks = ranks.map(|rank| (&mut rank.assembler, rank.writer.tables_mut()));
        std::iter::once((&mut self.assembler, self.writer.tables_mut())).chain(ranks)
    }

    fn assembler_of(&self, trace: Option<usize>) -> &Assembler {
        trace.map_or(&self.assembler, |trace| &self.ranks[trace].assembler)
    }

    fn assemblers(&self) -> impl Iterator<Item = &Assembler> {
        std::iter::once(&self.assembler).chain(self.ranks.iter().map(|r| &r.assembler))
    }

    /// Returns the number of dispatches in all traces so far.
    pub fn dispatches(&self) -> u64 {
        self.assemblers().map(Assembler::dispatches).sum()
    }

    /// Returns the number of submissions in all traces so far.
    pub fn submissions(&self) -> u64 {
        self.assemblers().map(Assembler::submissions).sum()
    }

    /// Returns the number of devices so far, where a device counts once for each process that uses it.
    pub fn devices(&self) -> usize {
        self.assemblers().map(Assembler::devices).sum()
    }

    /// Returns the devices of all traces.
    pub fn device_facts(&self) -> impl Iterator<Item = &Device> {
        self.assemblers().flat_map(Assembler::device_facts)
    }

    /// Adds conditions that were measured beside the program to the traces that they concern.
    pub fn take_condition_updates(&mut self, updates: Vec<ConditionUpdate>) {
        for update in updates {
            match update {
                ConditionUpdate::Reading(reading) => {
                    for (assembler, tables) in self.traces_mut() {
                        assembler.condition(&reading, tables);
                    }
                }
                ConditionUpdate::Unmeasured(unmeasured) => {
                    if !self.unmeasured.contains(&unmeasured) {
                        self.unmeasured.push(unmeasured);
                    }
                }
            }
        }
    }

    /// Returns the start of the first submission, if there is one.
    pub fn first_submit_ns(&self) -> Option<i64> {
        self.assemblers()
            .filter_map(Assembler::first_submit_ns)
            .min()
    }

    /// Returns the reasons that hooks gave for recording no GPU work.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let all = self.assemblers().flat_map(Assembler::reasons);
        all.map(String::as_str)
    }

    /// Returns true when the hook (`vulkan` or `cuda`) recorded the process.
    pub fn is_recorded(&self, pid: u32, hook: &str) -> bool {
        self.processes.iter().any(|process| {
            let assembler = self.assembler_of(process.trace);
            process.pid() == pid && assembler.is_of_hook(process.id, hook)
        })
    }

    /// Returns true when the hook recorded any process.
    pub fn has_hook(&self, hook: &str) -> bool {
        self.assemblers().any(|a| a.has_hook(hook))
    }
}

/// Returns the name of a process's folder in the spool.
fn folder_name(spool: &ProcessSpool) -> String {
    let name = spool.folder().file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads the header from a recording's checkpoint.
pub fn read_header(folder: &Path) -> Result<RecordingHeader, Error> {
    Ok(Checkpoint::read(folder)?.header)
}

/// Returns the folder of a recording's spool.
pub fn spool_folder(folder: &Path) -> PathBuf {
    folder.join(SPOOL_FOLDER)
}

#[cfg(test)]
mod tests;
