//! Defines [`Scene`], the parts of a trace that every format shows: groups (processes, GPUs) of tracks (queues,
//! threads) of lanes of slices. `builder` makes it, the modules of the formats write it.

mod builder;
mod counters;
mod details;
mod gaps;
mod groups;
mod labels;
mod names;
mod samples;
mod slices_by_owner;
mod work_lanes;

use crate::packed::Lane;
use crate::texts::cut;
use crate::{Exported, TableRows};
use gapscope_analysis::code::Stacks;
use gapscope_timeline::counters::Sample;
use gapscope_trace::ids::{CommandBufferId, QueueId, SubmissionId, ThreadId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{
    Barriers, Bindings, Buffers, CounterUnit, Markers, SampleSource, Samples, Table,
};
use gapscope_trace::{Selection, Trace};
use std::path::{Path, PathBuf};

pub(crate) use details::{DetailKey, DetailValue};
pub(crate) use gaps::GapRow;
pub use labels::Labels;
pub(crate) use names::SceneNames;
pub(crate) use samples::ThreadSamples;

/// A trace as every format but CSV draws it. `Scene::new` makes it.
///
/// Its slices are packed, and dispatches need not be in memory as a table.
pub struct Scene<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) names: SceneNames,
    /// The recorded processes, then the GPUs, then the machine.
    pub(crate) groups: Vec<Group>,
    /// The gaps between work, by the row of their slices.
    pub(crate) gaps: Vec<GapRow>,
    /// The stacks of samples.
    pub(crate) stacks: Stacks<'a>,
    pub(crate) flows: Flows,
    /// The first time that is drawn, or the recording's start.
    pub(crate) origin_ns: i64,
    /// The last time that is drawn, or the recording's end.
    pub(crate) end_ns: i64,
    /// The counts of rows by table, without those of samples.
    pub(crate) rows: Vec<TableRows>,
    /// The folder of the trace, where the file is to have the trace itself behind the drawing.
    pub(crate) embedded: Option<PathBuf>,
    /// The place of the trace among those of its file.
    pub(crate) place: PlaceInFile,
    /// The row of each command buffer, by its id.
    command_buffers: IdIndex<CommandBufferId>,
}

/// For each call that submits, the targets whose start is drawn. A target is the row of a command buffer, or,
/// for a submission whose work has no command buffer, its row behind all command buffers.
#[derive(Debug)]
pub(crate) struct Flows {
    /// For each call, where its targets end in `targets`.
    ends: Vec<u32>,
    /// The targets of all calls, one call behind the other.
    targets: Vec<u32>,
}

impl Flows {
    /// Makes the flows of `calls` calls from pairs of a call, by its number from 0, and a target. The targets of a
    /// call keep their order.
    fn new(calls: u32, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Flows {
        let mut ends = vec![0u32; calls as usize];
        for (call, _) in pairs.clone() {
            ends[call as usize] += 1;
        }
        let mut count = 0;
        for end in &mut ends {
            // Until its targets are written, the end of a call is its beginning.
            count += std::mem::replace(end, count);
        }
        let mut targets = vec![0; count as usize];
        for (call, target) in pairs {
            let end = &mut ends[call as usize];
            targets[*end as usize] = target;
            *end += 1;
        }
        Flows { ends, targets }
    }

    /// Returns the targets of a call, by the flow of its slice, which is the call's number plus one.
    pub fn targets_of_call(&self, flow: u32) -> &[u32] {
        let call = flow as usize - 1;
        let begin = call.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.targets[begin as usize..self.ends[call] as usize]
    }

    /// Returns all targets.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }
}

/// The place of a trace among those of its file, with counts of what precedes it. All are 0 for a single trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlaceInFile {
    /// The number of traces before it.
    pub number: u32,
    /// Whether the file has other traces.
    pub joined: bool,
    /// The number of GPUs before it.
    pub gpus: u32,
    /// The number of frames before it.
    pub frames: usize,
}

/// The owner of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// A recorded process.
    Process,
    Gpu,
    /// The machine as a whole.
    Machine,
}

/// Tracks and counters of one owner.
#[derive(Debug)]
pub(crate) struct Group {
    pub name: String,
    /// The system's id of a recorded process, or a number that no process and no other group has.
    pub pid: u32,
    pub kind: GroupKind,
    /// The UUID of a GPU's physical device as hexadecimal; empty where it is not known.
    pub uuid: String,
    pub tracks: Vec<Track>,
    pub counters: Vec<Counter>,
    /// The samples of the threads of a process.
    pub samples: Vec<ThreadSamples>,
}

/// The slices of one source, such as a queue's work or a thread's calls, in lanes.
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
    /// Returns the name of a lane, by its index: lanes after the first have their number behind the track's name.
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
    /// The values by start, in nanoseconds. No format can express that a value is not known, so each holds until the
    /// next.
    pub samples: Vec<Sample>,
    /// Where the last value ends, in nanoseconds; absent where it holds to the end.
    pub end_ns: Option<i64>,
}

impl Group {
    /// Returns the samples of a lane's thread; none for lanes after the first, so that samples are drawn once.
    pub fn samples_of(&self, track: &Track, lane: usize) -> Option<&ThreadSamples> {
        let thread = track.thread.filter(|_| lane == 0)?;
        self.samples.iter().find(|samples| samples.thread == thread)
    }

    /// Returns the samples of threads that have no track.
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
    /// Returns the tables and columns that a scene is made from.
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

    /// Puts the trace itself behind the drawing, in formats from which gapscope imports it again. `folder` is that of
    /// the trace, of which [`gapscope_trace::embedded::can_embed`] is true.
    pub fn embed(&mut self, folder: &Path) {
        self.embedded = Some(folder.to_owned());
    }

    /// Returns the counts of rows, for a format that has samples. Only samples of a sampler count.
    pub(crate) fn exported_with_samples(&self) -> Exported {
        let mut exported = self.exported();
        let sources = self.trace.tables.samples.source.iter();
        let sampled = sources.filter(|source| **source == SampleSource::Sampled);
        let sampled = sampled.count() as u64;
        if sampled > 0 {
            let drawn = self.groups.iter().flat_map(|group| &group.samples);
            let drawn = drawn.map(|samples| samples.rows.len() as u64).sum();
            exported.rows.push(TableRows {
                table: Samples::NAME,
                written: drawn,
                without_times: sampled.saturating_sub(drawn),
            });
        }
        exported
    }

    /// Returns the names of frames, by row of the table `frames`: `train.py:41 load_batch`.
    pub(crate) fn frame_names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.trace.tables.frames.len()).map(|row| cut(&self.stacks.frame(row).text()))
    }

    /// Returns the counts of rows.
    pub(crate) fn exported(&self) -> Exported {
        Exported {
            rows: self.rows.clone(),
        }
    }

    /// Returns the submission of a command buffer.
    pub(crate) fn submission_of_command_buffer(&self, id: CommandBufferId) -> Option<SubmissionId> {
        let row = self.command_buffers.get(id)?;
        self.trace.tables.command_buffers.submission[row].if_known()
    }

    /// Returns the nanoseconds from the start of the scene to a time; 0 for an earlier time.
    pub(crate) fn ns(&self, ns: i64) -> u64 {
        ns.saturating_sub(self.origin_ns).max(0) as u64
    }
}
