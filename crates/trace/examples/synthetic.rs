//! Generates a large trace: `cargo run -p gapscope-trace --example synthetic -- --dispatches 1e7 OUT.gapscope`.
#![forbid(unsafe_code)]

use gapscope_trace::synthetic::Synthetic;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: synthetic [--dispatches N] [--queues N] [--devices N] [--kernels N] [--labels N] [--seed N] OUT.gapscope
N may be written as 1e7; the defaults are 1e6 dispatches, 8 queues, 1 device, 200 kernels, 32 labelled layers, seed 1";

fn main() -> ExitCode {
    let Some((of, out)) = arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match of.write(&out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the trace that the command line describes, and the folder to write; `None` where an option or number is
/// wrong, or the folder is missing or given twice.
fn arguments(mut arguments: impl Iterator<Item = String>) -> Option<(Synthetic, PathBuf)> {
    let mut of = Synthetic::default();
    let mut out = None;
    while let Some(argument) = arguments.next() {
        if !argument.starts_with("--") {
            out.replace(PathBuf::from(argument))
                .is_none()
                .then_some(())?;
            continue;
        }
        let number: f64 = arguments.next()?.parse().ok()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(())?;
        let small = u32::try_from(number as u64);
        match argument.as_str() {
            "--dispatches" => of.dispatches = number as u64,
            "--seed" => of.seed = number as u64,
            "--queues" => of.queues = small.ok()?,
            "--devices" => of.devices = small.ok()?,
            "--kernels" => of.kernels = small.ok()?,
            "--labels" => of.layers = small.ok()?,
            _ => return None,
        }
    }
    Some((of, out?))
}
