//! Chooses what to do first, and by how much the judged time could get shorter at most.
//!
//! Input are the findings on a trace; output is the greatest cost of the kind that the verdict names. Without a verdict there is
//! no first step, since what is not known could cost more.
//!
//! | verdict | first step |
//! |---|---|
//! | host-bound, sync-bound | the greatest cause of idle time on that side against which something helps |
//! | latency-bound | the same on the side of launches, or the kernel that leaves most of the device unused for longest |
//! | device-bound | the kernel that could win most by reaching its limit, or else the one that computes for longest |
//! | transfer-bound, communication-bound | the transfers, the communication |
//! | mixed | the greatest of these costs, kernels by what they could win |
//!
//! Where a replay of the run knows what lowering that cost would bring ([`Gains`](crate::what_if::gains::Gains)), the first step is the
//! change with the greatest gain, whatever the verdict.
//!
//! Of several devices that share a program, one that has most of the work comes first, since idle time of the others is of no consequence.
//! Where they take turns, and no replay knows of a change that brings something, that comes first. A cost of which a replay knows that to
//! lower it brings nothing is told as one that would not help much.
//!
//! Where the host waits for the display in most gaps, nothing comes first: the display sets the pace.
//!
//! Costs are of the judged window, without warm-up. Where one gap is most of that window, such as the start of a program, the costs are
//! those of the rest, of which there is no verdict: the greatest is taken. A cost below [`FIRST_STEP_SHARE`] of the time is told as
//! one that would not help much.
//!
//! The bound is what the trace itself allows: the time that the costs are of, without that idle time, kernel or transfer, all else equal. Of
//! the rest of the run, such as warm-up, it says nothing. Of a kernel that runs beside others there is none. Of causes on several devices there is none, since what one device no longer waits for, another
//! may still need.

use crate::device_balance::{Turns, Uneven, turns, uneven};
use crate::fill::KernelFill;
use crate::findings::Findings;
use crate::gaps::{Cause, Gap, GapTotal, Side};
use crate::headline::HeadlineKind;
use crate::kernels::Kernel;
use crate::unread::{CAUSES, KERNELS};
use crate::verdict::Bound;
use crate::what_if::gains::{GainSubject, Gains, PredictedGain};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{ADVICE_SHARE, FIRST_STEP_SHARE, WHOLE_RUN_SHARE};

/// The one action that the report names first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstStep<'a> {
    /// The cost to lower.
    pub cost: Cost<'a>,
    /// By how much the time that the costs are of gets shorter at most, all else equal. Absent where the trace does not tell.
    pub saves_ns: Option<i64>,
    /// The time that the costs are of.
    pub costs_of: CostWindow,
    /// True where the cost is so small that no single step would help much.
    pub is_small: bool,
    /// What the step would bring, by a replay of the run; `None` where that is not known.
    pub gain: Option<&'a PredictedGain>,
}

/// The time that costs are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostWindow {
    /// The length of the time.
    pub length_ns: i64,
    /// The part of the run that the time is.
    pub part: CostPart,
}

/// A part of a run that costs are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostPart {
    /// Nearly all of the run.
    Run,
    /// The time that the verdict is of.
    Judged,
    /// That time without a gap which is most of it.
    OutsideOfLongGap,
}

