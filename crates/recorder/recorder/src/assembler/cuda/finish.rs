//! Ends the CUDA state of a process: calls without the record of their work, and work without its call, are written
//! as they are, or counted as lost.

use super::Assembler;
use gapscope_model::LossKind;
use gapscope_trace::ids::{DeviceId, ProcessId};
use gapscope_trace::tables::Tables;

impl Assembler {
    pub(in crate::assembler) fn finish_cuda(&mut self, process: ProcessId, tables: &mut Tables) {
        let state = &self.processes[process];
        let lost = state.cuda.written.saturating_sub(state.cuda.came);
        let reason = "the record of their batch is missing";
        self.ledger.add(LossKind::CudaActivities, lost, reason);
        // A process that ends in order records all its work.
        let missing = state.facts.end_ns.is_none().then_some(
            "launched, and the process was gone before the device's record of them came",
        );
        self.with_timeline(process, tables, |timeline, out| {
            timeline.finish(missing, out)
        });
        self.finish_profiles(process, tables);
        let mut cuda = std::mem::take(&mut self.processes[process].cuda);
        self.finish_instructions(process, &mut cuda, tables);
        self.processes[process].cuda.is_used = cuda.is_used;
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
