//! Text traces -> comparisons.

#[path = "../../../analysis/tests/it/any_trace.rs"]
mod any_trace;
mod diff;
mod digests;
mod garbage;
mod ranks;
