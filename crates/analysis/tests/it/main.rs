//! Text trace -> findings.

mod causes;
mod certainty;
mod cuda;
mod equal_work;
mod gaps;
mod garbage;
mod planted;
mod polls;
mod program;
mod ranks;
mod regular;
mod tables;
mod threads;
mod thresholds;
mod verdict;
mod warm_up;
