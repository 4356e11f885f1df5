//! Adds the samples of threads' stacks, which a scene (a trace as tools draw it) has, to a profile, with their
//! frames, which have only names. [`SampledCode::new`] comes before [`SampledCode::add`] for each thread.

use crate::scene::{Scene, ThreadSamples};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile,
    SamplingInterval, StackHandle, StringHandle, ThreadHandle, Timestamp,
};
use gapscope_trace::ids::StackId;
use gapscope_trace::tables::{FrameKind, Samples, Table, ThreadState};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// Returns the median of the known periods of samples. The format demands one even without samples; then it is 1 ms.
pub(super) fn interval(samples: &Samples) -> SamplingInterval {
    let mut periods: Vec<i64> = samples.period_ns.iter().flatten().collect();
    periods.retain(|ns| *ns > 0);
    let middle = periods.len() / 2;
    match periods.is_empty() {
        true => SamplingInterval::from_millis(1),
        false => {
            let median_ns = *periods.select_nth_unstable(middle).1;
            Duration::from_nanos(median_ns.unsigned_abs()).into()
        }
    }
}

/// The frames of sampled code.
pub(super) struct SampledCode<'a> {
    scene: &'a Scene<'a>,
    /// The frames by row of the table `frames`, and a last one for stacks that could not be read. Empty without
    /// samples.
    frames: Vec<FrameInfo>,
}

impl<'a> SampledCode<'a> {
    /// Adds the frames to the profile, which stays unchanged when there are no samples.
    pub fn new(scene: &'a Scene<'a>, profile: &mut Profile) -> SampledCode<'a> {
        let mut frames = Vec::new();
        if !scene.trace.tables.samples.is_empty() {
            let python = profile.add_category("Python", CategoryColor::Yellow);
            let native = profile.add_category("native", CategoryColor::LightBlue);
            let kinds = scene.trace.tables.frames.kind.iter();
            for (kind, name) in kinds.zip(scene.frame_names()) {
                let category = match kind {
                    FrameKind::Python => python,
                    _ => native,
                };
                frames.push(frame(profile.intern_string(&name), category));
            }
            let unknown = profile.intern_string("unknown code");
            frames.push(frame(unknown, CategoryHandle::OTHER));
        }
        SampledCode { scene, frames }
    }

    /// Adds the samples of a thread. One that found the thread running counts its period as time of a processor.
    pub fn add(&self, samples: &ThreadSamples, thread: ThreadHandle, profile: &mut Profile) {
        let table = &self.scene.trace.tables.samples;
        let mut stacks: FxHashMap<Option<StackId>, Option<StackHandle>> = FxHashMap::default();
        for row in &samples.rows {
            let row = *row as usize;
            let id = table.stack.at(row);
            let stack = *stacks
                .entry(id)
                .or_insert_with(|| self.stack(id, thread, profile));
            // The profiler draws the use of processors from this.
            let cpu = match table.state[row] {
                ThreadState::Running => {
                    CpuDelta::from_nanos(table.period_ns.at(row).unwrap_or(0).unsigned_abs())
                }
                _ => CpuDelta::ZERO,
            };
            let at = Timestamp::from_nanos_since_reference(self.scene.ns(table.time_ns[row]));
            profile.add_sample(thread, at, stack, cpu, 1);
        }
    }

    /// Adds a stack to a thread of the profile, the outermost frame first.
    fn stack(
        &self,
        id: Option<StackId>,
        thread: ThreadHandle,
        profile: &mut Profile,
    ) -> Option<StackHandle> {
        let rows = id
            .into_iter()
            .flat_map(|id| self.scene.stacks.frame_rows(id));
        let mut rows: Vec<usize> = rows.collect();
        if rows.is_empty() {
            rows.push(self.frames.len() - 1);
        }
        let frames = rows.into_iter().rev().map(|row| self.frames[row].clone());
        profile.intern_stack_frames(thread, frames)
    }
}

/// Returns a frame that has only a name.
fn frame(name: StringHandle, category: CategoryHandle) -> FrameInfo {
    FrameInfo {
        frame: Frame::Label(name),
        category_pair: category.into(),
        flags: FrameFlags::empty(),
    }
}
