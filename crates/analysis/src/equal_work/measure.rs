//! Sums up the work of each side of a comparison, in total and by evaluation (one instance of the side's label).
//!
//! Work is added in this order: timed work in order of start, then untimed dispatches, the counts and bytes of all
//! transfers, untimed opaque work, and command buffers. The owner of a piece of work is its side and its evaluation.

use super::extent::Extent;
use super::place::WorkPlace;
use super::sum::{Evaluation, Side, Sum, add};
use crate::copy_sizes::add_copy;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::launch_size::GroupThreads;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::Table;

/// The sums over the measured work.
pub(super) struct Measured {
    pub sides: Vec<Side>,
    /// The sums of each evaluation, by the index of its instance in the extent.
    pub evaluations: Vec<Evaluation>,
}

/// Sums up the work in the extent (the work of a trace that is measured) for each of `sides` sides.
pub(super) fn measure(
    timeline: &Timeline,
    bindings: &BindingSets,
    extent: &Extent,
    sides: usize,
) -> Measured {
    let mut meter = Meter {
        timeline,
        bindings,
        extent,
        sides: vec![Side::default(); sides],
        evaluations: vec![Evaluation::default(); extent.instances().len()],
        group_threads: GroupThreads::new(&timeline.trace.tables.kernels),
        candidates: Vec::new(),
    };
    meter.timed_work();
    meter.untimed_dispatches();
    meter.transfers();
    meter.opaque_work();
    // Command buffers without work count too: they were recorded and submitted for it.
    for row in 0..timeline.command_buffers.len() {
        meter.owner(&WorkPlace::from_command_buffer(timeline, row));
    }
    let Meter {
        mut sides,
        mut evaluations,
        ..
    } = meter;
    for side in &mut sides {
        side.command_buffers.count(|evaluation, part| {
            evaluations[evaluation as usize].command_buffers += part;
        });
        side.submissions.count(|evaluation, part| {
            evaluations[evaluation as usize].submissions += part;
        });
    }
    Measured { sides, evaluations }
}

/// The index of a side, and the index of an evaluation or [`NONE`].
type Owner = (usize, u32);

/// Adds up the work, piece by piece, for the side and the evaluation that own it.
struct Meter<'a> {
    timeline: &'a Timeline<'a>,
    bindings: &'a BindingSets,
    extent: &'a Extent<'a>,
    sides: Vec<Side>,
    evaluations: Vec<Evaluation>,
    group_threads: GroupThreads,
    /// The evaluations that the current piece of work may lie in; kept to reuse its memory.
    candidates: Vec<u32>,
}

