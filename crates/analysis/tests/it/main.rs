//! Text trace -> findings.

mod advice;
mod causes;
mod cuda;
mod equal_work;
mod fill;
mod gaps;
mod garbage;
mod kernel_names;
mod latency;
mod order;
mod planted;
mod program;
mod ranks;
mod tables;
mod thresholds;
mod verdict;
mod warm_up;
