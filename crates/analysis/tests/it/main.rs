//! Text trace -> findings.

mod cuda;
mod gaps;
mod garbage;
mod planted;
mod program;
mod tables;
mod verdict;
mod warm_up;
mod work;