impl Meter<'_> {
    /// Returns the owner of a piece of work, and counts its command buffer and submission for the owner.
    fn owner(&mut self, place: &WorkPlace) -> Option<Owner> {
        let side = self.extent.side(place)?;
        let evaluation = self.evaluation(place);
        let holder = &mut self.sides[side];
        holder.command_buffers.add(place.command_buffer, evaluation);
        holder.submissions.add(place.submission, evaluation);
        holder.submissions.unknown |= place.submission == NONE;
        // Work that a call launched by itself is in no command buffer.
        holder.command_buffers.unknown |= place.command_buffer == NONE && place.submission == NONE;
        Some((side, evaluation))
    }

    /// Returns the evaluation that a piece of work lies in, or [`NONE`] where there is none or several are possible.
    /// It marks the latter as unclear.
    fn evaluation(&mut self, place: &WorkPlace) -> u32 {
        let Extent::Labels(instances) = self.extent else {
            return NONE;
        };
        instances.find_at(place, &mut self.candidates);
        if let [one] = self.candidates[..] {
            return one;
        }
        for several in &self.candidates {
            self.evaluations[*several as usize].unclear = true;
        }
        NONE
    }

    /// Changes the sum of the owner's side, and that of its evaluation where there is one.
    fn sums(&mut self, (side, evaluation): Owner, change: impl Fn(&mut Sum)) {
        change(&mut self.sides[side].sum);
        if let Some(evaluation) = self.evaluations.get_mut(evaluation as usize) {
            change(&mut evaluation.sum);
        }
    }

    /// Adds all timed work, and the wall time of each stretch: consecutive work of one side without work of another
    /// side in between.
    fn timed_work(&mut self) {
        let timeline = self.timeline;
        let mut stretch: Option<(usize, Interval)> = None;
        timeline.each_work(|work| {
            let owner = self.owner(&WorkPlace::from_work(timeline, work));
            self.pace(owner, work.interval.start_ns);
            let Some(owner) = owner else { return };
            self.sums(owner, |sum| sum.ran(work.interval));
            match work.kind() {
                WorkKind::Dispatch => {
                    self.dispatch(work.row(), owner, Some(work.interval.length_ns()));
                }
                WorkKind::Transfer => {}
                WorkKind::Opaque | WorkKind::CommandBuffer => {
                    self.sums(owner, |sum| sum.wholes += 1);
                }
            }
            stretch = Some(match stretch {
                Some((side, hull)) if side == owner.0 => (side, hull.hull(work.interval)),
                ended => {
                    self.end_stretch(ended);
                    (owner.0, work.interval)
                }
            });
        });
        self.end_stretch(stretch);
    }

    /// Adds the length of a stretch to the wall time of its side.
    fn end_stretch(&mut self, ended: Option<(usize, Interval)>) {
        if let Some((side, hull)) = ended {
            let wall_ns = &mut self.sides[side].wall_ns;
            *wall_ns = wall_ns.saturating_add(hull.length_ns());
        }
    }

    /// Updates the paces of evaluations, which are the times from one start to the next, where a piece of work
    /// starts. The first work of an evaluation ends the pace of the one before it; work of another owner ends the
    /// sequence.
    fn pace(&mut self, owner: Option<Owner>, start_ns: i64) {
        for (number, side) in self.sides.iter_mut().enumerate() {
            let evaluation = match owner {
                Some((own, evaluation)) if own == number && evaluation != NONE => evaluation,
                _ => {
                    side.last = None;
                    continue;
                }
            };
            if self.evaluations[evaluation as usize].sum.hull.is_some() {
                continue;
            }
            if let Some(last) = side.last.replace(evaluation) {
                let last = &mut self.evaluations[last as usize];
                // Evaluations that run at the same time, as on several queues, do not follow each other.
                let before = last.sum.hull.filter(|hull| hull.end_ns <= start_ns);
                last.pace_ns = before.map(|hull| start_ns.saturating_sub(hull.start_ns));
            }
        }
    }

    /// Adds a dispatch's count, bytes and time to its owner and its kernel. `ns` is `None` where its time is not
    /// known.
    fn dispatch(&mut self, row: usize, owner: Owner, ns: Option<i64>) {
        let columns = &self.timeline.dispatches;
        let bytes = self.bindings.bytes(columns.binding_set(row));
        let size = self.group_threads.launch(self.timeline, row);
        self.sums(owner, |sum| {
            sum.dispatches += 1;
            sum.size.add(size);
            add(&mut sum.read_bytes, bytes.map(|bytes| bytes.read_bytes));
            add(
                &mut sum.written_bytes,
                bytes.map(|bytes| bytes.written_bytes),
            );
        });
        let runs = &mut self.sides[owner.0].kernels;
        runs.entry(columns.kernels.at(row))
            .or_default()
            .add(ns, size);
    }

    /// Adds the dispatches without times. They count as untimed unless their command buffer is timed as a whole.
    fn untimed_dispatches(&mut self) {
        let timeline = self.timeline;
        let in_passes = timeline.trace.manifest.sampling_mode == SamplingMode::Pass;
        for untimed in &timeline.dispatches.untimed {
            let Some(owner) = self.owner(&WorkPlace::from_untimed(timeline, untimed)) else {
                continue;
            };
            self.dispatch(untimed.row as usize, owner, None);
            if !in_passes && !self.is_timed_as_whole(untimed.command_buffer, owner.0) {
                self.sums(owner, |sum| sum.untimed += 1);
            }
        }
    }

    /// Adds the counts and bytes of all transfers, timed ones too.
    fn transfers(&mut self) {
        let rows = &self.timeline.trace.tables.transfers;
        for row in 0..rows.len() {
            let place = WorkPlace::from_row(
                self.timeline,
                rows.command_buffer.at(row),
                rows.label.at(row),
                rows.submission.at(row),
                rows.queue[row],
                rows.start_ns.at(row),
            );
            let Some(owner) = self.owner(&place) else {
                continue;
            };
            let copies = &mut self.sides[owner.0].copies;
            add_copy(copies, rows.kind[row], rows.bytes.at(row));
            let untimed = rows.duration_ns.at(row).is_none() || rows.start_ns.at(row).is_none();
            let untimed = untimed && !self.is_timed_as_whole(place.command_buffer, owner.0);
            self.sums(owner, |sum| {
                sum.transfers += 1;
                sum.untimed += u64::from(untimed);
                add(&mut sum.transfer_bytes, rows.bytes.at(row));
            });
        }
    }

    /// Adds opaque work, which is timed as a whole, where its times are unknown. All other opaque work was added as
    /// timed work.
    fn opaque_work(&mut self) {
        let rows = &self.timeline.trace.tables.opaque_work;
        for row in 0..rows.len() {
            if rows.duration_ns.at(row).is_some() && rows.start_ns.at(row).is_some() {
                continue;
            }
            let place = WorkPlace::from_row(
                self.timeline,
                rows.command_buffer.at(row),
                rows.label.at(row),
                rows.submission.at(row),
                rows.queue[row],
                rows.start_ns.at(row),
            );
            if let Some(owner) = self.owner(&place)
                && !self.is_timed_as_whole(place.command_buffer, owner.0)
            {
                self.sums(owner, |sum| {
                    sum.untimed += 1;
                    sum.wholes += 1;
                });
            }
        }
    }

    /// Returns true where a command buffer of a side counts as busy from start to end, whatever is in it.
    fn is_timed_as_whole(&self, command_buffer: u32, side: usize) -> bool {
        let timeline = self.timeline;
        let Some(times) = timeline.command_buffers.get(command_buffer as usize) else {
            return false;
        };
        let all_are = timeline.trace.manifest.sampling_mode == SamplingMode::CommandBuffer;
        let place = WorkPlace::from_command_buffer(timeline, command_buffer as usize);
        (times.whole || (all_are && times.own.is_some())) && self.extent.side(&place) == Some(side)
    }
}
