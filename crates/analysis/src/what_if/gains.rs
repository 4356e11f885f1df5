//! Ranks what to do by what it would bring: the findings on a trace go in, with the run laid out for replays; [`Gains`] come out, the
//! greatest first.
//!
//! | what the findings name | the change that is replayed |
//! |---|---|
//! | advice on idle time on the host's side | the host's time behind that cause is gone: `cause:CAUSE=0` |
//! | advice on waits for the device | `wait=each10` |
//! | advice on hand-overs between queues | `queues=independent` |
//! | transfers, from 1 % of the time on | `transfer=overlap`, `transfer=0.5x` |
//! | the kernels that compute for longest | half of the time, or the time at their limit where that is known: `kernel:NAME=0.5x` |
//! | the places in the code behind idle time | `code:PLACE=0` |
//!
//! Gains do not add up: what one change saves, another may save as well. So the first two are replayed together, too.

use super::change::{Change, Code, Target, To, What};
use super::{Extent, KernelSlack, PathPart, WhatIf};
use crate::code::Code as IdleCode;
use crate::gaps::{Advice, AdviceSubject, Cause, GapFinder, Side};
use crate::kernels::Kernel;
use crate::stacks::own;
use crate::steps::Step;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_trace::parallel;
use schemars::JsonSchema;
use serde::Serialize;
use wildmatch::WildMatch;

/// The most rows of the ranking.
const MAX_GAINS: usize = 5;
/// The most kernels, and the most places in the code, about which the ranking asks.
const MAX_ASKED: usize = 3;
/// The ranking replays so many moments at most, of a longer run its first part: a report must stay quick.
const MAX_MOMENTS: usize = 1 << 16;

/// The replays by which a ranking of changes is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replays {
    /// Nothing, for findings whose gains nobody shows.
    None,
    /// The changes that findings name.
    Changes,
    /// The changes; and parts of the critical path and kernels, for their bounds and slack, which takes most of all replays.
    ChangesAndPath,
}

/// What changes to the program would bring, by replays of the recorded run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Gains {
    /// What would help most: at most five changes that would save at least 1 % of the time, the greatest gain first.
    pub gains: Vec<PredictedGain>,
    /// What the first change, and the next that is not about the same time, would bring together; absent without such a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint_gain: Option<JointGain>,
    /// Changes whose gain is not known, and why; absent where all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gains_unknown: Vec<UnknownGain>,
    /// The part of the run that was replayed, of whose length gains are shares; absent where nothing was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gains_window: Option<Interval>,
    /// The critical path of that part: what its time was spent on, the greatest part first. Absent where nothing or [`Replays::Changes`]
    /// alone was replayed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathPart>,
    /// How much longer the launches of the kernels with the most time could be; absent where the path is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slack: Vec<KernelSlack>,
    /// The number of steps in that part; absent where it has no whole number of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gains_of_steps: Option<u64>,
    /// What the replayed changes were about, also those that would bring too little for the ranking.
    #[serde(skip)]
    answered: Vec<GainSubject>,
}

/// What one change would bring.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PredictedGain {
    /// The change, as `gapscope what-if --set` takes it.
    pub change: String,
    /// The advice that the change follows: a cause of idle time, or `transfer`. Absent for kernels and places in the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub cause: Option<AdviceSubject>,
    /// The least share of the time that it would save.
    pub low: f64,
    /// The share of the time that it would save with everything as the trace has it.
    pub mid: f64,
    /// The greatest share of the time that it would save.
    pub high: f64,
    /// What the change is about.
    #[serde(skip)]
    pub subject: GainSubject,
}

/// What a change is about.
#[derive(Debug, Clone, PartialEq)]
pub enum GainSubject {
    /// Idle time with a cause.
    Idle(Cause),
    /// A kernel, by its name, whose time becomes so many times as long.
    Kernel(String, f64),
    /// Transfers run beside kernels.
    OverlappedTransfers,
    /// Transfers take half of their time.
    HalvedTransfers,
    /// The host's time at a place in the code is gone.
    Code(String),
}

