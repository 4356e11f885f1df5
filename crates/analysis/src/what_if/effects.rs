//! Turns changes into what they do to each moment of a recorded run: which delays they change, and how.

use super::change::{Change, Target, To, What};
use super::recorded::{Arm, Call, Recorded, Work, WorkMoment};
use gapscope_timeline::Timeline;
use gapscope_timeline::host::CallClass;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::{Labels, Table, TransferKind};
use rustc_hash::{FxHashMap, FxHashSet};
use wildmatch::WildMatch;

/// What changes do to a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Effects {
    times: Vec<Effect>,
    /// The delays that take so many times as long, which no change that a user asks for names.
    delays: Option<(Delay, f64)>,
    /// Of the waits that work held, only each so many-th is kept.
    waits_each: Option<u64>,
    /// The number of those waits.
    wait_count: u64,
    /// The places of the moments that are left out: transfers, with their calls and waits.
    left_out: FxHashSet<u32>,
    overlaps_transfers: bool,
    drops_dependencies: bool,
}

/// A kind of delay between moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delay {
    /// From what held a piece of work to its start.
    Arm(Arm),
    /// From the end of work to the return of the wait for it.
    WakeUp,
}

/// What a change of times does.
#[derive(Debug, Clone)]
struct Effect {
    on: On,
    to: To,
}

/// The moments whose times change.
#[derive(Debug, Clone)]
enum On {
    /// Kernels, by their row.
    Kernels(Vec<bool>),
    /// Work, by the row of its label.
    Labels(Vec<bool>),
    Transfers(Option<TransferKind>),
    Device,
    /// Calls, by the index of the function's name, and by their kind where they have none.
    Calls(Vec<bool>, WildMatch),
    Class(CallClass),
    Host,
    /// So much of the host's time in some moments, by their place.
    Parts(HostParts),
}

/// The host's time that a change is about, by the place of the call's moment.
#[derive(Debug, Clone, Default)]
pub(super) struct HostParts {
    /// Of the time before the call.
    pub(super) own_ns: FxHashMap<u32, i64>,
    /// Of the call.
    pub(super) call_ns: FxHashMap<u32, i64>,
    /// Where samples tell the parts: the least and the greatest factor by which the parts may differ from that.
    pub(super) bounds: Option<[f64; 2]>,
}

impl HostParts {
    /// Returns parts that are so many times as long.
    fn scaled(&self, factor: f64) -> HostParts {
        let scaled = |parts: &FxHashMap<u32, i64>| {
            let parts = parts.iter();
            parts
                .map(|(at, ns)| (*at, (*ns as f64 * factor).round() as i64))
                .collect()
        };
        HostParts {
            own_ns: scaled(&self.own_ns),
            call_ns: scaled(&self.call_ns),
            bounds: None,
        }
    }
}

/// Returns the effects on each run with the least and with the greatest times that samples leave open for places in the code; nothing where
/// samples tell no times.
pub(super) fn by_samples(effects: &[Effects]) -> Vec<Vec<Effects>> {
    if effects.iter().all(|effects| effects.bounds().is_none()) {
        return Vec::new();
    }
    let scaled = |bound: usize| effects.iter().map(|own| own.by_bound(bound)).collect();
    [0, 1].map(scaled).into()
}

impl Effects {
    /// Returns the effects of no change on a run.
    pub(super) fn none_on(recorded: &Recorded) -> Effects {
        Effects {
            wait_count: recorded.held_waits(),
            ..Effects::default()
        }
    }

