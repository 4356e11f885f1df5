//! Tests replays of captures that the tests write, on the software GPU: outputs, traces, inspections, and refusals.

mod captured;
mod fewer_barriers;
mod inspecting;
mod refused;
mod running;
mod tracing;

use gapscope_replay::Error;

/// Returns the result of a run; none if there is no device, unless one is required.
fn on_device<T>(result: Result<T, Error>) -> Option<Result<T, Error>> {
    if let Err(Error::NoLoader(_) | Error::NoDevice(_)) = result {
        let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|value| value == "1");
        assert!(!required, "there is no Vulkan device");
        eprintln!("skipped: there is no Vulkan device");
        return None;
    }
    Some(result)
}