/// A cost that a first step lowers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost<'a> {
    /// Idle time with one cause, about which something helps.
    Idle(&'a GapTotal),
    /// A kernel that is below what the device could do: the saving is to reach that limit.
    BelowLimit(&'a Kernel),
    /// The kernel that kept the device busy for longest: the saving is its whole time.
    Kernel(&'a Kernel),
    /// A kernel that leaves most of the device unused.
    Underfilled(&'a KernelFill),
    /// Transfers that nothing ran beside.
    Transfers,
    /// Communication that nothing computed beside.
    Communication,
    /// A device has most of the work of several: the saving is to split the work evenly.
    Uneven(Uneven<'a>),
    /// Devices take turns: the saving is that they work while the busiest one does.
    Turns(Turns),
}

/// Returns what to do first; `None` where the verdict is unknown, and where nothing that is worth it helps.
pub fn first_step(findings: &Findings) -> Option<FirstStep<'_>> {
    let costs = Costs::new(findings)?;
    if costs.is_paced_by_display() {
        return None;
    }
    let verdict = match findings.verdict {
        Bound::Unknown => Bound::Unknown,
        // The gap may be all that the verdict rests on.
        _ if costs.long_gap.is_some() => Bound::Mixed,
        verdict => verdict,
    };
    let first = match verdict {
        Bound::Unknown => None,
        Bound::HostBound => costs.idle(Some(Side::Host)),
        Bound::SyncBound => costs.idle(Some(Side::Sync)),
        Bound::LatencyBound => greatest([costs.idle(Some(Side::Launch)), costs.underfilled()]),
        Bound::DeviceBound => costs.below_limit().or_else(|| costs.kernel()),
        Bound::TransferBound => Some(costs.part("transfer", Cost::Transfers)),
        Bound::CommunicationBound => Some(costs.part("communication", Cost::Communication)),
        Bound::Mixed => greatest([
            costs.idle(None),
            costs.below_limit(),
            costs.large(costs.part("transfer", Cost::Transfers)),
            costs.large(costs.part("communication", Cost::Communication)),
        ]),
    };
    let is_judged = verdict != Bound::Unknown && costs.long_gap.is_none();
    let moves_data = matches!(verdict, Bound::TransferBound | Bound::CommunicationBound);
    if is_judged
        && !moves_data
        && let Some(uneven) = uneven(findings)
    {
        return Some(costs.of_devices(Cost::Uneven(uneven), uneven.saves_ns));
    }
    if is_judged
        && let Some((cost, _)) = first
        && is_replayed(cost, &findings.gains)
        && let Some(step) = greatest_gain(findings, costs.window())
    {
        return Some(step);
    }
    if is_judged
        && !moves_data
        && let Some(turns) = turns(findings)
    {
        return Some(costs.of_devices(Cost::Turns(turns), turns.saves_ns));
    }
    let (cost, cost_ns) = first?;
    let brings_little = costs.long_gap.is_none() && is_replayed(cost, &findings.gains);
    Some(FirstStep {
        cost,
        saves_ns: Some(cost_ns)
            .filter(|ns| *ns > 0 && costs.is_one_device && !brings_little)
            .filter(|_| !(matches!(cost, Cost::Kernel(_)) && costs.runs_kernels_at_once())),
        costs_of: costs.window(),
        is_small: brings_little || ratio(cost_ns, costs.window_ns) < FIRST_STEP_SHARE,
        gain: None,
    })
}

/// Returns true where a replay has told what lowering a cost would bring. A greater gain elsewhere then counts more than the cost.
fn is_replayed(cost: Cost, gains: &Gains) -> bool {
    gains.knows(|subject| match (cost, subject) {
        (Cost::Idle(total), GainSubject::Idle(cause)) => total.cause == *cause,
        (Cost::BelowLimit(kernel) | Cost::Kernel(kernel), GainSubject::Kernel(name, _)) => {
            kernel.name == *name
        }
        (Cost::Transfers, subject) => subject.is_of_transfers(),
        _ => false,
    })
}

/// Returns the step with the greatest gain of those that lower a cost of the findings.
fn greatest_gain(findings: &Findings, costs_of: CostWindow) -> Option<FirstStep<'_>> {
    findings.gains.gains.iter().find_map(|gain| {
        let cost = match &gain.subject {
            GainSubject::Idle(cause) => {
                let mut causes = findings.idle_time.causes.iter();
                Cost::Idle(causes.find(|total| total.cause == *cause)?)
            }
            GainSubject::Kernel(name, _) => {
                let kernel = findings
                    .kernels
                    .iter()
                    .find(|kernel| kernel.name == *name)?;
                match kernel.judged_winnable_ns().is_some_and(|ns| ns > 0) {
                    true => Cost::BelowLimit(kernel),
                    false => Cost::Kernel(kernel),
                }
            }
            GainSubject::OverlappedTransfers | GainSubject::HalvedTransfers => Cost::Transfers,
            // A place belongs to the cause whose time passed there.
            GainSubject::Code(_) => return None,
        };
        Some(FirstStep {
            cost,
            saves_ns: None,
            costs_of,
            is_small: gain.mid < FIRST_STEP_SHARE,
            gain: Some(gain),
        })
    })
}

/// A cost, and its time.
type TimedCost<'a> = (Cost<'a>, i64);

/// Returns the cost with the greatest time, the first of equal ones.
fn greatest<const N: usize>(costs: [Option<TimedCost>; N]) -> Option<TimedCost> {
    let costs = costs.into_iter().flatten();
    costs.rev().max_by_key(|(_, ns)| *ns)
}

/// The costs that findings name.
struct Costs<'a> {
    findings: &'a Findings,
    /// The time that the verdict is of, without a gap that is most of it.
    window_ns: i64,
    /// The gap that is most of the time that the verdict is of.
    long_gap: Option<&'a Gap>,
    /// True where one device worked.
    is_one_device: bool,
}

