//! Passes samples of stacks (where host threads were) to the traces of the processes that they concern.

use super::Drain;
use crate::procfs;
use gapscope_stacks::{Frame, Update as Heard};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::Process;
use gapscope_trace::tables::{Sample, SampleSource};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An id in this PID namespace.
type Pid = u32;

/// A process: the index of its trace (`None` for the recording's own) and its id there.
type TraceProcess = (Option<usize>, ProcessId);

/// The threads that the sampler follows, and the stacks that it has reported.
#[derive(Debug, Default)]
pub struct FollowedThreads {
    /// The followed threads.
    threads: FxHashMap<(Pid, ThreadId), TraceProcess>,
    /// The reported workers (Python descendants of followed processes): samples of any of their threads are theirs.
    workers: FxHashMap<Pid, TraceProcess>,
    /// The stacks, by the sampler's ids.
    stacks: Vec<Arc<[Frame]>>,
}

impl Drain {
    /// Returns the threads that have begun to submit or wait since the last call, and follows them: each thread's
    /// process in this PID namespace, and the thread as it numbers itself.
    pub fn take_callers(&mut self) -> Vec<(u32, u32)> {
        let indexes = std::iter::once(None).chain((0..self.ranks.len()).map(Some));
        let mut new: Vec<(TraceProcess, ThreadId)> = Vec::new();
        for (trace, (assembler, _)) in indexes.zip(self.traces_mut()) {
            let callers = assembler.take_callers().into_iter();
            new.extend(callers.map(|(process, thread)| ((trace, process), thread)));
        }
        let mut new_callers = Vec::new();
        for (wanted, thread) in new {
            let is_wanted = |p: &&super::DrainedProcess| (p.trace, p.id) == wanted;
            let Some(process) = self.processes.iter().find(is_wanted) else {
                continue;
            };
            // A process that is gone cannot be followed.
            if let Some(pid) = process.pid_here {
                self.followed.threads.insert((pid, thread), wanted);
                new_callers.push((pid, thread.0));
            }
        }
        new_callers
    }

    /// Adds what the sampler has reported, in its order, to the traces: a stack comes before the samples that name
    /// its id.
    pub fn take_stack_samples(&mut self, updates: Vec<Heard>) {
        for update in updates {
            match update {
                Heard::Stack { id, frames } => {
                    debug_assert_eq!(id as usize, self.followed.stacks.len());
                    self.followed.stacks.push(frames.into());
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
                    let Some(process) = self.process_of_thread(pid, own) else {
                        continue;
                    };
                    let sample = Sample {
                        time_ns,
                        process: process.1,
                        thread: own,
                        stack: None,
                        state,
                        source: SampleSource::Sampled,
                        period_ns: Some(period_ns),
                        system_call,
                        gil_holder: gil_holder.map(ThreadId),
                    };
                    let frames =
                        stack.and_then(|id| self.followed.stacks.get(id as usize).cloned());
                    let (assembler, tables) = self.trace_mut(process.0);
                    if !assembler.knows_thread(process.1, own)
                        && let Some(name) = procfs::thread_name(pid, thread)
                    {
                        assembler.name_thread(process.1, own, name);
                    }
                    let frames = frames.as_ref().map(|frames| frames.iter().cloned());
                    assembler.sample(sample, frames, tables);
                }
                Heard::Worker {
                    pid,
                    parent_pid,
                    executable,
                    arguments,
                    start_ns,
                } => {
                    let trace = self.trace_of(parent_pid);
                    let id = self.trace_mut(trace).0.add_worker(Process {
                        pid,
                        parent_pid: Some(parent_pid),
                        executable,
                        arguments,
                        start_ns,
                        ..Process::default()
                    });
                    self.followed.workers.insert(pid, (trace, id));
                }
                Heard::Loss {
                    kind,
                    pid,
                    count,
                    reason,
                } => {
                    let trace = pid.and_then(|pid| self.trace_of(pid));
                    self.trace_mut(trace).0.lose(kind, count, reason);
                }
            }
        }
    }

    /// Returns the process to whose trace the samples of a thread go: the thread's own when it is followed, otherwise
    /// the worker or the recorded process with this id.
    fn process_of_thread(&self, pid: Pid, thread: ThreadId) -> Option<TraceProcess> {
        let followed = self.followed.threads.get(&(pid, thread));
        let worker = || self.followed.workers.get(&pid);
        // Samples may also concern other threads of a recorded process, such as the holder of the interpreter's lock.
        followed.or_else(worker).copied().or_else(|| {
            let of_process = self.processes.iter().find(|p| p.pid_here == Some(pid));
            of_process.map(|process| (process.trace, process.id))
        })
    }

    /// Returns the index of the rank's trace that a process belongs to; `None` for the recording's own or an unknown
    /// process.
    fn trace_of(&self, pid: Pid) -> Option<usize> {
        // No thread has this id.
        self.process_of_thread(pid, ThreadId(0))
            .and_then(|(trace, _)| trace)
    }
}
