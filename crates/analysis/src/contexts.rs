//! Finds where a GPU runs work of several contexts in turns: those of several processes, or of several devices or CUDA contexts
//! of one process. A GPU that does not run two contexts at once takes time to change from one to the other.
//!
//! Input is a timeline; output are the ends of a GPU's work at which its context changes. A GPU with one context has none, which
//! takes one look at the queues.

use gapscope_timeline::vocabulary::program;
use gapscope_timeline::{QueueOfGpu, Timeline, Work};
use gapscope_trace::ids::{DeviceId, ProcessId};
use gapscope_trace::manifest::Api;
use std::collections::BTreeSet;

/// What a GPU runs one at a time, unless it can run several at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Context {
    pub(crate) process: ProcessId,
    device: DeviceId,
    /// The CUDA context; 0 for other APIs, whose families of queues belong to one context.
    family: u32,
}

impl Context {
    /// Returns the context of a queue; `None` where the manifest does not name the queue.
    pub(crate) fn from_queue(timeline: &Timeline, queue: &QueueOfGpu) -> Option<Context> {
        let manifest = &timeline.trace.manifest;
        let row = &manifest.queues[queue.row? as usize];
        let device = manifest
            .devices
            .iter()
            .find(|device| device.id == row.device)?;
        let is_cuda = matches!(device.api, Api::Cuda | Api::Hip);
        Some(Context {
            process: device.process,
            device: device.id,
            family: if is_cuda { row.family } else { 0 },
        })
    }
}

/// Returns the processes that use a GPU which several contexts use, each with its program and its number, at most four by name.
pub(crate) fn names_of_sharing(timeline: &Timeline) -> String {
    let contexts = |gpu: usize| {
        let queues = timeline
            .queues
            .iter()
            .filter(move |queue| queue.gpu as usize == gpu);
        queues.filter_map(|queue| Context::from_queue(timeline, queue))
    };
    let shared = (0..timeline.gpus.len())
        .filter(|gpu| contexts(*gpu).any(|of| Some(of) != contexts(*gpu).next()));
    let sharing: BTreeSet<ProcessId> = shared
        .flat_map(contexts)
        .map(|context| context.process)
        .collect();
    let processes = timeline.trace.manifest.processes.iter();
    let named = processes.filter(|process| sharing.contains(&process.id));
    let named = named.map(|process| match program(process) {
        "" => format!("process {}", process.pid),
        name => format!("{name} (process {})", process.pid),
    });
    let mut named: Vec<String> = named.collect();
    if named.len() > 4 {
        let others = named.len() - 4;
        named.truncate(4);
        named.push(format!("{others} more"));
    }
    named.join(", ")
}

/// The contexts of queues, and the turns that they take on GPUs.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The context of each queue that something is submitted to, by its index.
    contexts: Vec<Option<Context>>,
    /// The turns on each GPU, by its index, in order of their ends; empty where one context uses the GPU. Turns that follow each
    /// other are of different contexts.
    gpus: Vec<Vec<Turn>>,
}

/// Work of one context, until work of another ends.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// The last end of the work.
    end_ns: i64,
    context: Option<Context>,
}

impl Turns {
    pub(crate) fn new(timeline: &Timeline) -> Turns {
        // What nothing submits, such as moves of managed memory, takes no turn.
        let mut is_submitted_to = vec![false; timeline.queues.len()];
        for times in &timeline.submissions {
            is_submitted_to[times.queue as usize] = true;
        }
        let queues = timeline.queues.iter().zip(is_submitted_to);
        let contexts = queues.map(|(queue, is_submitted_to)| {
            Context::from_queue(timeline, queue).filter(|_| is_submitted_to)
        });
        let contexts: Vec<Option<Context>> = contexts.collect();
        let mut gpus = Vec::with_capacity(timeline.gpus.len());
        for (index, gpu) in (0u32..).zip(&timeline.gpus) {
            let on_gpu = timeline.queues.iter().zip(&contexts);
            let on_gpu = on_gpu.filter(|(queue, _)| queue.gpu == index);
            let mut on_gpu = on_gpu.filter_map(|(_, context)| *context);
            let first = on_gpu.next();
            let is_shared = on_gpu.any(|context| Some(context) != first);
            let mut turns: Vec<Turn> = Vec::new();
            if is_shared {
                let turn = |work: Work| Turn {
                    end_ns: work.interval.end_ns,
                    context: contexts[timeline.queue_of(&work) as usize],
                };
                turns = (gpu.works.iter().map(turn))
                    .filter(|turn| turn.context.is_some())
                    .collect();
                turns.sort_by_key(|turn| turn.end_ns);
                turns.dedup_by(|next, turn| {
                    let goes_on = next.context == turn.context;
                    if goes_on {
                        turn.end_ns = next.end_ns;
                    }
                    goes_on
                });
            }
            gpus.push(turns);
        }
        Turns { contexts, gpus }
    }

    /// Returns when the last turn ended, until `until_ns`, of a context other than that of a queue, on the queue's GPU.
    pub(crate) fn other_ended(
        &self,
        timeline: &Timeline,
        queue: u32,
        until_ns: i64,
    ) -> Option<i64> {
        let turns = &self.gpus[timeline.queues[queue as usize].gpu as usize];
        let mine = self.contexts[queue as usize]?;
        let ended = turns.partition_point(|turn| turn.end_ns <= until_ns);
        let last = turns[..ended].iter().rev().take(2);
        let mut others = last.filter(|turn| turn.context != Some(mine));
        others.next().map(|turn| turn.end_ns)
    }

    /// Returns true where no GPU is used by several contexts.
    pub(crate) fn is_empty(&self) -> bool {
        self.gpus.iter().all(Vec::is_empty)
    }
}
