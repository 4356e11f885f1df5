//! What never got its other half.

use super::call::Call;
use super::function::{Does, Launches};
use super::graph_captures::Periods;
use super::work::missing;
use super::{Assembler, Cuda, Half, MOST_LAUNCHED, MOST_WAITING};
use gapscope_trace::tables::Tables;

impl Cuda {
    /// What a call launched of which nothing came, in a process that is gone; `None` where it launched nothing, or that is
    /// not known.
    fn never_came(&self, call: &Call, captures: &Periods) -> Option<&'static str> {
        let does = self.does(call);
        if !does.submits() || call.result != 0 {
            return None;
        }
        let (begin_ns, _) = call.times;
        if captures.contain(begin_ns) {
            return None;
        }
        // A kernel always leaves a record, and one may still have been running long after others had ended. Copies of
        // nothing and empty graphs leave none: of these, only what was called after all work that came is lost.
        let is_kernel = does == Does::Launch(Launches::Kernel);
        (is_kernel || Some(begin_ns) > self.latest_launch_ns).then(|| missing(does))
    }
}

impl Assembler {
    /// Gives up the oldest of what waits, as far as memory asks for it.
    pub(super) fn trim(&mut self, process: u32, cuda: &mut Cuda, tables: &mut Tables) {
        while let Some(oldest) = cuda.waiting.front().copied() {
            let current = cuda.is_current(oldest);
            if current && cuda.slots.len() <= MOST_WAITING + MOST_LAUNCHED {
                break;
            }
            cuda.waiting.pop_front();
            if current && let Some(slot) = cuda.slots.remove(&oldest.0) {
                self.give_up(process, cuda, slot.half, tables);
            }
        }
        while cuda.launched.len() > MOST_LAUNCHED {
            let Some(oldest) = cuda.launched.pop_front() else {
                break;
            };
            if cuda.is_current(oldest)
                && let Some(slot) = cuda.slots.remove(&oldest.0)
            {
                self.give_up(process, cuda, slot.half, tables);
            }
        }
    }

    /// Writes what a slot holds: the other half does not come.
    pub(super) fn give_up(
        &mut self,
        process: u32,
        cuda: &mut Cuda,
        half: Half,
        tables: &mut Tables,
    ) {
        match half {
            Half::Call(call) => {
                let kind = cuda.does(&call).kind();
                self.host_call(process, cuda, &call, kind, None, tables);
            }
            Half::Work(first, more) => self.without_call(process, first, more, tables),
            Half::Wait(_) => {}
            Half::Launched(launched) => self.close_graph(process, launched, tables),
        }
    }

    /// Nothing more comes from a process.
    pub(in crate::assembler) fn finish_cuda(&mut self, process: u32, tables: &mut Tables) {
        let mut cuda = std::mem::take(&mut self.processes[process as usize].cuda);
        let orderly = self.processes[process as usize].facts.end_ns.is_some();
        let lost = cuda.written.saturating_sub(cuda.came);
        self.ledger.add(
            "CUDA activities",
            lost,
            "the record of their batch is missing",
        );
        let mut threads: Vec<_> = cuda.polls.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            cuda.end_poll(process, thread, tables);
        }
        let mut slots: Vec<_> = std::mem::take(&mut cuda.slots).into_values().collect();
        slots.sort_unstable_by_key(|slot| slot.serial);
        let captures = cuda.graph_captures.periods();
        for slot in slots {
            if let (Half::Call(call), false) = (&slot.half, orderly)
                && let Some(lost) = cuda.never_came(call, &captures)
            {
                let reason =
                    "launched, and the process was gone before the device's record of them came";
                self.ledger.add(lost, 1, reason);
            }
            self.give_up(process, &mut cuda, slot.half, tables);
        }
        cuda.event_waits.settle(self.latest_ns, true, tables);
        for device in 0..self.devices.len() {
            if self.devices[device].facts.process != process {
                continue;
            }
            if let Some(causal) = self.devices[device].causal() {
                let (early, ..) = causal.early();
                let reason = "the work seems to begin before the call that launched it";
                self.ledger.add("plausible device times", early, reason);
            }
        }
    }
}