    /// Adds a change. `parts` finds the host's time that a change to a cause or to code is about.
    ///
    /// # Errors
    /// A sentence without a full stop, where the change is about nothing in the run.
    pub(super) fn add(
        &mut self,
        timeline: &Timeline,
        recorded: &Recorded,
        change: &Change,
        parts: impl Fn(&Target) -> Result<HostParts, String>,
    ) -> Result<(), String> {
        let has_something = match &change.what {
            What::Time(target, to) => {
                let on = On::new(timeline, target, &parts)?;
                let effect = Effect { on, to: *to };
                let is_used = effect.is_used(recorded);
                self.times.push(effect);
                is_used
            }
            What::WaitEach(each) => {
                self.waits_each = Some(*each);
                self.wait_count > 0
            }
            What::TransferEach(kind, each) => {
                let transfers = recorded.transfers(|own| kind.is_none_or(|kind| kind == own));
                let left_out = recorded.with_calls(&transfers, |number| {
                    !number.is_multiple_of(*each) && number != transfers.len() as u64
                });
                let has_some = !left_out.is_empty();
                self.left_out.extend(left_out);
                has_some
            }
            What::OverlapTransfers => {
                self.overlaps_transfers = true;
                let mut works = recorded.works();
                works.any(|work| work.content == Work::Transfer(TransferKind::HostToDevice))
            }
            What::IndependentQueues => {
                self.drops_dependencies = true;
                recorded.works().any(|work| !work.depends_on.is_empty())
            }
        };
        match has_something {
            true => Ok(()),
            false => Err(format!("nothing in the run is `{}`", change.text)),
        }
    }

    /// Adds a change to the times of a target that is neither a cause nor code.
    pub(super) fn with_time(&self, timeline: &Timeline, target: &Target, to: To) -> Effects {
        let on = On::new(timeline, target, |_| Ok(HostParts::default()));
        let effect = on.map(|on| Effect { on, to });
        let mut effects = self.clone();
        effects.times.extend(effect);
        effects
    }

    /// Returns by which factors the times that samples tell for places in the code may differ from the truth.
    fn bounds(&self) -> Option<[f64; 2]> {
        self.times.iter().find_map(|effect| match &effect.on {
            On::Parts(parts) => parts.bounds,
            _ => None,
        })
    }

    /// Returns the effects with the least such times, for 0, or the greatest, for 1.
    fn by_bound(&self, bound: usize) -> Effects {
        let mut effects = self.clone();
        for effect in &mut effects.times {
            if let On::Parts(parts) = &mut effect.on
                && let Some(bounds) = parts.bounds
            {
                *parts = parts.scaled(bounds[bound]);
            }
        }
        effects
    }

    /// Makes delays of one kind so many times as long.
    pub(super) fn with_delay(&self, delay: Delay, factor: f64) -> Effects {
        Effects {
            delays: Some((delay, factor)),
            ..self.clone()
        }
    }

    /// Returns how long a delay takes.
    pub(super) fn delay(&self, delay: Delay, ns: i64) -> i64 {
        match self.delays {
            Some((changed, factor)) if changed == delay => To::Factor(factor).apply(ns),
            _ => ns,
        }
    }

    /// Returns how long a piece of work takes.
    pub(super) fn work(&self, work: &WorkMoment) -> i64 {
        let changed = self.times.iter().filter(|effect| effect.on.is_work(work));
        changed.fold(work.length_ns, |ns, effect| effect.to.apply(ns))
    }

    /// Returns how long a call takes.
    pub(super) fn call(&self, call: &Call, at: u32) -> i64 {
        self.times
            .iter()
            .fold(call.length_ns, |ns, effect| match &effect.on {
                On::Parts(parts) => effect.on_part(ns, parts.call_ns.get(&at)),
                on if on.is_call(call) => effect.to.apply(ns),
                _ => ns,
            })
    }

    /// Returns how long the thread of a call runs code of its own before the call, of the time that it took in the recording.
    pub(super) fn own_time(&self, call: &Call, own_ns: i64, at: u32) -> i64 {
        self.times
            .iter()
            .fold(own_ns, |ns, effect| match &effect.on {
                On::Parts(parts) => effect.on_part(ns, parts.own_ns.get(&at)),
                On::Host if call.own_ns > 0 => effect.to.apply(ns),
                _ => ns,
            })
    }

    /// Returns true for a moment that the changed run does not have.
    pub(super) fn leaves_out(&self, at: u32) -> bool {
        self.left_out.contains(&at)
    }

