//! Finds phases of a program that have verdicts of their own: the work under different labels, or times before and
//! after a change.
//!
//! One walk ([`walk`]) adds up, for each of many equal slices of the window and for each label, the parts of the verdict's time.
//! The outermost level of labels that has several counts. Without labels whose verdicts differ, the slices are split
//! where the parts differ most ([`change`]).
//!
//! A phase has [`VERDICT_PHASE_SHARE`] of the time and [`PHASE_WORKS`] pieces of work, no gap makes up [`PHASE_DIFFERENCE`] of its time
//! alone, and some part of its time differs by that share from another phase's. Idle time before work counts for the
//! label of that work, except before its first work on a device: what fills the time until a phase begins is no part of it. A label that
//! says that its work is a warm-up is no phase. The critical path of the whole program is cut at the phases' borders ([`paths`]), and a phase is judged by its
//! part, so that no phase contradicts the whole: a phase of copies that kernels wait for is bound by the copies, however much
//! computes beside. Labels whose work runs at the same time are no phases. Nothing is told where these sums, which leave out how
//! much kernels fill, give another verdict on the whole than [`Judgement`](super::Judgement).

mod change;
mod paths;
mod walk;

use super::times::{JointTimes, Times};
use crate::bound::Bound;
use crate::critical_path::{JointPath, PathOfDevice, PathParts};
use crate::gaps::Side;
use crate::gaps::explain::Explainer;
use gapscope_timeline::busy::BusyParts;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Percent, ratio};
use gapscope_timeline::thresholds::{
    ADVICE_SHARE, PHASE_DIFFERENCE, PHASE_WORKS, SLACK_SHARE, VERDICT_PHASE_SHARE,
};
use gapscope_timeline::{Timeline, Work};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::Table;
use paths::PathSum;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use walk::Walk;

/// The most phases that are told.
const MAX_PHASES: usize = 3;
/// The most labels of a level that count as phases. Of more, such as one for each step, none has a share that counts.
const MAX_LABELS: usize = 64;

/// A part of the program with a verdict of its own.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// The label of its work; absent where a change in time tells the phase.
    pub label: Option<String>,
    /// When it begins: its first work, where it is a label.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// The judged device time in it.
    pub window_ns: i64,
    /// What bounds its speed.
    pub verdict: Bound,
    /// The same in one sentence.
    pub sentence: String,
}

/// The sums over the slices and labels of a window, from which phases are told.
pub(crate) struct PhaseSums {
    window: Interval,
    /// The first work of the program.
    start_ns: i64,
    /// The start of the recording.
    origin_ns: i64,
    labels: PhaseLabels,
    walk: Walk,
}

impl PhaseSums {
    /// Adds up the work and the gaps in `window`.
    pub(crate) fn new(explainer: &Explainer, window: Interval) -> PhaseSums {
        let timeline = explainer.timeline;
        let labels = PhaseLabels::new(timeline);
        let mut walk = Walk::new(explainer, window, &labels);
        paths::add(timeline, explainer.order(), window, &labels, &mut walk);
        PhaseSums {
            window,
            start_ns: timeline.work_window().unwrap_or_default().start_ns,
            origin_ns: timeline.trace.manifest.start_ns,
            walk,
            labels,
        }
    }

    /// Returns the phases in order of time; none where no two have different verdicts. `bound` is the verdict on the whole.
    pub(crate) fn phases(&self, bound: Bound) -> Vec<Phase> {
        let whole = Sum::new(&self.walk.slices);
        if whole.bound() != bound {
            return Vec::new();
        }
        let by_label = self.labels.phases(&self.walk.labels, &whole);
        match by_label.is_empty() {
            true => change::phases(
                &self.walk.slices,
                self.window,
                self.start_ns,
                self.origin_ns,
            ),
            false => by_label,
        }
    }
}

/// The parts of the verdict's time in a slice or under a label.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    busy: BusyParts,
    /// The idle time of each side, in the order of [`Side::ALL`].
    sides: [i64; Side::ALL.len()],
    works: u64,
    longest_gap_ns: i64,
    /// The part of the critical path.
    path: PathSum,
    /// The computing time of the device that computes the longest in the whole window.
    most_compute_ns: i64,
    /// The number of devices that worked.
    devices: u32,
    /// From the first work or gap to the end of the last.
    hull: Option<Interval>,
}

