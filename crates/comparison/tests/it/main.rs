//! Text traces -> comparisons.

#[path = "../../../analysis/tests/it/any_trace.rs"]
mod any_trace;
mod code_apart;
mod garbage;
mod ranks;
