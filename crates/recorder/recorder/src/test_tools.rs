//! Finds the tools that some tests need.

use std::path::PathBuf;

/// Skips a test that lacks a tool. With `GAPSCOPE_REQUIRE_CLIENTS=1`, as in continuous integration, the test fails.
pub fn skip(why: &str) {
    let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
    assert!(!required, "{why}");
    eprintln!("skipped: {why}");
}

/// Returns the libcupti.so.13 that `GAPSCOPE_TEST_CUPTI` names, or skips the test.
pub fn cupti() -> Option<PathBuf> {
    let path = std::env::var_os("GAPSCOPE_TEST_CUPTI");
    if path.is_none() {
        skip("GAPSCOPE_TEST_CUPTI names no libcupti.so.13");
    }
    path.map(PathBuf::from)
}
