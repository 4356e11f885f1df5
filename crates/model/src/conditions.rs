//! Conditions of a machine and its GPUs that change how long the same work takes.
//!
//! The session measures them beside the program, each as a counter of the trace; analyses find the counter by its
//! name.

use crate::kind::kind;
use crate::kinds::CounterUnit;

kind! {
    /// A condition that is measured during a recording. Its text is the name of its counter in the trace.
    Condition {
        /// Clock of the streaming multiprocessors.
        SmClock = "SM clock",
        /// Clock of the GPU's memory.
        MemoryClock = "memory clock",
        /// Temperature of the GPU.
        Temperature = "GPU temperature",
        /// Power that the GPU draws.
        Power = "GPU power",
        /// Device memory in use by all programs and the driver.
        MemoryUsed = "device memory in use by all",
        /// Load of the GPU, over all its units, as its driver estimates it.
        GpuBusy = "GPU busy, by its driver",
        /// Load of the GPU's memory, as its driver estimates it.
        MemoryBusy = "device memory busy, by its driver",
        /// Clock lowered: the GPU is idle.
        ClockIdle = "clock lowered: GPU idle",
        /// Clock limited: by a setting (application clocks, locked clocks).
        ClockSetting = "clock limited: setting",
        /// Clock limited: the power limit would be exceeded. Usual at full load.
        ClockPowerCap = "clock limited: power cap",
        /// Clock at most half: heat, power or the power supply; also reported while the clock changes.
        ClockSlowdown = "clock limited: hardware slowdown",
        /// Clock limited: to that of other GPUs.
        ClockSyncBoost = "clock limited: sync boost",
        /// Clock limited by the driver: the GPU or its memory would become too hot.
        ClockHeatSoftware = "clock limited: software thermal slowdown",
        /// Clock at most half: the GPU is too hot.
        ClockHeatHardware = "clock limited: hardware thermal slowdown",
        /// Clock at most half: the power supply asks for it.
        ClockPowerBrake = "clock limited: hardware power brake",
        /// Clock limited: to that of a display.
        ClockDisplay = "clock limited: display clock setting",
        /// Clock limited: for a reason unknown to this version.
        ClockOther = "clock limited: other reason",
        /// Time below the requested clock because of heat, according to the driver.
        HeatViolation = "clock below request: heat",
        /// Time below the requested clock because of power, according to the driver.
        PowerViolation = "clock below request: power",
        /// Time in which a task waited for a processor.
        CpuStall = "machine stalled on cpu (some)",
        /// Time in which a task waited for memory.
        MemoryStall = "machine stalled on memory (some)",
        /// Time in which all tasks that are not idle waited for memory at once.
        MemoryStallFull = "machine stalled on memory (full)",
        /// Time in which a task waited for a disk.
        IoStall = "machine stalled on io (some)",
        /// Time in which all tasks that are not idle waited for a disk at once.
        IoStallFull = "machine stalled on io (full)",
        /// Time in which a task of the program's control group waited for a processor.
        GroupCpuStall = "cgroup stalled on cpu (some)",
        /// Time in which a task of the program's control group waited for memory.
        GroupMemoryStall = "cgroup stalled on memory (some)",
        /// Time in which all tasks of the program's control group waited for memory at once.
        GroupMemoryStallFull = "cgroup stalled on memory (full)",
        /// Time in which a task of the program's control group waited for a disk.
        GroupIoStall = "cgroup stalled on io (some)",
        /// Time in which all tasks of the program's control group waited for a disk at once.
        GroupIoStallFull = "cgroup stalled on io (full)",
        /// Times that the program's control group had to reclaim memory because it exceeded `memory.high`, since the
        /// recording began.
        GroupMemoryHigh = "cgroup above memory.high",
        /// Times that the control group was about to exceed `memory.max`, since the recording began.
        GroupMemoryMax = "cgroup at memory.max",
        /// Processes of the control group that the kernel killed for lack of memory, since the recording began.
        GroupKilled = "cgroup processes killed for memory",
        /// Memory of the program's control group, its page cache included.
        GroupMemory = "cgroup memory",
        /// Rate at which the machine reads from swap.
        SwapIn = "machine swaps in",
        /// Rate at which the machine writes to swap.
        SwapOut = "machine swaps out",
        /// Memory of the recorded processes that is in swap.
        ProgramSwap = "recorded processes in swap",
        /// Memory of the recorded processes outside of swap; shared memory counts once for each process.
        ProgramResident = "recorded processes in memory",
    }
}

/// Prefix of the names of counters of thermal states (macOS); the state follows. The value is 100 % during the state.
pub const THERMAL_STATE: &str = "thermal state: ";

impl Condition {
    /// Returns the unit of the counter.
    pub const fn unit(self) -> CounterUnit {
        use Condition::*;
        match self {
            SmClock | MemoryClock => CounterUnit::Hertz,
            Temperature => CounterUnit::Celsius,
            Power => CounterUnit::Watts,
            MemoryUsed | GroupMemory | ProgramSwap | ProgramResident => CounterUnit::Bytes,
            SwapIn | SwapOut => CounterUnit::BytesPerSecond,
            GroupMemoryHigh | GroupMemoryMax | GroupKilled => CounterUnit::Count,
            GpuBusy | MemoryBusy | ClockIdle | ClockSetting | ClockPowerCap | ClockSlowdown
            | ClockSyncBoost | ClockHeatSoftware | ClockHeatHardware | ClockPowerBrake
            | ClockDisplay | ClockOther | HeatViolation | PowerViolation | CpuStall
            | MemoryStall | MemoryStallFull | IoStall | IoStallFull | GroupCpuStall
            | GroupMemoryStall | GroupMemoryStallFull | GroupIoStall | GroupIoStallFull => {
                CounterUnit::Percent
            }
            Unknown => CounterUnit::Unknown,
        }
    }

    /// Returns true where 0 is normal and means that nothing happened. Such a counter is in the trace only if it ever
    /// was different.
    pub const fn is_event(self) -> bool {
        use Condition::*;
        !matches!(
            self,
            SmClock
                | MemoryClock
                | Temperature
                | Power
                | MemoryUsed
                | GpuBusy
                | MemoryBusy
                | GroupMemory
                | ProgramResident
                | Unknown
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name_and_has_a_unit() {
        for condition in Condition::ALL {
            assert_eq!(
                Condition::from_text_or_unknown(condition.as_str()),
                *condition
            );
            assert_ne!(condition.unit(), CounterUnit::Unknown, "{condition}");
        }
    }
}
