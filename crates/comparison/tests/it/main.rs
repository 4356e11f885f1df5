//! Text traces -> comparisons.

#[path = "../../../analysis/tests/it/any_trace.rs"]
mod any_trace;
mod digests;
mod garbage;
mod ranks;
