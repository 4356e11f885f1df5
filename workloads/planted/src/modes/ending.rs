//! Modes that end the program or its device in different ways; `truth` takes what they did, for tests.

use anyhow::{Result, bail};
use ash::vk;

use crate::Unsupported;
use crate::args::Args;
use crate::setup::Setup;
use crate::truth::Truth;

/// Ends after its work without destroying anything.
pub fn abandon(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for _ in 0..args.iterations {
        setup.run_dispatches(args.n)?;
    }
    setup.report(truth)?;
    leave(args, truth)
}

/// Ends the process here, without destructors.
fn leave(args: &Args, truth: &mut Truth) -> ! {
    truth.print();
    if args.hard_exit {
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(0) };
    }
    std::process::exit(0);
}

/// Kills itself after its work, once the truth is printed.
pub fn killed(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for _ in 0..args.iterations {
        setup.run_dispatches(args.n)?;
    }
    setup.report(truth)?;
    truth.print();
    // SAFETY: the call ends the process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    bail!("SIGKILL did not end the process");
}

/// Ends while submissions are pending.
pub fn in_flight(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let gpu = &setup.gpu;
    for buffer in gpu.primaries(&gpu.queues[0], args.iterations)? {
        let recorded = setup.spin.record_once(gpu, buffer, args.n)?;
        gpu.submit(&[&recorded], vk::Fence::null())?;
    }
    // The report has no result, because nothing waited for it.
    gpu.report(truth);
    leave(args, truth)
}

/// Makes two instances with a device each in every iteration, and destroys them in alternating order.
pub fn churn(args: &Args, truth: &mut Truth) -> Result<()> {
    for iteration in 0..args.iterations {
        let mut setups = [Setup::open(args)?, Setup::open(args)?];
        for setup in &setups {
            setup.submit(args.n)?;
        }
        for setup in &setups {
            setup.wait()?;
            setup.report(truth)?;
        }
        if iteration % 2 == 1 {
            setups.reverse();
        }
    }
    truth.note("instances", 2 * args.iterations);
    Ok(())
}

/// Submits until the driver loses the device, then ends normally; fails where the driver does not lose it.
pub fn device_lost(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    for _ in 0..args.iterations {
        if let Err(error) = setup.submit(args.n).and_then(|()| setup.wait()) {
            if error.downcast_ref() != Some(&vk::Result::ERROR_DEVICE_LOST) {
                return Err(error);
            }
            truth.note("device_lost", true);
            setup.gpu.report(truth);
            return Ok(());
        }
    }
    bail!(Unsupported("the driver did not lose the device".into()))
}
