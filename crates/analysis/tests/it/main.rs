//! Text trace -> findings.

mod causes;
mod cuda;
mod equal_work;
mod evaluations;
mod gaps;
mod garbage;
mod planted;
mod program;
mod ranks;
mod samples;
mod tables;
mod thresholds;
mod verdict;
mod warm_up;