impl<'a> Costs<'a> {
    /// Returns the costs; `None` where nothing was judged.
    fn new(findings: &'a Findings) -> Option<Costs<'a>> {
        let worked = findings.devices.iter().filter(|of| of.analysed.is_some());
        let mut notes = findings.headline.iter();
        let has_long_gap = notes.any(|note| note.kind == HeadlineKind::LongGap);
        let idle_time = findings.idle_time.known()?;
        let long_gap = idle_time.longest.first().filter(|_| has_long_gap);
        let gap_ns = long_gap.map_or(0, |gap| gap.duration_ns);
        let window_ns = findings.verdict_evidence.window_ns?.saturating_sub(gap_ns);
        Some(Costs {
            findings,
            window_ns: Some(window_ns).filter(|ns| *ns > 0)?,
            long_gap,
            is_one_device: worked.count() == 1,
        })
    }

    /// Returns the time that the costs are of.
    fn window(&self) -> CostWindow {
        let is_whole = |wall_ns| ratio(self.window_ns, wall_ns) >= WHOLE_RUN_SHARE;
        CostWindow {
            length_ns: self.window_ns,
            part: match self.long_gap {
                Some(_) => CostPart::OutsideOfLongGap,
                None if self.findings.wall_ns.is_some_and(is_whole) => CostPart::Run,
                None => CostPart::Judged,
            },
        }
    }

    /// Returns the step about how devices share the work.
    fn of_devices(&self, cost: Cost<'a>, saves_ns: i64) -> FirstStep<'a> {
        // Other costs are of the time of all devices together, and how they share the work is one of the run's.
        let length_ns = self
            .findings
            .analysed_window
            .map_or(0, |window| window.length_ns());
        FirstStep {
            cost,
            saves_ns: Some(saves_ns),
            costs_of: CostWindow {
                length_ns,
                ..self.window()
            },
            is_small: ratio(saves_ns, length_ns) < FIRST_STEP_SHARE,
            gain: None,
        }
    }

    /// Returns a cost if it takes at least the share of time from which on advice is given.
    fn large(&self, cost: TimedCost<'a>) -> Option<TimedCost<'a>> {
        Some(cost).filter(|(_, ns)| ratio(*ns, self.window_ns) >= ADVICE_SHARE)
    }

    /// Returns the greatest cause of idle time against which something helps, of one side or of all.
    fn idle(&self, side: Option<Side>) -> Option<TimedCost<'a>> {
        let findings = self.findings;
        if !findings.knows(CAUSES) {
            return None;
        }
        let helps = |cause| cause != Cause::Unknown && findings.advice_on(cause).is_some();
        let causes = findings.idle_time.causes.iter().filter(|total| {
            let cause = total.cause;
            let is_of_side = side.is_none_or(|side| cause.side() == side);
            is_of_side && cause != Cause::Recording && helps(cause)
        });
        let costs = causes.map(|total| (Cost::Idle(total), self.outside_of_long_gap_ns(total)));
        self.large(costs.rev().max_by_key(|(_, ns)| *ns)?)
    }

    /// Returns true where the host waits for the display in most gaps. Whatever takes less time, these waits then take as much more, so that
    /// nothing that the trace names helps.
    fn is_paced_by_display(&self) -> bool {
        let Some(idle_time) = self.findings.idle_time.known() else {
            return false;
        };
        let causes = idle_time.causes.iter();
        let most = causes.clone().map(|total| total.count).max();
        let mut display = causes.filter(|total| total.cause == Cause::Display);
        display.next().is_some_and(|display| {
            let is_long = ratio(display.total_ns, self.window_ns) >= ADVICE_SHARE;
            is_long && most.is_some_and(|most| 2 * display.count >= most)
        })
    }

    /// Returns the time of a cause outside of the gap that is most of the time.
    fn outside_of_long_gap_ns(&self, total: &GapTotal) -> i64 {
        let parts = self.long_gap.map_or(&[][..], |gap| &gap.parts);
        let mine = parts.iter().filter(|part| part.cause == total.cause);
        let inside_ns = mine.fold(0i64, |sum, part| sum.saturating_add(part.duration_ns));
        total.total_ns.saturating_sub(inside_ns).max(0)
    }

    /// Returns the kernel that could win most by reaching its limit.
    fn below_limit(&self) -> Option<TimedCost<'a>> {
        let kernels = self.known_kernels()?;
        let kernels = kernels.iter();
        let won = kernels.filter_map(|kernel| Some((kernel, kernel.judged_winnable_ns()?)));
        let (kernel, ns) = won.rev().max_by_key(|(_, ns)| *ns)?;
        self.large((Cost::BelowLimit(kernel), ns))
    }

    /// Returns the kernel that kept the device busy for longest, of those that compute.
    fn kernel(&self) -> Option<TimedCost<'a>> {
        let kernels = self.known_kernels()?;
        let kernels = kernels.iter().filter(|kernel| !kernel.communicates());
        let busy = kernels.filter_map(|kernel| Some((kernel, kernel.judged_busy_ns?)));
        let (kernel, ns) = busy.rev().max_by_key(|(_, ns)| *ns)?;
        self.large((Cost::Kernel(kernel), ns))
    }

