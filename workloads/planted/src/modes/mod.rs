mod bench;
mod host;
mod reuse;

use anyhow::Result;

use crate::args::{Args, Mode};
use crate::truth::Truth;

/// Runs the mode and puts what it did into `truth`.
pub fn run(args: &Args, truth: &mut Truth) -> Result<()> {
    let mode = match args.mode {
        Mode::Steady => host::steady,
        Mode::Spin => host::spin,
        Mode::HostSleep => host::host_sleep,
        Mode::HostSleepAsync => host::host_sleep_async,
        Mode::FenceEach => host::fence_each,
        Mode::Polling => host::polling,
        Mode::Bench => bench::bench,
        Mode::Resubmit => reuse::resubmit,
    };
    mode(args, truth)
}