impl Sum {
    fn new<'s>(parts: impl IntoIterator<Item = &'s Sum>) -> Sum {
        (parts.into_iter()).fold(Sum::default(), |sum, part| Sum {
            busy: sum.busy.plus(part.busy),
            sides: std::array::from_fn(|side| sum.sides[side].saturating_add(part.sides[side])),
            works: sum.works + part.works,
            longest_gap_ns: sum.longest_gap_ns.max(part.longest_gap_ns),
            path: sum.path.plus(part.path),
            most_compute_ns: sum.most_compute_ns.saturating_add(part.most_compute_ns),
            devices: sum.devices.max(part.devices),
            hull: match (sum.hull, part.hull) {
                (Some(one), Some(other)) => Some(one.hull(other)),
                (one, other) => one.or(other),
            },
        })
    }

    fn add_hull(&mut self, interval: Interval) {
        self.hull = Some(self.hull.map_or(interval, |hull| hull.hull(interval)));
    }

    /// Returns the parts of the time with their names.
    fn parts(&self) -> [(&'static str, i64); 8] {
        let [host, sync, launch, unknown] = self.sides;
        let peers_ns = self.path.peers_ns.min(self.busy.communication_ns);
        [
            ("compute", self.busy.compute_ns),
            ("communication", self.busy.communication_ns - peers_ns),
            ("waiting for other devices", peers_ns),
            ("transfer", self.busy.transfer_ns),
            ("host", host),
            ("sync", sync),
            ("launch", launch),
            ("unknown", unknown.saturating_add(self.busy.whole_ns)),
        ]
    }

    fn busy_ns(&self) -> i64 {
        self.busy.busy_ns()
    }

    fn window_ns(&self) -> i64 {
        let parts = self.parts().into_iter();
        parts.fold(0, |sum, (_, ns)| i64::saturating_add(sum, ns))
    }

    fn bound(&self) -> Bound {
        let [host_ns, sync_ns, launch_ns, unknown_ns] = self.sides;
        let window_ns = self.window_ns();
        let each_ns = window_ns / i64::from(self.devices.max(1));
        let rows = self.path.rows(each_ns);
        let several = self.devices > 1;
        Bound::from_times(&Times {
            window_ns,
            busy: self.busy,
            host_ns,
            sync_ns,
            launch_ns,
            unknown_ns,
            paths: rows.iter().filter(|_| !several).collect(),
            joint: several.then_some(JointTimes {
                paths: &rows,
                window_ns: each_ns,
                most_compute_ns: self.most_compute_ns,
            }),
            peers_ns: self.path.peers_ns,
            path: self.joint_path(each_ns),
            ..Times::default()
        })
    }

    /// Returns the joint path, where devices waited in communication for each other for long enough. Its idle time has the sides that
    /// all idle time of the phase has.
    fn joint_path(&self, each_ns: i64) -> Option<JointPath> {
        if ratio(self.path.peers_ns, self.window_ns()) < SLACK_SHARE {
            return None;
        }
        let [communication_ns, transfer_ns, compute_ns] = self.path.path_ns;
        let worked_ns = communication_ns
            .saturating_add(transfer_ns)
            .saturating_add(compute_ns);
        let idle_ns = each_ns.saturating_sub(worked_ns).max(0);
        let all_ns = self
            .sides
            .iter()
            .fold(0i64, |sum, ns| sum.saturating_add(*ns));
        let sides = self
            .sides
            .map(|ns| (ratio(ns, all_ns) * idle_ns as f64) as i64);
        let parts = PathParts {
            compute_ns,
            communication_ns,
            transfer_ns,
            sides,
        };
        Some(JointPath {
            of: "devices",
            devices: vec![PathOfDevice {
                parts,
                ..PathOfDevice::default()
            }],
            most_compute_ns: self.most_compute_ns,
            error_ns: 0,
            runs_through_any: false,
        })
    }

    /// Returns the greatest difference between a part's shares of the two times.
    fn difference(&self, other: &Sum) -> f64 {
        let windows = [self.window_ns(), other.window_ns()];
        let pairs = self.parts().into_iter().zip(other.parts());
        let differences = pairs.map(|((_, mine), (_, theirs))| {
            (ratio(mine, windows[0]) - ratio(theirs, windows[1])).abs()
        });
        differences.fold(0.0, f64::max)
    }

    /// Returns true where the time is long, and alike enough within, to be a phase.
    fn is_phase(&self, whole_ns: i64) -> bool {
        let window_ns = self.window_ns();
        ratio(window_ns, whole_ns) >= VERDICT_PHASE_SHARE
            && self.works >= PHASE_WORKS
            && ratio(self.longest_gap_ns, window_ns) < PHASE_DIFFERENCE
    }

    /// Returns the phase of this time. `place` names it at the start of its sentence.
    fn phase(&self, label: Option<String>, interval: Interval, place: &str) -> Phase {
        const NAMED: usize = 2;
        let window_ns = self.window_ns();
        let mut parts = self.parts();
        parts.sort_by_key(|(_, ns)| Reverse(*ns));
        let share = |what: &str, ns: i64| format!("{what} {}", Percent(ratio(ns, window_ns)));
        let (named, rest) = parts.split_at(NAMED);
        let rest_ns = rest
            .iter()
            .fold(0, |sum: i64, (_, ns)| sum.saturating_add(*ns));
        let named = named.iter().filter(|(_, ns)| *ns > 0);
        let mut parts: Vec<String> = named.map(|(what, ns)| share(what, *ns)).collect();
        if ratio(rest_ns, window_ns) >= ADVICE_SHARE {
            let is_one = rest[0].1 == rest_ns;
            parts.push(share(
                if is_one { rest[0].0 } else { "other parts" },
                rest_ns,
            ));
        }
        let verdict = self.bound();
        // The shares of a path that decides may be small.
        let decides = match verdict {
            Bound::TransferBound => Some(("transfers", self.path.path_ns[1])),
            Bound::CommunicationBound => Some(("communication", self.path.path_ns[0])),
            _ => None,
        };
        let each_ns = window_ns / i64::from(self.devices.max(1));
        let path = decides.map(|(what, ns)| (what, ratio(ns, each_ns)));
        let path = path
            .filter(|(_, share)| *share >= SLACK_SHARE)
            .map(|(what, share)| {
                format!(
                    "; the critical path runs through {what} for {}",
                    Percent(share)
                )
            });
        let path = path.unwrap_or_default();
        Phase {
            label,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            window_ns,
            verdict,
            sentence: format!("{place}: {verdict} ({}{path}).", parts.join(", ")),
        }
    }
}