/// What two changes would bring together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JointGain {
    /// The changes, as `gapscope what-if --set` takes them.
    pub changes: [String; 2],
    /// The least share of the time that they would save.
    pub low: f64,
    /// The share of the time that they would save with everything as the trace has it.
    pub mid: f64,
    /// The greatest share of the time that they would save.
    pub high: f64,
}

/// A change whose gain is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownGain {
    /// The change, as `gapscope what-if --set` takes it; null where no change to the run can be replayed.
    pub change: Option<String>,
    /// The reason, a sentence.
    pub because: String,
    /// What to do about it, a sentence.
    pub instead: String,
}

/// What findings name that could be changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The advice.
    pub(crate) advice: &'a [Advice],
    /// True where transfers take a share of the time worth advice, be it beside kernels.
    pub(crate) moves_data: bool,
    /// The kernels; none where not all are known.
    pub(crate) kernels: &'a [Kernel],
    /// The code behind idle time.
    pub(crate) code: Option<&'a IdleCode>,
    /// The steps of the program.
    pub(crate) steps: &'a [Step],
    /// The part of the run that the verdict is about.
    pub(crate) analysed_window: Option<Interval>,
}

impl Gains {
    /// Returns what advice on a subject would bring; `None` where that is not known, or too little for the ranking.
    pub fn of_advice(&self, subject: AdviceSubject) -> Option<&PredictedGain> {
        self.gains.iter().find(|gain| gain.cause == Some(subject))
    }

    /// Returns true where it is known what a change to a subject would bring, be it little.
    pub fn knows(&self, is_meant: impl Fn(&GainSubject) -> bool) -> bool {
        self.answered.iter().any(is_meant)
    }

    /// Returns true where changes were replayed and none would save what the ranking asks for.
    pub fn are_all_small(&self) -> bool {
        self.gains.is_empty() && !self.answered.is_empty()
    }

    /// Returns the first reason for which a gain is not known: one of the whole run before those of single changes.
    pub fn unknown_because(&self) -> Option<&UnknownGain> {
        let whole = self.gains_unknown.iter().find(|gain| gain.change.is_none());
        whole.or(self.gains_unknown.first())
    }

    /// Replays the changes that findings name.
    pub(crate) fn new(finder: &GapFinder, named: &Named, replays: Replays) -> Gains {
        let asked = asked(named);
        let extent = Extent::from_steps(finder.timeline(), named.steps, named.analysed_window);
        let Some(extent) = extent.filter(|_| !asked.is_empty()) else {
            return Gains::default();
        };
        let whole = WhatIf::with_most_moments(finder, extent, MAX_MOMENTS);
        let unknown = |change: Option<String>| {
            move |refusal: super::Refusal| UnknownGain {
                change: change.clone(),
                because: refusal.because,
                instead: refusal.instead,
            }
        };
        if !whole.refused.is_empty() {
            let refused = whole.refused.iter().cloned();
            return Gains {
                gains_unknown: refused.map(unknown(None)).collect(),
                ..Gains::default()
            };
        }
        let answers = parallel::each(asked.iter().collect(), |(_, change)| {
            // A cause may lie outside of the steps, and code outside of what the threads that submit did.
            let predicted = whole.predicted(std::slice::from_ref(change));
            predicted.ok().map(|(answer, _)| answer)
        });
        let mut gains = Gains {
            gains_window: Some(whole.window()),
            gains_of_steps: whole.steps(),
            ..Gains::default()
        };
        if replays == Replays::ChangesAndPath
            && let Ok(unchanged) = whole.answer(&[])
        {
            gains.path = unchanged.path;
            gains.slack = unchanged.slack;
        }
        let mut changes = Vec::new();
        for ((subject, change), answer) in asked.into_iter().zip(answers) {
            let Some(answer) = answer else { continue };
            let text = change.text.clone();
            let refused = answer.refused.iter().take(1).cloned();
            gains
                .gains_unknown
                .extend(refused.map(unknown(Some(text.clone()))));
            let Some((gain, mid)) = answer.gain.zip(answer.mid_gain()) else {
                continue;
            };
            gains.answered.push(subject.clone());
            if mid < ADVICE_SHARE {
                continue;
            }
            let row = PredictedGain {
                change: text,
                cause: subject.cause(),
                low: gain.low,
                mid,
                high: gain.high,
                subject,
            };
            changes.push((row, change));
        }
        changes.sort_by(|(a, _), (b, _)| b.mid.total_cmp(&a.mid));
        drop_places_of_causes(&mut changes);
        gains.joint_gain = joint(&whole, &changes);
        changes.truncate(MAX_GAINS);
        gains.gains = changes.into_iter().map(|(row, _)| row).collect();
        gains
    }
}