    /// Returns true where kernels ran beside other kernels for a share of the time worth telling. What the device does without one of them is
    /// then not known.
    fn runs_kernels_at_once(&self) -> bool {
        let kernels = self.known_kernels().unwrap_or_default().iter();
        let kernels_ns = kernels.filter_map(|kernel| kernel.judged_busy_ns);
        let kernels_ns = kernels_ns.fold(0i64, i64::saturating_add);
        let devices = self.findings.devices.iter().filter_map(|of| of.analysed);
        let busy_ns = devices.fold(0i64, |sum, of| sum.saturating_add(of.busy_ns));
        ratio(kernels_ns.saturating_sub(busy_ns), busy_ns) >= ADVICE_SHARE
    }

    /// Returns the kernel during which most of the device was unused for longest.
    fn underfilled(&self) -> Option<TimedCost<'a>> {
        let kernels = self.findings.fill.iter().flat_map(|fill| &fill.kernels);
        let kernel = kernels.max_by_key(|kernel| kernel.underfilled_ns)?;
        self.large((Cost::Underfilled(kernel), kernel.underfilled_ns))
    }

    /// Returns a cost that is a part of the verdict's time.
    fn part(&self, what: &str, cost: Cost<'a>) -> TimedCost<'a> {
        let mut parts = self.findings.verdict_evidence.parts.iter();
        let part = parts.find(|part| part.what == what);
        (cost, part.map_or(0, |part| part.total_ns))
    }

    /// Returns the kernels; `None` where not all are known.
    fn known_kernels(&self) -> Option<&'a [Kernel]> {
        let findings = self.findings;
        findings.knows(KERNELS).then_some(&findings.kernels[..])
    }
}