/// Returns true for the text of a label that says that its work is a warm-up, such as `warm-up` or `Warmup 3`.
fn names_warm_up(label: &str) -> bool {
    let letters = label.chars().filter(|letter| letter.is_alphanumeric());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    letters.starts_with("warmup") || letters.starts_with("warmingup")
}

/// The labels of the outermost level of which several have work.
#[derive(Debug, Default)]
struct PhaseLabels {
    texts: Vec<String>,
    /// For each row of the table of labels, the index in `texts`, or [`NONE`].
    by_row: Vec<u32>,
}

impl PhaseLabels {
    fn new(timeline: &Timeline) -> PhaseLabels {
        const LEVELS: usize = 3;
        let table = &timeline.trace.tables.labels;
        let mut has_work = vec![false; table.len()];
        for gpu in &timeline.gpus {
            for work in &gpu.works {
                if let Some(has) = has_work.get_mut(timeline.label_row_of(&work) as usize) {
                    *has = true;
                }
            }
        }
        // The rows from a label outwards. Damaged traces may have parents in a circle.
        let outwards = |row: usize| {
            let parent = |row: &usize| {
                let parent = timeline.label_ids.row(table.parent.at(*row)?);
                (parent != NONE).then_some(parent as usize)
            };
            let mut path: Vec<usize> = std::iter::successors(Some(row), parent).take(64).collect();
            path.reverse();
            path
        };
        let used = || (0..table.len()).filter(|row| has_work[*row]);
        for level in 0..LEVELS {
            let mut texts: Vec<String> = Vec::new();
            let mut by_row = vec![NONE; table.len()];
            for row in used() {
                let Some(row_of_level) = outwards(row).get(level).copied() else {
                    continue;
                };
                let text = &*table.text[row_of_level];
                let known = texts.iter().position(|known| known == text);
                if known.is_none() && texts.len() == MAX_LABELS {
                    return PhaseLabels::default();
                }
                by_row[row] = known.unwrap_or(texts.len()) as u32;
                if known.is_none() {
                    texts.push(text.to_owned());
                }
            }
            match texts.len() {
                0 => return PhaseLabels::default(),
                1 => {}
                _ => return PhaseLabels { texts, by_row },
            }
        }
        PhaseLabels::default()
    }

    /// Returns the index of the label of a piece of work, or the number of labels for work under none.
    #[inline]
    fn index(&self, timeline: &Timeline, work: &Work) -> usize {
        if self.texts.is_empty() {
            return 0;
        }
        let index = self.by_row.get(timeline.label_row_of(work) as usize);
        (index.copied())
            .filter(|index| *index != NONE)
            .map_or(self.texts.len(), |index| index as usize)
    }

    /// Returns the labels whose work makes up phases, in the order of their first work; none where their verdicts are
    /// alike.
    fn phases(&self, sums: &[Sum], whole: &Sum) -> Vec<Phase> {
        let whole_ns = whole.window_ns();
        let busy_ns = sums.iter().map(Sum::busy_ns).fold(0, i64::saturating_add);
        if ratio(busy_ns, whole.busy_ns()) > 1.0 + SLACK_SHARE {
            return Vec::new();
        }
        let labels = self.texts.iter().zip(sums);
        let mut labels: Vec<(&String, &Sum)> = labels
            .filter(|(label, sum)| sum.is_phase(whole_ns) && !names_warm_up(label))
            .collect();
        labels.sort_by_key(|(_, sum)| Reverse(sum.window_ns()));
        labels.truncate(MAX_PHASES);
        let differ = labels.iter().any(|(_, one)| {
            labels.iter().any(|(_, other)| {
                one.bound() != other.bound() && one.difference(other) >= PHASE_DIFFERENCE
            })
        });
        if !differ {
            return Vec::new();
        }
        labels.sort_by_key(|(_, sum)| sum.hull.map(|hull| hull.start_ns));
        (labels.into_iter())
            .map(|(label, sum)| {
                let share = Percent(ratio(sum.window_ns(), whole_ns));
                let place = format!("Under {label}, {share} of the time");
                sum.phase(Some(label.clone()), sum.hull.unwrap_or_default(), &place)
            })
            .collect()
    }
}