impl GainSubject {
    /// Returns true for changes to transfers.
    pub(crate) fn is_of_transfers(&self) -> bool {
        matches!(
            self,
            GainSubject::OverlappedTransfers | GainSubject::HalvedTransfers
        )
    }

    /// Returns the subject of the advice that a change follows.
    fn cause(&self) -> Option<AdviceSubject> {
        match self {
            GainSubject::Idle(cause) => Some(AdviceSubject::Idle(*cause)),
            subject if subject.is_of_transfers() => Some(AdviceSubject::Work("transfer")),
            _ => None,
        }
    }
}

/// A place in the code that is behind nearly all of a cause says nothing besides that cause.
const SAME_SHARE: f64 = 0.95;

/// Drops places in the code that bring what a cause brings.
fn drop_places_of_causes(changes: &mut Vec<(PredictedGain, Change)>) {
    let causes: Vec<f64> = changes
        .iter()
        .filter(|(row, _)| matches!(row.subject, GainSubject::Idle(_)))
        .map(|(row, _)| row.mid)
        .collect();
    changes.retain(|(row, _)| match row.subject {
        GainSubject::Code(_) => {
            !(causes.iter()).any(|cause| row.mid <= *cause && row.mid >= cause * SAME_SHARE)
        }
        _ => true,
    });
}

/// Replays the first change with the next that is not about the same time.
fn joint(whole: &WhatIf, changes: &[(PredictedGain, Change)]) -> Option<JointGain> {
    let (_, first) = changes.first()?;
    let is_apart = |change: &Change| {
        let both_of_host = change.is_of_host() && first.is_of_host();
        let both_of_transfers = change.is_of_transfers() && first.is_of_transfers();
        !both_of_host && !both_of_transfers
    };
    let (_, second) = changes[1..].iter().find(|(_, change)| is_apart(change))?;
    let (answer, _) = whole.predicted(&[first.clone(), second.clone()]).ok()?;
    let (gain, mid) = answer.gain.zip(answer.mid_gain())?;
    Some(JointGain {
        changes: [first.text.clone(), second.text.clone()],
        low: gain.low,
        mid,
        high: gain.high,
    })
}

/// Returns the changes that findings name.
fn asked(named: &Named) -> Vec<(GainSubject, Change)> {
    let mut asked = Vec::new();
    for advice in named.advice {
        match advice.cause {
            AdviceSubject::Idle(cause) => asked.extend(of_cause(cause)),
            AdviceSubject::Work(_) => {}
        }
    }
    if named.moves_data {
        asked.extend([
            (
                GainSubject::OverlappedTransfers,
                written("transfer=overlap"),
            ),
            (GainSubject::HalvedTransfers, written("transfer=0.5x")),
        ]);
    }
    asked.extend(of_kernels(named.kernels));
    asked.extend(named.code.into_iter().flat_map(of_code));
    let mut texts: Vec<String> = Vec::new();
    asked.retain(|(_, change): &(GainSubject, Change)| {
        let is_new = !texts.contains(&change.text);
        texts.push(change.text.clone());
        is_new
    });
    asked
}

