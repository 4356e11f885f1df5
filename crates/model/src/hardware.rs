//! Hardware counters: the activity of a GPU's units, sampled beside the program.
//!
//! The session records each as a counter of the trace; analyses find the counter by its name. Each value is the mean
//! over its sample's duration. A multiprocessor is one of the GPU's units that execute kernels, a warp a group of
//! threads that it executes together.

use crate::kind::kind;
use crate::kinds::CounterUnit;

kind! {
    /// A hardware counter. Its text is the name of its counter in the trace.
    HardwareCounter {
        /// Share of the time in which a multiprocessor had a warp, mean over all multiprocessors.
        SmActive = "SMs active",
        /// Warps on the multiprocessors as a share of the most that they can hold: achieved occupancy, with idle
        /// multiprocessors as 0.
        WarpsActive = "warps active",
        /// Share of the time in which the tensor cores worked, mean over all multiprocessors.
        TensorActive = "tensor pipe active",
        /// Share of the time in which the pipe of floating-point multiply-adds worked.
        FmaActive = "FMA pipe active",
        /// Share of the time in which the pipe of integer and logic instructions worked.
        AluActive = "ALU pipe active",
        /// Rate of executed instructions as a share of the greatest.
        InstructionsExecuted = "instruction issue",
        /// Bytes read from device memory.
        DramRead = "DRAM read",
        /// Bytes written to device memory.
        DramWritten = "DRAM written",
        /// Share of the sectors requested from the L2 cache that were in it.
        L2HitRate = "L2 hit rate",
        /// Throughput of the L2 cache as a share of the greatest.
        L2Throughput = "L2 throughput",
        /// Bytes read over PCIe by the device.
        PcieRead = "PCIe read",
        /// Bytes written over PCIe by the device.
        PcieWritten = "PCIe written",
        /// Bytes received over NVLink.
        NvlinkReceived = "NVLink received",
        /// Bytes sent over NVLink.
        NvlinkSent = "NVLink sent",
        /// Clock of the multiprocessors during the sample.
        SmClock = "SM clock, sampled",
    }
}

impl HardwareCounter {
    /// Returns the unit of the counter.
    pub const fn unit(self) -> CounterUnit {
        use HardwareCounter::*;
        match self {
            SmActive | WarpsActive | TensorActive | FmaActive | AluActive
            | InstructionsExecuted | L2HitRate | L2Throughput => CounterUnit::Percent,
            DramRead | DramWritten | PcieRead | PcieWritten | NvlinkReceived | NvlinkSent => {
                CounterUnit::BytesPerSecond
            }
            SmClock => CounterUnit::Hertz,
            Unknown => CounterUnit::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Condition;

    #[test]
    fn a_counter_is_found_by_its_name_and_has_a_unit() {
        for counter in HardwareCounter::ALL {
            assert_eq!(
                HardwareCounter::from_text_or_unknown(counter.as_str()),
                *counter
            );
            assert_ne!(counter.unit(), CounterUnit::Unknown, "{counter}");
            assert_eq!(
                Condition::from_text_or_unknown(counter.as_str()),
                Condition::Unknown
            );
        }
    }
}
