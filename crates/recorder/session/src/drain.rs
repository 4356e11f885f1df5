//! From the spool into the trace, with checkpoints from which another session can go on.

mod checkpoint;
mod counters;
mod finish;
mod process;
mod ranks;
mod stacks;

use crate::assembler::{Assembler, BusyInterval};
use crate::conditions::Heard;
use crate::{Error, procfs};
use checkpoint::{Checkpoint, CheckpointRef, Position, STATE_VERSION};
pub use finish::remove_leftovers;
use finish::write_sources;
use gapscope_model::LossKind;
use gapscope_spool::reader::{Damage, Until};
use gapscope_spool::{ProcessSpool, SpoolReader};
use gapscope_trace::Names;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::{Device, Manifest, SamplingMode, Unmeasured};
use gapscope_trace::measured::Store;
use gapscope_trace::{Parts, Selection, Trace, TraceWriter};
pub use process::DrainedProcess;
use ranks::{RankTrace, rank_folder};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The spool in a trace's folder.
pub const SPOOL: &str = "spool";
/// The layer's manifest in a trace's folder.
pub const LAYER: &str = "layer";

/// What is fixed when a recording begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// The command.
    pub command: Vec<String>,
    /// How the GPU is sampled.
    pub mode: SamplingMode,
    /// Names for kernels.
    pub names: Names,
    /// How often stacks are sampled; absent where they are not.
    pub stack_rate_hz: Option<u32>,
    /// Start on the host's monotonic clock.
    pub start_ns: i64,
    /// The same on the wall clock.
    pub start_unix_ns: i64,
    /// The session's process.
    pub session_pid: u32,
}

/// Drains the spool of one recording.
#[derive(Debug)]
pub struct Drain {
    /// What is fixed.
    pub header: Header,
    /// The events' way to rows, of processes without a rank.
    pub assembler: Assembler,
    writer: TraceWriter,
    /// Traces of ranks, in folders of their own.
    ranks: Vec<RankTrace>,
    spool: SpoolReader,
    processes: Vec<DrainedProcess>,
    /// Positions of a checkpoint, of processes that have not been found again yet.
    resumed: Vec<Position>,
    /// Folders that are not spools of processes, reported once.
    unreadable: HashSet<PathBuf>,
    /// Conditions that could not be measured.
    unmeasured: Vec<Unmeasured>,
    sampled: stacks::Sampled,
}

