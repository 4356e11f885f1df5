//! Finds why a rank is late, behind what its device did for longer: more work, a slower clock, heat, power, loading of data, slower links. What the
//! devices did goes in, with the digests of the ranks; out comes a reason with its evidence, or that the trace does not show it.
//!
//! A difference explains another by the ratios of both: twice as many kernels explain all of twice the time. It is the reason
//! from [`LATE_CAUSE_SHARE`] of the ratio's logarithm on.

use super::digest::RankDigest;
use super::late::{Doing, LateCause, Lateness};
use gapscope_analysis::conditions::ConditionKind;
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Bytes, Nanoseconds};
use gapscope_timeline::thresholds::LATE_CAUSE_SHARE;
use gapscope_trace::manifest::Api;
use schemars::JsonSchema;
use serde::Serialize;

/// A reason why a rank is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LateReason {
    /// It has more to do: more kernels, more workgroups or more bytes to copy.
    MoreWork,
    /// Its device ran at a lower clock than the others, for a reason that is not known.
    SlowerClock,
    /// Its device was slowed down because of heat.
    Heat,
    /// Its device was slowed down because of power.
    Power,
    /// Its host loaded data.
    DataLoading,
    /// Its links are slower: its part in collectives ends later, or its copies move fewer bytes a second.
    Network,
}

/// The words where nothing in the trace shows a reason.
const NOT_SHOWN: &str = "the trace does not show why";

/// A rank that is late at some collectives alone launches more before these: so much of it shows in all of its launches.
const MIN_SHOWN_SHARE: f64 = 0.1;

/// The ranks whose lateness is explained: the late one and the others, and when it is late; `None` for throughout.
pub(super) struct Ranks<'a> {
    pub(super) late: &'a RankDigest,
    pub(super) others: Vec<&'a RankDigest>,
    pub(super) stretch: Option<Interval>,
}

/// Returns the reason for a rank's lateness, where the trace shows one, with the evidence as the end of a sentence.
pub(super) fn reason(
    cause: &LateCause,
    lateness: &Lateness,
    ranks: &Ranks,
) -> (Option<LateReason>, String) {
    let shown = match cause.what {
        Doing::Compute => ranks.computes(cause, lateness),
        Doing::LateEnd => Some((
            LateReason::Network,
            "once all have arrived, its links are slower than the others'".to_owned(),
        )),
        Doing::Idle(idle) => match ranks.loads(cause, lateness) {
            Some(shown) => Some(shown),
            None => {
                let mut lines = ranks.late.idle_code.iter();
                let line = lines.find(|line| line.cause == idle);
                let evidence = line.map(|line| format!("its host was mostly at {}", line.text));
                let evidence = evidence.or_else(|| ranks.stalled());
                let call = calls_to_mend(idle).map(str::to_owned);
                let evidence = evidence.or(call);
                return (None, evidence.unwrap_or_else(|| NOT_SHOWN.to_owned()));
            }
        },
        Doing::Communication => None,
    };
    match shown {
        Some((reason, evidence)) => (Some(reason), evidence),
        None => (None, NOT_SHOWN.to_owned()),
    }
}

/// Returns what to do about calls that are by themselves the reason why a rank is late: its host allocates, or loads and builds code.
pub fn calls_to_mend(idle: Cause) -> Option<&'static str> {
    let is_reason = matches!(idle, Cause::HostAllocate | Cause::HostCompile);
    is_reason.then(|| idle.facts(Api::Cuda).advice)
}

/// Returns true where a ratio explains enough of a greater one.
fn explains(part: f64, whole: f64) -> bool {
    part > 1.0 && whole > 1.0 && part.ln() >= LATE_CAUSE_SHARE * whole.ln()
}

