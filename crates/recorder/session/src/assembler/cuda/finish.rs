//! What never got its other half.

use super::call::Call;
use super::graph_captures::Periods;
use super::work::missing;
use super::{Assembler, Cuda, Half, MOST_GRAPHS, MOST_LAUNCHED, MOST_WAITING, Slot, SlotKey};
use gapscope_model::{LossKind, SubmissionKind};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{DeviceId, ProcessId};
use gapscope_trace::tables::Tables;
use std::collections::VecDeque;

impl Cuda {
    /// What a call launched of which nothing came, in a process that is gone; `None` where it launched nothing, or that is
    /// not known.
    fn never_came(&self, call: &Call, captures: &Periods) -> Option<LossKind> {
        let class = self.class(call);
        let kind = class
            .submission_kind()
            .filter(|_| !class.is_put_on_stream())?;
        let start_ns = call.span.start_ns;
        if call.result != 0 || captures.contain(start_ns) {
            return None;
        }
        // A kernel always leaves a record, and one may still have been running long after others had ended. Copies of
        // nothing and empty graphs leave none: of these, only what was called after all work that came is lost.
        let is_kernel = kind == SubmissionKind::Kernel;
        (is_kernel || Some(start_ns) > self.latest_launch_ns).then(|| missing(kind))
    }
}

impl Assembler {
    /// Gives up the oldest of what waits, as far as memory asks for it.
    pub(super) fn trim(&mut self, process: ProcessId, cuda: &mut Cuda, tables: &mut Tables) {
        while let Some(oldest) = cuda.waiting.front().copied() {
            let current = cuda.is_current(oldest);
            let complete = cuda.launched.len() + cuda.graphs.len();
            if current && cuda.slots.len().saturating_sub(complete) <= MOST_WAITING {
                break;
            }
            cuda.waiting.pop_front();
            if current && let Some(slot) = cuda.slots.remove(&oldest.correlation) {
                self.give_up(process, cuda, slot.half, tables);
            }
        }
        let too_many = |keys: &mut VecDeque<SlotKey>, most| {
            (keys.len() > most).then(|| keys.pop_front()).flatten()
        };
        while let Some(oldest) = too_many(&mut cuda.launched, MOST_LAUNCHED)
            .or_else(|| too_many(&mut cuda.graphs, MOST_GRAPHS))
        {
            if cuda.is_current(oldest)
                && let Some(slot) = cuda.slots.remove(&oldest.correlation)
            {
                self.give_up(process, cuda, slot.half, tables);
            }
        }
    }

    /// Writes what a slot holds: the other half does not come.
    pub(super) fn give_up(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        half: Half,
        tables: &mut Tables,
    ) {
        match half {
            Half::Call(call) => self.host_call(process, cuda, &call, None, tables),
            Half::Work(work) => self.without_call(process, work, tables),
            Half::Queue(_) => {}
            Half::Launched(launch) => self.close_graph(process, launch, tables),
        }
    }

    /// Nothing more comes from a process.
    pub(in crate::assembler) fn finish_cuda(&mut self, process: ProcessId, tables: &mut Tables) {
        let mut cuda = std::mem::take(&mut self.processes[process].cuda);
        let is_orderly = self.processes[process].facts.end_ns.is_some();
        let lost = cuda.written.saturating_sub(cuda.came);
        let reason = "the record of their batch is missing";
        self.ledger.add(LossKind::CudaActivities, lost, reason);
        let mut threads: Vec<hook::Thread> = cuda.polls.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            cuda.end_polls(process, thread, tables);
        }
        let mut slots: Vec<Slot> = std::mem::take(&mut cuda.slots).into_values().collect();
        slots.sort_unstable_by_key(|slot| slot.serial);
        let captures = cuda.graph_captures.periods();
        for slot in slots {
            if let (Half::Call(call), false) = (&slot.half, is_orderly)
                && let Some(lost) = cuda.never_came(call, &captures)
            {
                let reason =
                    "launched, and the process was gone before the device's record of them came";
                self.ledger.add(lost, 1, reason);
            }
            self.give_up(process, &mut cuda, slot.half, tables);
        }
        self.finish_profiles(process, &mut cuda, tables);
        self.finish_instructions(process, &mut cuda, tables);
        cuda.event_waits.settle(self.latest_ns, true, tables);
        let devices: Vec<DeviceId> = self.devices_of(process).collect();
        for device in devices {
            if let Some(causal) = self.devices[device].causal() {
                let early = causal.early_launches();
                let reason = "the work seems to begin before the call that launched it";
                self.ledger
                    .add(LossKind::PlausibleDeviceTimes, early, reason);
            }
        }
    }
}