impl Drain {
    /// Begins a recording in a new folder.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(folder: &Path, header: Header) -> Result<Drain, Error> {
        let writer = TraceWriter::create(folder)?;
        let spool = folder.join(SPOOL);
        gapscope_trace::own_folder(&spool).map_err(Error::io(&spool))?;
        let mut drain = Drain {
            assembler: Assembler::new(header.mode),
            header,
            writer,
            ranks: Vec::new(),
            spool: SpoolReader::open(spool),
            processes: Vec::new(),
            resumed: Vec::new(),
            unreadable: HashSet::new(),
            unmeasured: Vec::new(),
            sampled: stacks::Sampled::default(),
        };
        drain.checkpoint()?;
        Ok(drain)
    }

    /// Goes on from the last checkpoint of a recording whose session is gone.
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
                let writer = TraceWriter::resume(&rank_folder(folder, rank), &parts)?;
                Ok(RankTrace {
                    rank,
                    refused: assembler.captures().len(),
                    assembler,
                    writer,
                })
            });
        Ok(Drain {
            header: checkpoint.header,
            assembler: checkpoint.assembler,
            writer,
            ranks: ranks.collect::<Result<_, Error>>()?,
            spool: SpoolReader::open(folder.join(SPOOL)),
            processes: Vec::new(),
            resumed: checkpoint.processes,
            unreadable: HashSet::new(),
            unmeasured: checkpoint.unmeasured,
            sampled: stacks::Sampled::default(),
        })
    }

    /// The folder of the trace.
    pub fn folder(&self) -> &Path {
        self.writer.folder()
    }

    /// Bytes of the trace so far.
    pub fn bytes_written(&self) -> u64 {
        let ranks: u64 = self.ranks.iter().map(|r| r.writer.bytes_written()).sum();
        self.writer.bytes_written() + ranks
    }

    /// The processes that have appeared.
    pub fn processes(&self) -> &[DrainedProcess] {
        &self.processes
    }

    /// Bytes of spool that the processes have made and that are not deleted yet.
    pub fn waiting_bytes(&self) -> u64 {
        self.processes
            .iter()
            .map(DrainedProcess::waiting_bytes)
            .sum()
    }

    /// Finds new processes.
    pub fn find_processes(&mut self) {
        let found = match self.spool.new_processes() {
            Ok(found) => found,
            Err(error) => {
                if self.unreadable.insert(error.path().to_owned()) {
                    let reason = format!("their spool cannot be read: {error}");
                    self.assembler.lose(LossKind::Processes, 1, reason);
                }
                return;
            }
        };
        for mut spool in found {
            let name = folder_name(&spool);
            let known = self.resumed.iter().position(|p| p.folder == name);
            let rank = spool.control().rank();
            let (trace, id, earlier) = match known.map(|index| self.resumed.swap_remove(index)) {
                Some(position) => {
                    spool.resume_at(position.position);
                    let earlier = Damage {
                        missing_records: position.missing_records,
                        undecodable_records: position.undecodable_records,
                    };
                    (position.trace, position.id, earlier)
                }
                None => {
                    let trace = rank.and_then(|rank| self.rank_trace(rank));
                    let assembler = match trace {
                        Some(trace) => &mut self.ranks[trace].assembler,
                        None => &mut self.assembler,
                    };
                    let id = assembler.add_process(spool.pid(), spool.start_ns());
                    (trace, id, Damage::default())
                }
            };
            self.processes.push(DrainedProcess {
                id,
                trace,
                number: procfs::number_here(&spool),
                spool,
                earlier,
                ended: false,
            });
        }
    }

    /// Drains what is there. A process that has ended is drained to its end.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.find_processes();
        for index in 0..self.processes.len() {
            if !self.processes[index].ended {
                // Asked first: what a process that is gone has written is all there.
                let until = if self.processes[index].is_alive() {
                    Until::Committed
                } else {
                    Until::End
                };
                self.drain_process(index, until)?;
            }
        }
        self.refuse_captures_of_ranks();
        Ok(())
    }

    /// Drains everything to its end.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub fn drain_all(&mut self) -> Result<(), Error> {
        self.find_processes();
        for index in 0..self.processes.len() {
            self.drain_process(index, Until::End)?;
        }
        Ok(())
    }

    fn drain_process(&mut self, index: usize, until: Until) -> Result<(), Error> {
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
        process.spool.drain(until, |thread, event| {
            assembler.apply(id, thread, event, writer.tables_mut());
            if let Err(error) = writer.flush_full() {
                refused.get_or_insert(error);
            }
        })?;
        if until == Until::End {
            process.ended = true;
            if !process.is_alive() {
                assembler.ended_suddenly(id);
            }
            while assembler.settle_some(id, writer.tables_mut()) {
                writer.flush_full()?;
            }
            assembler.end_process(id, writer.tables_mut());
            writer.flush_full()?;
        }
        write_sources(assembler, writer)?;
        refused.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Command buffers seen finished since the last call.
    pub fn take_busy(&mut self) -> Vec<BusyInterval> {
        let mut busy = self.assembler.take_busy();
        for rank in &mut self.ranks {
            busy.extend(rank.assembler.take_busy());
        }
        busy
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

    /// The trace so far, as if everything had ended now; the recording goes on.
    ///
    /// # Errors
    /// The trace cannot be written or read.
    pub fn so_far(&mut self) -> Result<Trace, Error> {
        self.checkpoint()?;
        let (mut trace, _) = gapscope_trace::read(self.folder(), &Selection::all())?;
        // A copy by way of the checkpoint: nothing that it does is seen by the recording.
        let mut copy = Checkpoint::read(self.folder())?.assembler;
        copy.finish(&self.header.names, &mut trace.tables);
        copy.describe(&mut trace.manifest);
        Ok(trace)
    }

    /// Tells a process that the session is done with one of its captures.
    pub fn capture_done(&self, process: ProcessId, number: u32, failed: bool) {
        let of_own = |p: &&DrainedProcess| p.trace.is_none() && p.id == process;
        let Some(process) = self.processes.iter().find(of_own) else {
            return;
        };
        process.capture_done(number, failed);
    }

    fn close_parts(&mut self) -> Result<Parts, Error> {
        let parts = self.writer.checkpoint()?;
        self.writer.write_manifest(&self.manifest())?;
        Ok(parts)
    }

    /// From here on a resumption goes on behind what has been drained.
    fn write_state(&self, parts: &Parts, ranks: &[Parts]) -> Result<(), Error> {
        let processes = self
            .processes
            .iter()
            .map(|process| {
                let damage = process.damage();
                Position {
                    folder: folder_name(&process.spool),
                    trace: process.trace,
                    id: process.id,
                    position: process.spool.position(),
                    missing_records: damage.missing_records,
                    undecodable_records: damage.undecodable_records,
                }
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

    fn delete_consumed(&mut self) {
        for process in &mut self.processes {
            process.spool.delete_consumed();
        }
    }

    /// What is known so far of the recording's own trace.
    pub fn manifest(&self) -> Manifest {
        let mut manifest = self.manifest_of(&self.assembler);
        manifest.ranks = self.ranks.iter().map(|r| r.rank.rank).collect();
        manifest.ranks.sort_unstable();
        manifest
    }

    fn manifest_of(&self, assembler: &Assembler) -> Manifest {
        let mut manifest = Manifest {
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.header.command.clone(),
            sampling_mode: self.header.mode,
            start_ns: self.header.start_ns,
            start_unix_ns: Some(self.header.start_unix_ns),
            host: crate::host::describe(),
            stack_rate_hz: self.header.stack_rate_hz,
            ..Manifest::default()
        };
        assembler.describe(&mut manifest);
        manifest.unmeasured.clone_from(&self.unmeasured);
        if let Some(store) = Store::for_user() {
            store.add_to(&mut manifest);
        }
        manifest.end_ns = assembler.latest_ns().max(manifest.start_ns);
        manifest
    }

    fn assemblers(&self) -> impl Iterator<Item = &Assembler> {
        std::iter::once(&self.assembler).chain(self.ranks.iter().map(|r| &r.assembler))
    }

    /// Dispatches so far.
    pub fn dispatches(&self) -> u64 {
        self.assemblers().map(Assembler::dispatches).sum()
    }

    /// Submissions so far.
    pub fn submissions(&self) -> u64 {
        self.assemblers().map(Assembler::submissions).sum()
    }

    /// Devices so far, each as one process uses it.
    pub fn devices(&self) -> usize {
        self.assemblers().map(Assembler::devices).sum()
    }

    /// The devices themselves, of all traces.
    pub fn device_facts(&self) -> impl Iterator<Item = &Device> {
        self.assemblers().flat_map(Assembler::device_facts)
    }

    /// Takes what was measured beside the program into the traces that it is of.
    pub fn hear(&mut self, heard: Vec<Heard>) {
        for said in heard {
            match said {
                Heard::Reading(reading) => {
                    self.assembler.condition(&reading, self.writer.tables_mut());
                    for rank in &mut self.ranks {
                        rank.assembler.condition(&reading, rank.writer.tables_mut());
                    }
                }
                Heard::Unmeasured(unmeasured) => {
                    if !self.unmeasured.contains(&unmeasured) {
                        self.unmeasured.push(unmeasured);
                    }
                }
            }
        }
    }

    /// When the first submission began.
    pub fn first_submit_ns(&self) -> Option<i64> {
        self.assemblers()
            .filter_map(Assembler::first_submit_ns)
            .min()
    }

    /// Why there may be no GPU work, as hooks say.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let all = self.assemblers().flat_map(Assembler::reasons);
        all.map(String::as_str)
    }

    /// True when a hook recorded a process: `vulkan`, `cuda`.
    pub fn is_recorded(&self, pid: u32, hook: &str) -> bool {
        let of_hook = |process: &DrainedProcess| match process.trace {
            Some(trace) => self.ranks[trace].assembler.is_of_hook(process.id, hook),
            None => self.assembler.is_of_hook(process.id, hook),
        };
        self.processes.iter().any(|p| p.pid() == pid && of_hook(p))
    }

    /// True when a hook recorded any process.
    pub fn has_hook(&self, hook: &str) -> bool {
        self.assemblers().any(|a| a.has_hook(hook))
    }
}

fn folder_name(spool: &ProcessSpool) -> String {
    let name = spool.folder().file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The header of a recording's checkpoint.
pub fn read_header(folder: &Path) -> Result<Header, Error> {
    Ok(Checkpoint::read(folder)?.header)
}

/// Where a recording's spool is.
pub fn spool_folder(folder: &Path) -> PathBuf {
    folder.join(SPOOL)
}

#[cfg(test)]
mod tests;
