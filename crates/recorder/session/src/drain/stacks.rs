//! What the sampler of stacks says, into the traces of the processes that it is about.

use super::Drain;
use crate::assembler::{Assembler, FrameFacts, SampleFacts};
use crate::procfs;
use gapscope_stacks::{Frame, Update as Heard};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::Process;
use gapscope_trace::tables::{SampleSource, Tables};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A process of the system, as it is here.
type Number = u32;

/// Which trace a process is in (`None`: the recording's own), and as which.
type Place = (Option<usize>, ProcessId);

/// Whom the sampler follows, and what it has said so far.
#[derive(Debug, Default)]
pub struct Sampled {
    /// Threads that are followed.
    threads: FxHashMap<(Number, ThreadId), Place>,
    workers: FxHashMap<Number, Place>,
    /// By the sampler's ids.
    stacks: Vec<Arc<[FrameFacts]>>,
}

impl Drain {
    /// Threads that submit or wait and are new: the process as it is here, and the thread as it calls itself.
    pub fn take_callers(&mut self) -> Vec<(u32, u32)> {
        let mut new: Vec<(Place, ThreadId)> = Vec::new();
        let mut take = |trace, assembler: &mut Assembler| {
            let callers = assembler.take_callers().into_iter();
            new.extend(callers.map(|(process, thread)| ((trace, process), thread)));
        };
        take(None, &mut self.assembler);
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            take(Some(at), &mut rank.assembler);
        }
        let mut followed = Vec::new();
        for (place, thread) in new {
            let of_place = |p: &&super::DrainedProcess| (p.trace, p.id) == place;
            let Some(process) = self.processes.iter().find(of_place) else {
                continue;
            };
            // One that is gone cannot be followed.
            if let Some(pid) = process.number {
                self.sampled.threads.insert((pid, thread), place);
                followed.push((pid, thread.0));
            }
        }
        followed
    }

    /// Takes what the sampler has said.
    pub fn hear_stacks(&mut self, heard: Vec<Heard>) {
        for said in heard {
            match said {
                Heard::Stack { id, frames } => {
                    debug_assert_eq!(id as usize, self.sampled.stacks.len());
                    let frames = frames.iter().map(|frame: &Frame| frame.into()).collect();
                    self.sampled.stacks.push(frames);
                }
                Heard::Sample {
                    time_ns,
                    pid,
                    thread,
                    stack,
                    state,
                    period_ns,
                    system_call,
                    gil_holder,
                } => {
                    let own = ThreadId(thread);
                    let Some(place) = self.place(pid, own) else {
                        continue;
                    };
                    let facts = SampleFacts {
                        time_ns,
                        thread: own,
                        state,
                        source: SampleSource::Sampled,
                        period_ns: Some(period_ns),
                        system_call,
                        gil_holder: gil_holder.map(ThreadId),
                    };
                    let frames = stack.and_then(|id| self.sampled.stacks.get(id as usize).cloned());
                    let (assembler, tables) = self.trace(place.0);
                    if !assembler.knows_thread(place.1, own)
                        && let Some(name) = procfs::thread_name(pid, thread)
                    {
                        assembler.name_thread(place.1, own, name);
                    }
                    let frames = frames.as_ref().map(|frames| frames.iter().cloned());
                    assembler.sample(place.1, facts, frames, tables);
                }
                Heard::Worker {
                    pid,
                    parent_pid,
                    executable,
                    arguments,
                    start_ns,
                } => {
                    let trace = self.trace_of(parent_pid);
                    let id = self.trace(trace).0.add_worker(Process {
                        pid,
                        parent_pid: Some(parent_pid),
                        executable,
                        arguments,
                        start_ns,
                        ..Process::default()
                    });
                    self.sampled.workers.insert(pid, (trace, id));
                }
                Heard::Loss {
                    kind,
                    pid,
                    count,
                    reason,
                } => {
                    let trace = pid.and_then(|pid| self.trace_of(pid));
                    self.trace(trace).0.lose(kind, count, reason);
                }
            }
        }
    }

    /// Where a thread's samples go.
    fn place(&self, pid: Number, thread: ThreadId) -> Option<Place> {
        let followed = self.sampled.threads.get(&(pid, thread));
        let worker = || self.sampled.workers.get(&pid);
        // Of another thread of a recorded process, such as one that has the interpreter's lock.
        followed.or_else(worker).copied().or_else(|| {
            let of_process = self.processes.iter().find(|p| p.number == Some(pid));
            of_process.map(|process| (process.trace, process.id))
        })
    }

    /// The trace of a process.
    fn trace_of(&self, pid: Number) -> Option<usize> {
        // No thread has this number.
        self.place(pid, ThreadId(0)).and_then(|(trace, _)| trace)
    }

    fn trace(&mut self, trace: Option<usize>) -> (&mut Assembler, &mut Tables) {
        match trace {
            Some(trace) => {
                let rank = &mut self.ranks[trace];
                (&mut rank.assembler, rank.writer.tables_mut())
            }
            None => (&mut self.assembler, self.writer.tables_mut()),
        }
    }
}
