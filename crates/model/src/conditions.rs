//! Conditions: what of a machine and its GPUs changes how long the same work takes.
//!
//! The session measures them beside the program, each as a counter of the trace; analyses find the counter by its name.

use crate::kind::kind;
use crate::kinds::CounterUnit;

kind! {
    /// A condition that is measured while a program is recorded; its text is the name of its counter.
    Condition {
        /// Clock of the streaming multiprocessors.
        SmClock = "SM clock",
        /// Clock of the GPU's memory.
        MemoryClock = "memory clock",
        /// Temperature of the GPU.
        Temperature = "GPU temperature",
        /// Power that the GPU draws.
        Power = "GPU power",
        /// Device memory that all programs and the driver use.
        MemoryUsed = "device memory in use by all",
        /// How busy the GPU is, of all its units together, as its driver reckons it.
        GpuBusy = "GPU busy, by its driver",
        /// How busy the GPU's memory is, as its driver reckons it.
        MemoryBusy = "device memory busy, by its driver",
        /// Clock lowered: nothing runs.
        ClockIdle = "clock lowered: GPU idle",
        /// Clock limited: somebody has set it (application clocks, locked clocks).
        ClockSetting = "clock limited: setting",
        /// Clock limited: the power limit would be exceeded. Usual at full load.
        ClockPowerCap = "clock limited: power cap",
        /// Clock at most half: heat, power or the power supply; also told while the clock changes.
        ClockSlowdown = "clock limited: hardware slowdown",
        /// Clock limited: it follows that of other GPUs.
        ClockSyncBoost = "clock limited: sync boost",
        /// Clock limited by the driver: the GPU or its memory would become too hot.
        ClockHeatSoftware = "clock limited: software thermal slowdown",
        /// Clock at most half: the GPU is too hot.
        ClockHeatHardware = "clock limited: hardware thermal slowdown",
        /// Clock at most half: the power supply asks for it.
        ClockPowerBrake = "clock limited: hardware power brake",
        /// Clock limited: by that of a display.
        ClockDisplay = "clock limited: display clock setting",
        /// Clock limited: for a reason that this version does not know.
        ClockOther = "clock limited: other reason",
        /// Time below the requested clock because of heat, as the driver adds it up.
        HeatViolation = "clock below request: heat",
        /// Time below the requested clock because of power, as the driver adds it up.
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
        /// The same in the program's control group.
        GroupCpuStall = "cgroup stalled on cpu (some)",
        /// The same in the program's control group.
        GroupMemoryStall = "cgroup stalled on memory (some)",
        /// The same in the program's control group.
        GroupMemoryStallFull = "cgroup stalled on memory (full)",
        /// The same in the program's control group.
        GroupIoStall = "cgroup stalled on io (some)",
        /// The same in the program's control group.
        GroupIoStallFull = "cgroup stalled on io (full)",
        /// How often the program's control group had to give memory back because it was above its `memory.high`, since the
        /// recording began.
        GroupMemoryHigh = "cgroup above memory.high",
        /// How often it was about to exceed its `memory.max`, since the recording began.
        GroupMemoryMax = "cgroup at memory.max",
        /// Processes of it that the kernel killed for want of memory, since the recording began.
        GroupKilled = "cgroup processes killed for memory",
        /// Memory that the program's control group holds, with the files that it has read.
        GroupMemory = "cgroup memory",
        /// What the machine reads back from swap.
        SwapIn = "machine swaps in",
        /// What the machine writes to swap.
        SwapOut = "machine swaps out",
        /// Memory of the recorded processes that is in swap.
        ProgramSwap = "recorded processes in swap",
        /// Memory of the recorded processes that is not in swap; what several of them share counts for each.
        ProgramResident = "recorded processes in memory",
    }
}

/// What the names of counters of thermal states begin with (macOS); the state follows. 100 % while the machine is in it.
pub const THERMAL_STATE: &str = "thermal state: ";

impl Condition {
    /// The unit of its counter.
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

    /// True where 0 is the rule and means that nothing happened: its counter is in the trace only if it ever was something else.
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
            assert_eq!(Condition::of(condition.as_str()), *condition);
            assert_ne!(condition.unit(), CounterUnit::Unknown, "{condition}");
        }
    }
}
