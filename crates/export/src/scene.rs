//! The scene: what every format shows of a trace, in groups of tracks of lanes.

mod build;
mod counters;
mod gaps;
mod groups;
mod labels;
mod owners;
mod samples;
mod work;

use crate::details::Names;
use crate::packed::Lane;
use crate::texts::cut;
use crate::{Exported, Rows};
use gapscope_analysis::code::Stacks;
use gapscope_timeline::counters::Sample;
use gapscope_trace::ids::{CommandBufferId, QueueId, SubmissionId, ThreadId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{
    Barriers, Bindings, Buffers, CounterUnit, Markers, SampleSource, Samples, Table,
};
use gapscope_trace::{Selection, Trace};

pub(crate) use gaps::GapRow;
pub use labels::Labels;
pub(crate) use samples::ThreadSamples;

/// A trace as every format but CSV draws it: ready to be written.
///
/// Its slices are packed, and dispatches need not be in memory as a table.
pub struct Scene<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) names: Names,
    /// The recorded processes, then the GPUs, then the host.
    pub(crate) groups: Vec<Group>,
    pub(crate) gaps: Vec<GapRow>,
    /// The stacks of samples.
    pub(crate) stacks: Stacks<'a>,
    pub(crate) flows: Flows,
    /// The first time that is drawn, or that of the recording's start.
    pub(crate) origin_ns: i64,
    /// The last time that is drawn, or that of the recording's end.
    pub(crate) end_ns: i64,
    pub(crate) rows: Vec<Rows>,
    /// Which of the traces of its file it is.
    pub(crate) part: Part,
    /// Rows of command buffers by id.
    command_buffers: IdIndex<CommandBufferId>,
}

/// For each host call that submits, its targets whose start is drawn: rows of command buffers, or their number and
/// the row of a submission whose work has no command buffer.
#[derive(Debug)]
pub(crate) struct Flows {
    /// By call: where its targets end.
    ends: Vec<usize>,
    targets: Vec<u32>,
}

impl Flows {
    /// For this many calls, of pairs of a call and a target. Targets of a call keep their order.
    fn of(calls: u32, mut pairs: Vec<(u32, u32)>) -> Flows {
        pairs.sort_by_key(|(call, _)| *call);
        let end = |call| pairs.partition_point(|(of, _)| *of <= call);
        Flows {
            ends: (0..calls).map(end).collect(),
            targets: pairs.iter().map(|(_, target)| *target).collect(),
        }
    }

    /// The targets of a call, by the flow of its slice.
    pub fn of_call(&self, flow: u32) -> &[u32] {
        let call = flow as usize - 1;
        let begin = call.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.targets[begin..self.ends[call]]
    }

    /// All targets.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }
}

/// Which of the traces of a file a scene is, and what of it the others had before. Alone, all is 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub number: u32,
    /// There are others in its file.
    pub joined: bool,
    /// GPUs of those before.
    pub gpus: u32,
    /// Frames of those before.
    pub frames: usize,
}

/// What a group is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// A recorded process.
    Process,
    Gpu,
    /// The machine.
    Host,
}

/// Tracks and counters of one owner.
#[derive(Debug)]
pub(crate) struct Group {
    pub name: String,
    /// The system's id of a recorded process, or a number that no process and no other group has.
    pub pid: u32,
    pub kind: GroupKind,
    /// Distinguishes the physical device of a GPU, as hexadecimal; empty where it is not known.
    pub uuid: String,
    pub tracks: Vec<Track>,
    pub counters: Vec<Counter>,
    /// Of the threads of a process.
    pub samples: Vec<ThreadSamples>,
}

/// Slices of one source.
#[derive(Debug)]
pub(crate) struct Track {
    pub name: String,
    /// The system's id, for the calls of a thread.
    pub thread: Option<ThreadId>,
    /// The id of the queue, for its work.
    pub queue: Option<QueueId>,
    pub lanes: Vec<Lane>,
}

impl Track {
    /// The name of a lane.
    pub fn lane_name(&self, lane: usize) -> String {
        match lane {
            0 => self.name.clone(),
            _ => format!("{} · lane {}", self.name, lane + 1),
        }
    }
}

/// A quantity over time.
#[derive(Debug)]
pub(crate) struct Counter {
    pub name: String,
    pub unit: CounterUnit,
    /// Its values by start. No format can say that a value is not known: each holds until the next.
    pub samples: Vec<Sample>,
    /// Until when the last one holds; absent where it holds to the end.
    pub end_ns: Option<i64>,
}

impl Group {
    /// The samples of the thread that a lane is of.
    pub fn samples_of(&self, track: &Track, lane: usize) -> Option<&ThreadSamples> {
        let thread = track.thread.filter(|_| lane == 0)?;
        self.samples.iter().find(|samples| samples.thread == thread)
    }

    /// The samples of threads that have no track.
    pub fn samples_without_track(&self) -> impl Iterator<Item = &ThreadSamples> {
        let has_track = |samples: &&ThreadSamples| {
            let mut tracks = self.tracks.iter();
            tracks.any(|track| track.thread == Some(samples.thread))
        };
        let samples = self.samples.iter();
        samples.filter(move |samples| !has_track(samples))
    }
}

impl Scene<'_> {
    /// What of a trace a scene is made of.
    pub fn selection() -> Selection {
        Selection::all()
            .without::<Barriers>()
            .without::<Bindings>()
            .without::<Buffers>()
            .without::<Markers>()
            .columns::<Markers>(&[
                "process",
                "scope",
                "label",
                "queue",
                "thread",
                "command_buffer",
                "start_ns",
                "duration_ns",
            ])
    }

    /// What came of the rows in a format that has samples.
    pub(crate) fn exported_with_samples(&self) -> Exported {
        let mut exported = self.exported();
        let sources = self.trace.tables.samples.source.iter();
        let sampled = sources.filter(|source| **source == SampleSource::Sampled);
        let sampled = sampled.count() as u64;
        if sampled > 0 {
            let drawn = self.groups.iter().flat_map(|group| &group.samples);
            let drawn = drawn.map(|samples| samples.rows.len() as u64).sum();
            exported.rows.push(Rows {
                table: Samples::NAME,
                drawn,
                without_times: sampled.saturating_sub(drawn),
            });
        }
        exported
    }

    /// What frames are called, by row of the table `frames`: `train.py:41 load_batch`.
    pub(crate) fn frame_names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.trace.tables.frames.len()).map(|row| cut(&self.stacks.frame(row).text()))
    }

    /// What came of the rows.
    pub(crate) fn exported(&self) -> Exported {
        Exported {
            rows: self.rows.clone(),
        }
    }

    /// The id of the submission of a command buffer, by ids.
    pub(crate) fn submission_of_command_buffer(&self, id: CommandBufferId) -> Option<SubmissionId> {
        let row = self.command_buffers.get(id)?;
        Some(self.trace.tables.command_buffers.submission[row])
    }

    /// A time as the exports have it: from the start of what is drawn, never negative.
    pub(crate) fn ns(&self, ns: i64) -> u64 {
        ns.saturating_sub(self.origin_ns).max(0) as u64
    }
}
