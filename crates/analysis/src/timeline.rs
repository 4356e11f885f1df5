//! The timeline: a trace's work in order of time, by GPU, with its tables indexed by id.

use gapscope_trace::Trace;

/// A trace, indexed for the analyses.
pub struct Timeline<'a> {
    /// The trace.
    pub trace: &'a Trace,
}
