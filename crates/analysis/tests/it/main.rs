//! Text trace -> findings.

mod advice;
mod causes;
mod certainty;
mod code_apart;
mod conditions;
mod cuda;
mod equal_work;
mod evaluations;
mod fill;
mod gaps;
mod garbage;
mod kernel_names;
mod latency;
mod layers;
mod order;
mod planted;
mod polls;
mod program;
mod ranks;
mod regular;
mod samples;
mod tables;
mod threads;
mod thresholds;
mod verdict;
mod warm_up;
