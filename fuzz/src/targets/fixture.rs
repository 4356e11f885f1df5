//! A trace of which a target (a test with fuzzed input) replaces one part.

use gapscope_trace::{Selection, Trace};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the folder of the trace.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/v3.gapscope")
}

/// Returns the whole trace.
pub fn trace() -> &'static Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    TRACE.get_or_init(|| {
        let (trace, diagnostics) =
            gapscope_trace::read(&folder(), &Selection::all()).expect("the fixture is a trace");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        trace
    })
}
