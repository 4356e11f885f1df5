//! Keeps the halves of launches (a call, and the device work of it) that wait for each other, by correlation: takes
//! either half, gives both, and drops the oldest where memory is bounded.

use crate::bounds::Bounds;
use crate::event_waits::StreamPlace;
use crate::input::{ApiCall, Correlation, DeviceWork, DeviceWorkKind, FunctionId};
use crate::rows::CoveringSpan;
use gapscope_model::LossKind;
use gapscope_trace::ids::{CommandBufferId, LabelId, QueueId, SubmissionId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// So many calls of a function without work show that no rows are written of its work. Fewer may be copies of nothing.
const CALLS_WITHOUT_ROWS: u32 = 3;

/// The launches of one process, by their correlations.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Launches {
    /// What is known under each correlation.
    pub(crate) slots: FxHashMap<Correlation, Slot>,
    /// The serial of the next slot.
    next_serial: u64,
    /// Slots that lack their other half, the oldest first.
    waiting: VecDeque<SlotKey>,
    /// Slots of launches whose work has come, but for graphs.
    launched: VecDeque<SlotKey>,
    /// Slots of graphs, which may run for long while other streams are busy: only other graphs take their place.
    graphs: VecDeque<SlotKey>,
    /// The latest start of a call whose work has come.
    pub(crate) latest_start_ns: Option<i64>,
    /// Launching calls that came while another one had their correlation.
    pub(crate) collisions: u64,
    /// The functions of calls whose work has come.
    pub(crate) functions_with_work: FxHashSet<FunctionId>,
    /// Kernels and transfers without a correlation: calls without work may have launched them.
    pub(crate) unjoined_dispatches: u64,
    pub(crate) unjoined_transfers: u64,
    /// A launch of a graph that left no work is lost, and not one of an empty graph.
    pub(crate) counts_all_graphs: bool,
}

/// What is known under one correlation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Slot {
    /// The number of the slot in the order in which slots were made.
    serial: u64,
    pub(crate) content: SlotContent,
}

/// The key of a slot. A correlation may be used again, a serial is not.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct SlotKey {
    correlation: Correlation,
    serial: u64,
}

/// The half that came first, or both.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SlotContent {
    /// A call whose work, or whose queue, has not come.
    PendingCall(LabelledCall),
    /// Work whose call has not come.
    PendingWork(LaunchedWork),
    /// The place up to which a call waits, or where it puts something; the call has not come.
    PendingPlace(StreamPlace),
    /// A launch and its work.
    Launched(Launch),
}

/// A call, and the innermost label on its thread.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LabelledCall {
    pub(crate) call: ApiCall,
    pub(crate) label: Option<LabelId>,
}

/// The work of one call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchedWork {
    pub(crate) first: DeviceWork,
    /// The pieces after the first, in the order in which they came.
    pub(crate) more: Vec<DeviceWork>,
}

/// A launch, for the work that may still come.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The submission of the launch; `None` where the record of the call is missing.
    pub(crate) submission: Option<SubmissionId>,
    /// `None` where the record of the call is missing.
    pub(crate) call: Option<ApiCall>,
    /// The call returned only when its copy had ended.
    pub(crate) is_awaited: bool,
    /// The label of the work.
    pub(crate) label: Option<LabelId>,
    /// Pieces of work so far.
    pub(crate) pieces: u32,
    /// The launch was profiled: of the records of its kernel the first counts.
    pub(crate) is_profiled: bool,
    /// `None` where the launch is not of a graph.
    pub(crate) graph: Option<Box<GraphLaunch>>,
}

/// The launch of a graph: a command buffer of which more may come.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GraphLaunch {
    pub(crate) id: CommandBufferId,
    pub(crate) queue: QueueId,
    /// The time that its work covers so far.
    pub(crate) covered: CoveringSpan,
    /// The number of its dispatches so far.
    pub(crate) dispatches: u32,
    /// The number of its transfers so far.
    pub(crate) transfers: u32,
}

