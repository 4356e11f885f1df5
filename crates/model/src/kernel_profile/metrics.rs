//! Lists all metrics of a profile of a kernel launch, with names, topics and meanings.

use super::{MetricSection, MetricUnit, Stall};

/// A metric of a profiled launch, where the GPU has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name in Nsight Compute and CUPTI.
    pub name: &'static str,
    /// The topic that reports list the metric under.
    pub section: MetricSection,
    /// Meaning, as a sentence.
    pub meaning: &'static str,
}

impl Metric {
    /// Returns the metric with this name from [`METRICS`] and [`GRID`]; `None` for another name.
    pub fn by_name(name: &str) -> Option<&'static Metric> {
        let all = METRICS.iter().chain([&GRID]);
        all.into_iter().find(|metric| metric.name == name)
    }

    /// Returns the unit of the value.
    pub fn unit(&self) -> MetricUnit {
        MetricUnit::from_metric(self.name)
    }
}

/// Declares constants for the metrics' names, and the list of metrics.
/// Each line is `CONSTANT = "name": "meaning"`, under the section (topic) of reports that shows it.
macro_rules! metrics {
    ($($section:ident { $($constant:ident = $name:literal: $meaning:literal,)+ })+) => {
        /// Names of metrics.
        pub mod name {
            $($(#[doc = $meaning] pub const $constant: &str = $name;)+)+
        }

        /// The metrics listed below, in the same order; those of stalls are not among them.
        const FIXED: &[Metric] = &[$($(
            Metric { name: $name, section: MetricSection::$section, meaning: $meaning },
        )+)+];
    };
}

metrics! {
    SpeedOfLight {
        DURATION = "gpu__time_duration.sum": "Time that the kernel took in the pass that measured it.",
        COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed": "Throughput of the multiprocessors' units, of the greatest: the busiest unit counts.",
        MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "Throughput of caches and device memory, of the greatest: the busiest part counts.",
        DRAM_THROUGHPUT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "Throughput of device memory, of the greatest.",
        L2_THROUGHPUT = "lts__throughput.avg.pct_of_peak_sustained_elapsed": "Throughput of the L2 cache, of the greatest.",
        L1_THROUGHPUT = "l1tex__throughput.avg.pct_of_peak_sustained_active": "Throughput of the L1 caches and shared memory, of the greatest.",
        SM_CLOCK = "sm__cycles_elapsed.avg.per_second": "Clock of the multiprocessors.",
        DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second": "Clock of device memory.",
    }
    Memory {
        DRAM_READ = "dram__bytes_read.sum": "Read from device memory.",
        DRAM_WRITTEN = "dram__bytes_write.sum": "Written to device memory.",
        L2_BYTES = "lts__t_bytes.sum": "Asked of the L2 cache.",
        L1_BYTES = "l1tex__t_bytes.sum": "Asked of the L1 caches.",
        L2_HIT_RATE = "lts__t_sector_hit_rate.pct": "Of the sectors asked of the L2 cache, those that were in it.",
        L1_HIT_RATE = "l1tex__t_sector_hit_rate.pct": "Of the sectors asked of the L1 caches, those that were in them.",
        LOAD_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": "Sectors of 32 bytes for each load of a warp from global memory: 4 are the least for words of 4 bytes.",
        STORE_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": "Sectors of 32 bytes for each store of a warp to global memory.",
        BANK_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "Conflicts of banks of shared memory.",
        LOCAL_LOADED = "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum": "Loaded from local memory: spilled registers, and arrays of a thread.",
    }
    Compute {
        INSTRUCTIONS = "sm__inst_executed.sum": "Instructions of warps.",
        INSTRUCTIONS_PER_CYCLE = "sm__inst_executed.avg.per_cycle_active": "Instructions of warps in a cycle of a multiprocessor that has work.",
        ISSUE_ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active": "Cycles in which a scheduler issued an instruction, of those with work.",
        TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "Cycles in which the tensor cores worked, of those with work.",
        FMA = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": "Use of the pipe of floating-point multiply-adds.",
        ALU = "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active": "Use of the pipe of integer and logic instructions.",
        FP64 = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active": "Use of the pipe of double precision.",
        XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": "Use of the pipe of transcendental functions and conversions.",
        LSU = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active": "Use of the pipe of loads and stores.",
        FADD = "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": "Additions of single precision, by threads.",
        FMUL = "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": "Multiplications of single precision, by threads.",
        FFMA = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": "Multiply-adds of single precision, by threads: two operations each.",
        TENSOR_BF16 = "sm__ops_path_tensor_src_bf16_dst_fp32.sum": "Operations of the tensor cores on bf16: a multiplication and an addition are two.",
        TENSOR_FP16 = "sm__ops_path_tensor_src_fp16.sum": "Operations of the tensor cores on fp16.",
        TENSOR_TF32 = "sm__ops_path_tensor_src_tf32_dst_fp32.sum": "Operations of the tensor cores on tf32.",
        TENSOR_FP8 = "sm__ops_path_tensor_src_fp8.sum": "Operations of the tensor cores on fp8.",
        THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio": "Threads of a warp that took part in an instruction: 32 without divergence.",
    }
    Occupancy {
        WARPS_ACTIVE = "sm__warps_active.avg.pct_of_peak_sustained_active": "Warps on a multiprocessor that has work, of those that it can hold: achieved occupancy.",
        SM_ACTIVE_CYCLES = "sm__cycles_active.avg": "Cycles in which a multiprocessor had work, mean over all.",
    }
}

/// Workgroups of the launch: known without hardware counters, and named as in Nsight Compute.
pub static GRID: Metric = Metric {
    name: "launch__grid_size",
    section: MetricSection::Occupancy,
    meaning: "Workgroups of the launch.",
};

/// Number of metrics that `metrics!` lists; one for each [`Stall`] follows them.
const FIXED_METRICS: usize = FIXED.len();
const ALL: usize = FIXED_METRICS + Stall::ALL.len();

/// All metrics, in the order in which they are written.
pub static METRICS: [Metric; ALL] = {
    let mut all = [FIXED[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = match at < FIXED_METRICS {
            true => FIXED[at],
            false => Metric {
                name: Stall::ALL[at - FIXED_METRICS].metric(),
                section: MetricSection::Stalls,
                meaning: Stall::ALL[at - FIXED_METRICS].meaning(),
            },
        };
        at += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_by_names_that_differ() {
        for (at, metric) in METRICS.iter().enumerate() {
            let found = METRICS.iter().position(|other| other.name == metric.name);
            assert_eq!(found, Some(at), "{}", metric.name);
            assert_ne!(metric.section, MetricSection::Unknown);
            assert!(metric.meaning.ends_with('.'), "{}", metric.meaning);
        }
        assert_eq!(Metric::by_name("nonsense"), None);
        let units = |unit| METRICS.iter().filter(|m| m.unit() == unit).count();
        assert_eq!(units(MetricUnit::Bytes), 5);
        assert_eq!(units(MetricUnit::Hertz), 2);
        assert_eq!(units(MetricUnit::Nanoseconds), 1);
    }
}