impl Ranks<'_> {
    /// Returns why the device of the late rank computed for longer.
    fn computes(&self, cause: &LateCause, lateness: &Lateness) -> Option<(LateReason, String)> {
        let (own, usual) = (&lateness.own, &lateness.usual);
        let copied_longer_ns = own.copying_ns - usual.copying_ns;
        if copied_longer_ns >= LATE_CAUSE_SHARE * cause.longer_ns as f64 {
            let longer = own.copying_ns / usual.copying_ns;
            let bytes = own.copied_bytes / usual.copied_bytes;
            if usual.copied_bytes == 0.0 || explains(bytes, longer) {
                let (own, usual) = (Bytes(own.copied_bytes), Bytes(usual.copied_bytes));
                let evidence = format!("it copied {own}, the others {usual} each");
                return Some((LateReason::MoreWork, evidence));
            }
            let evidence = format!(
                "its copies took {longer:.2} times as long for {bytes:.2} times the bytes, so that its links are slower"
            );
            return Some((LateReason::Network, evidence));
        }
        let longer = own.compute_ns / usual.compute_ns;
        let launches = own.launches / usual.launches;
        if explains(launches, longer) && self.launches_more(launches) {
            let evidence = format!("it launched {launches:.2} times as many kernels");
            return Some((LateReason::MoreWork, evidence));
        }
        let each = longer / launches;
        let workgroups = own.workgroups / usual.workgroups / launches;
        let sized = own.unsized_launches + usual.unsized_launches == 0.0;
        if sized && explains(workgroups, each) {
            let evidence = format!("its kernels have {workgroups:.2} times as many workgroups");
            return Some((LateReason::MoreWork, evidence));
        }
        self.slowed(each)
    }

    /// Returns true where the late rank launched more kernels in its whole recording, too: at least [`MIN_SHOWN_SHARE`] of what it launched
    /// more before the collectives. Where kernels run beside collectives, those of a rank in time run while it waits in them, and not before
    /// them, so that the late rank seems to launch more. Where the kernels of a rank are not known, nothing contradicts.
    fn launches_more(&self, before: f64) -> bool {
        let launched = |rank: &RankDigest| -> Option<f64> {
            let counts = rank.kernels.values().map(|(count, _)| *count);
            (!rank.kernels.is_empty()).then(|| counts.sum::<u64>() as f64)
        };
        let usual: Option<Vec<f64>> = self.others.iter().map(|rank| launched(rank)).collect();
        let known = launched(self.late).zip(usual.and_then(median));
        known.is_none_or(|(own, usual)| own / usual - 1.0 >= MIN_SHOWN_SHARE * (before - 1.0))
    }

    /// Returns why each kernel of the late rank takes so many times as long.
    fn slowed(&self, each: f64) -> Option<(LateReason, String)> {
        let others: Option<Vec<f64>> = (self.others.iter())
            .map(|rank| rank.clock_hertz(self.stretch))
            .collect();
        let clocks = self
            .late
            .clock_hertz(self.stretch)
            .zip(others.and_then(median));
        let slower = clocks.filter(|(own, usual)| explains(usual / own, each));
        if clocks.is_some() && slower.is_none() {
            // Its clock is as fast as the others'.
            return None;
        }
        let kinds = [
            (ConditionKind::Heat, LateReason::Heat, "because of heat"),
            (
                ConditionKind::PowerBrake,
                LateReason::Power,
                "because its power supply asked for it",
            ),
            (
                ConditionKind::PowerCap,
                LateReason::Power,
                "because of its power limit",
            ),
        ];
        let slowdown = kinds.into_iter().find(|(kind, ..)| self.held_more(*kind));
        let clocks = slower.map(|(own, usual)| {
            format!(
                "its clock was {:.0} MHz, the others' {:.0} MHz",
                own / 1e6,
                usual / 1e6
            )
        });
        match (slowdown, clocks) {
            (Some((kind, reason, words)), clocks) => {
                let held = Nanoseconds(held(self.late, kind) as i64);
                let clocks = clocks.map_or_else(String::new, |clocks| format!(": {clocks}"));
                let evidence = format!(
                    "the same work took {each:.2} times as long, as its GPU was slowed down {words} for {held}{clocks}"
                );
                Some((reason, evidence))
            }
            (None, Some(clocks)) => Some((
                LateReason::SlowerClock,
                format!("the same work took {each:.2} times as long: {clocks}"),
            )),
            (None, None) => None,
        }
    }

    /// Returns that tasks waited for a processor or a disk, where they did so on the machine of the late rank, and not on the others'.
    fn stalled(&self) -> Option<String> {
        let kinds = [
            (ConditionKind::ProcessorStall, "a processor"),
            (ConditionKind::DiskStall, "a disk"),
        ];
        let (kind, what) = (kinds.into_iter()).find(|(kind, _)| self.held_more(*kind))?;
        let held = Nanoseconds(held(self.late, kind) as i64);
        Some(format!(
            "tasks on its machine waited for {what} for {held}, which those of the other ranks did not"
        ))
    }

    /// Returns true where a condition held for much longer on the late rank than on the others.
    fn held_more(&self, kind: ConditionKind) -> bool {
        let elsewhere = median(self.others.iter().map(|rank| held(rank, kind)).collect());
        let own_ns = held(self.late, kind);
        own_ns > 0.0 && elsewhere.unwrap_or(0.0) < LATE_CAUSE_SHARE * own_ns
    }

    /// Returns that the host of the late rank loaded data, where labels or stacks say so for enough of the idle time.
    fn loads(&self, cause: &LateCause, lateness: &Lateness) -> Option<(LateReason, String)> {
        let needed_ns = LATE_CAUSE_SHARE * cause.longer_ns as f64;
        let longer_ns = lateness.own.loading_ns - lateness.usual.loading_ns;
        if let Some(label) = self
            .late
            .loading_label
            .as_ref()
            .filter(|_| longer_ns >= needed_ns)
        {
            let evidence = format!("it loaded data, as its label {label} says");
            return Some((LateReason::DataLoading, evidence));
        }
        let loading_ns =
            |rank: &RankDigest| rank.loading_code.as_ref().map_or(0.0, |(ns, _)| *ns as f64);
        let usual_ns = median(self.others.iter().map(|rank| loading_ns(rank)).collect())?;
        let (_, line) = self.late.loading_code.as_ref()?;
        (loading_ns(self.late) - usual_ns >= needed_ns).then(|| {
            (
                LateReason::DataLoading,
                format!("it loaded data, mostly at {line}"),
            )
        })
    }
}

/// Returns for how many nanoseconds a condition held on a rank.
fn held(rank: &RankDigest, kind: ConditionKind) -> f64 {
    let notes = rank
        .slowdowns
        .iter()
        .filter(|slowdown| slowdown.kind == kind);
    let held_ns = notes.fold(0i64, |sum, slowdown| sum.saturating_add(slowdown.held_ns));
    held_ns as f64
}

/// Returns the median, of an even number of values the lower middle one.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    values.get(middle).copied()
}
