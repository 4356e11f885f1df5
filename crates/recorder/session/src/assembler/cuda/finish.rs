//! What never got its other half.

use super::work::missing;
use super::{Assembler, Cuda, Half, MOST_LAUNCHED, MOST_WAITING};
use gapscope_trace::tables::Tables;

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
        let mut threads: Vec<u32> = cuda.polls.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            cuda.end_poll(process, thread, tables);
        }
        let mut slots: Vec<_> = std::mem::take(&mut cuda.slots).into_values().collect();
        slots.sort_unstable_by_key(|slot| slot.serial);
        for slot in slots {
            if let (Half::Call(call), false) = (&slot.half, orderly) {
                // A call of earlier times launched nothing, or recorded it into a graph: later work has come.
                let does = cuda.does(call);
                let late = call.times.map(|t| t.0) > cuda.latest_launch_ns;
                if does.submits() && call.result == 0 && late {
                    let reason = "launched, and the process was gone before the device's record of them came";
                    self.ledger.add(missing(does), 1, reason);
                }
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
