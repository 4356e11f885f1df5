//! Modes that delay or poll on the host between submissions; `truth` takes what they did, for tests.

use anyhow::Result;

use crate::args::Args;
use crate::setup::Setup;
use crate::truth::{Truth, monotonic_ns};

/// Submits and waits, again and again.
pub fn steady(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for _ in 0..args.iterations {
        setup.run_dispatches(args.n)?;
    }
    setup.report(truth)
}

/// Submits one dispatch, and notes the time from the submission to the signalled fence.
pub fn spin(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let recorded = setup.spin.record_once(&setup.gpu, setup.buffer, 1)?;
    let start = monotonic_ns();
    setup.run(&[&recorded])?;
    truth.note("submit_to_fence_ns", monotonic_ns() - start);
    setup.report(truth)
}

/// Sleeps between submissions, after a wait that blocks.
pub fn host_sleep(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for iteration in 0..args.iterations {
        if iteration > 0 {
            truth.sleep_idle(args.sleep_us);
        }
        setup.run_dispatches(args.n)?;
    }
    setup.report(truth)
}

/// Sleeps between submissions, and polls instead of blocking.
pub fn host_sleep_async(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for iteration in 0..args.iterations {
        if iteration > 0 {
            truth.sleep_idle(args.sleep_us);
        }
        setup.submit(args.n)?;
        poll(&setup)?;
    }
    setup.report(truth)
}

/// Submits and awaits each dispatch alone.
pub fn fence_each(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for _ in 0..args.iterations {
        for _ in 0..args.n {
            setup.run_dispatches(1)?;
        }
    }
    setup.report(truth)
}

/// Polls for each submission, and notes how often.
pub fn polling(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let mut polls = 0;
    for _ in 0..args.iterations {
        setup.submit(args.n)?;
        polls += poll(&setup)?;
    }
    truth.note("polls", polls);
    setup.report(truth)
}

/// Polls the fence until it is signalled, resets it, and returns the number of polls.
fn poll(setup: &Setup) -> Result<u64> {
    let device = &setup.gpu.device;
    let mut polls = 1;
    while !unsafe { device.get_fence_status(setup.fence)? } {
        polls += 1;
        std::hint::spin_loop();
    }
    unsafe { device.reset_fences(&[setup.fence])? };
    Ok(polls)
}