impl Launches {
    /// Puts content into the slot of a correlation, in place of any before.
    pub(crate) fn put(&mut self, correlation: Correlation, content: SlotContent) {
        let serial = self.next_serial;
        self.next_serial += 1;
        let key = SlotKey {
            correlation,
            serial,
        };
        let keys = match &content {
            SlotContent::Launched(launch) if launch.graph.is_some() => &mut self.graphs,
            SlotContent::Launched(_) => &mut self.launched,
            _ => &mut self.waiting,
        };
        keys.push_back(key);
        self.slots.insert(correlation, Slot { serial, content });
    }

    /// Counts a piece of work that no number joins to a call.
    pub(crate) fn count_unjoined(&mut self, work: &DeviceWork) {
        match work.kind {
            DeviceWorkKind::Kernel { .. } => self.unjoined_dispatches += 1,
            DeviceWorkKind::Transfer { .. } => self.unjoined_transfers += 1,
            DeviceWorkKind::PageMove { .. } | DeviceWorkKind::Graph => {}
        }
    }

    /// Takes one piece of work of a kind from those that no number joins to a call. Returns false where none is left.
    pub(crate) fn take_unjoined(&mut self, lost: &LossKind) -> bool {
        let left = match lost {
            LossKind::Dispatches => &mut self.unjoined_dispatches,
            LossKind::Transfers => &mut self.unjoined_transfers,
            _ => return false,
        };
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }

    /// Returns the functions of which no call has work, although several came before others that have some: no rows are written
    /// of what they launch.
    pub(crate) fn functions_without_rows(&self) -> FxHashSet<FunctionId> {
        let mut early: FxHashMap<FunctionId, u32> = FxHashMap::default();
        for slot in self.slots.values() {
            if let SlotContent::PendingCall(LabelledCall { call, .. }) = &slot.content
                && Some(call.span.start_ns) <= self.latest_start_ns
                && !self.functions_with_work.contains(&call.function)
            {
                *early.entry(call.function).or_default() += 1;
            }
        }
        early.retain(|_, calls| *calls >= CALLS_WITHOUT_ROWS);
        early.into_keys().collect()
    }

    /// Takes a slot's content out; `None` where nothing is known under the correlation.
    pub(crate) fn take(&mut self, correlation: Correlation) -> Option<SlotContent> {
        self.slots.remove(&correlation).map(|slot| slot.content)
    }

    /// Takes out one slot that the bounds leave no room for, the oldest of its kind; `None` where there is room for
    /// all.
    pub(crate) fn trimmed(&mut self, bounds: &Bounds) -> Option<SlotContent> {
        // Keys of slots that got their other half are dropped many at a time.
        const KEYS: usize = 1 << 12;
        let complete = self.launched.len() + self.graphs.len();
        let too_many_wait = self.slots.len().saturating_sub(complete) > bounds.waiting;
        if self.waiting.len() > KEYS.max(2 * self.slots.len()) {
            (self.waiting).retain(|key| is_current(&self.slots, *key));
        }
        while let Some(oldest) = self.waiting.front().copied() {
            let is_current = is_current(&self.slots, oldest);
            if is_current && !too_many_wait {
                break;
            }
            self.waiting.pop_front();
            if is_current {
                return self.take(oldest.correlation);
            }
        }
        let too_many = |keys: &mut VecDeque<SlotKey>, most| {
            (keys.len() > most).then(|| keys.pop_front()).flatten()
        };
        while let Some(oldest) = too_many(&mut self.launched, bounds.launched)
            .or_else(|| too_many(&mut self.graphs, bounds.graphs))
        {
            if is_current(&self.slots, oldest) {
                return self.take(oldest.correlation);
            }
        }
        None
    }

    /// Takes out everything, in the order in which it came.
    pub(crate) fn take_all(&mut self) -> Vec<SlotContent> {
        let mut slots: Vec<Slot> = std::mem::take(&mut self.slots).into_values().collect();
        slots.sort_unstable_by_key(|slot| slot.serial);
        slots.into_iter().map(|slot| slot.content).collect()
    }
}

/// Returns whether a key is of the slot that is there now, and not of an earlier one of the same correlation.
fn is_current(slots: &FxHashMap<Correlation, Slot>, key: SlotKey) -> bool {
    let slot = slots.get(&key.correlation);
    slot.is_some_and(|slot| slot.serial == key.serial)
}
