//! Scripts of events with the rows that are right for them, through every way into the builder.

mod conformance;
mod host_waits;
mod script;
