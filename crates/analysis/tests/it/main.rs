//! Text trace -> findings.

mod causes;
mod cuda;
mod equal_work;
mod gaps;
mod garbage;
mod kernel_names;
mod planted;
mod program;
mod ranks;
mod tables;
mod thresholds;
mod verdict;
mod warm_up;