/// Returns the change that follows the advice on a cause; none where no replay knows it, as where nothing but the device, the display or
/// another process could change.
fn of_cause(cause: Cause) -> Option<(GainSubject, Change)> {
    let text = match cause {
        Cause::AfterHostWait => "wait=each10".to_owned(),
        Cause::QueueHandover => "queues=independent".to_owned(),
        Cause::Recording | Cause::ProcessStart | Cause::HostFunction => return None,
        cause if cause.side() == Side::Host => format!("cause:{}=0", cause.as_str()),
        _ => return None,
    };
    Some((GainSubject::Idle(cause), written(&text)))
}

/// Reads a change that this module writes itself.
fn written(text: &str) -> Change {
    Change::read(text).expect("the ranking writes changes as users do")
}

/// Returns the kernels that compute for longest, at half of their time, or at their limit where that is known.
fn of_kernels(kernels: &[Kernel]) -> Vec<(GainSubject, Change)> {
    let kernels = kernels
        .iter()
        .filter(|kernel| !kernel.communicates() && !kernel.name.is_empty());
    let mut longest: Vec<(&Kernel, i64)> = kernels
        .filter_map(|kernel| Some((kernel, kernel.judged_busy_ns.filter(|ns| *ns > 0)?)))
        .collect();
    longest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let winnable = |kernel: &Kernel| kernel.judged_winnable_ns().filter(|ns| *ns > 0);
    let wins_most = longest.iter().copied();
    let wins_most = wins_most
        .filter(|(kernel, _)| winnable(kernel).is_some())
        .max_by_key(|(kernel, _)| winnable(kernel));
    longest.truncate(MAX_ASKED);
    longest.extend(wins_most);
    let changes = longest.into_iter().map(|(kernel, busy_ns)| {
        let winnable = winnable(kernel);
        let rest = winnable.map(|ns| 1.0 - ratio(ns, busy_ns));
        // To whole per cents, as the change is written.
        let factor = rest.map_or(0.5, |rest| (rest.clamp(0.0, 1.0) * 100.0).round() / 100.0);
        let change = Change {
            text: format!("kernel:{}={factor}x", kernel.name),
            rank: None,
            what: What::Time(
                Target::Kernels(WildMatch::new(&kernel.name)),
                To::Factor(factor),
            ),
        };
        (GainSubject::Kernel(kernel.name.clone(), factor), change)
    });
    changes.collect()
}

/// Returns the places in the code behind the most idle time.
fn of_code(code: &IdleCode) -> Vec<(GainSubject, Change)> {
    let causes = code.causes.iter();
    let causes = causes.filter(|code| code.cause.side() == Side::Host && code.has_shares());
    let mut places: Vec<(Code, i64)> = Vec::new();
    for line in causes.flat_map(|cause| cause.lines()) {
        let frames = &line.first.frames;
        let Some(frame) = own(frames).and_then(|at| frames.get(at)) else {
            continue;
        };
        let (Some(file), Some(number)) = (frame.file.as_deref(), frame.line) else {
            continue;
        };
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        let place = Code {
            name,
            line: Some(number),
        };
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, ns)) => *ns = ns.saturating_add(line.total_ns),
            None => places.push((place, line.total_ns)),
        }
    }
    places.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    places.truncate(MAX_ASKED);
    let changes = places.into_iter().map(|(place, _)| {
        let text = place.text();
        let change = Change {
            text: format!("code:{text}=0"),
            rank: None,
            what: What::Time(Target::Code(place), To::Factor(0.0)),
        };
        (GainSubject::Code(text), change)
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_causes_that_a_replay_knows_are_asked_about() {
        let asked = |cause| of_cause(cause).map(|(_, change)| change.text);
        let late = Some("cause:host-late=0".to_owned());
        assert_eq!(asked(Cause::HostLate), late);
        assert_eq!(asked(Cause::AfterHostWait), Some("wait=each10".to_owned()));
        for cause in [
            Cause::Display,
            Cause::OtherQueue,
            Cause::HostSignal,
            Cause::LaunchLatency,
            Cause::ProcessStart,
            Cause::Unknown,
        ] {
            assert_eq!(asked(cause), None, "{cause:?}");
        }
    }
}