    /// Returns true where the wait of this number, from 1 on, is not made.
    pub(super) fn drops_wait(&self, number: u64) -> bool {
        let is_dropped = |each: u64| !number.is_multiple_of(each) && number != self.wait_count;
        self.waits_each.is_some_and(is_dropped)
    }

    pub(super) fn overlaps_transfers(&self) -> bool {
        self.overlaps_transfers
    }

    pub(super) fn drops_dependencies(&self) -> bool {
        self.drops_dependencies
    }
}

impl Effect {
    /// Changes a part of a time.
    fn on_part(&self, ns: i64, part_ns: Option<&i64>) -> i64 {
        match part_ns {
            Some(part_ns) => {
                let part_ns = (*part_ns).min(ns);
                (ns - part_ns).saturating_add(self.to.apply(part_ns))
            }
            None => ns,
        }
    }

    /// Returns true where the run has something that the effect changes.
    fn is_used(&self, recorded: &Recorded) -> bool {
        match &self.on {
            On::Host => true,
            On::Parts(parts) => !parts.own_ns.is_empty() || !parts.call_ns.is_empty(),
            on => {
                (recorded.works().any(|work| on.is_work(work)))
                    || recorded.calls().any(|call| on.is_call(call))
            }
        }
    }
}

impl On {
    fn new(
        timeline: &Timeline,
        target: &Target,
        parts: impl Fn(&Target) -> Result<HostParts, String>,
    ) -> Result<On, String> {
        Ok(match target {
            Target::Kernels(name) => {
                let rows = 0..timeline.trace.tables.kernels.len();
                let names = &timeline.trace.tables.kernels.name;
                let is = |row: usize| {
                    let full = timeline.kernel_names.full_name(row);
                    let all = [
                        Some(&*names[row]),
                        Some(timeline.kernel_names.name(row)),
                        full,
                    ];
                    all.into_iter().flatten().any(|own| name.matches(own))
                };
                On::Kernels(rows.map(is).collect())
            }
            Target::Labels(text) => {
                let labels = &timeline.trace.tables.labels;
                On::Labels(labelled(labels, &timeline.label_ids, text))
            }
            Target::Transfers(kind) => On::Transfers(*kind),
            Target::Device => On::Device,
            Target::Calls(name) => {
                let names = timeline.host_threads().function_names();
                On::Calls(names.map(|call| name.matches(call)).collect(), name.clone())
            }
            Target::Launches => On::Class(CallClass::Submit),
            Target::Compilation => On::Class(CallClass::Compile),
            Target::Host => On::Host,
            Target::Idle(_) | Target::Code(_) => On::Parts(parts(target)?),
        })
    }

    fn is_work(&self, work: &WorkMoment) -> bool {
        let has = |all: &[bool], row: u32| all.get(row as usize).copied().unwrap_or_default();
        match (self, work.content) {
            (On::Device, _) => true,
            (On::Kernels(rows), Work::Kernel(row)) => has(rows, row),
            (On::Labels(rows), _) => has(rows, work.label),
            (On::Transfers(kind), Work::Transfer(own)) => kind.is_none_or(|kind| kind == own),
            _ => false,
        }
    }

    fn is_call(&self, call: &Call) -> bool {
        match self {
            On::Class(class) => call.class == *class,
            On::Calls(functions, name) => match call.function {
                NONE => name.matches(call.call.as_str()),
                function => functions
                    .get(function as usize)
                    .copied()
                    .unwrap_or_default(),
            },
            _ => false,
        }
    }
}

/// Returns for each row of the labels true where its text, or that of a label around it, matches.
fn labelled(labels: &Labels, ids: &IdIndex<LabelId>, text: &WildMatch) -> Vec<bool> {
    let matches: Vec<bool> = labels.text.iter().map(|own| text.matches(own)).collect();
    let rows = 0..labels.len();
    rows.map(|row| labels.outwards(ids, row).any(|around| matches[around]))
        .collect()
}
