//! Runs one mode of planted work, which is GPU work with a known cause of idle time or a certain use of the API, and
//! prints what it did (the truth) as JSON, so that tests can compare a trace with that. The exit code is 3 where the
//! device cannot run the mode.

mod args;
mod buffer;
mod conduct;
mod gpu;
mod instance;
mod kernel;
mod layout;
mod modes;
mod queue;
mod recorded;
mod recorder;
mod recording;
mod setup;
mod spin;
mod truth;

use std::fmt;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use args::Args;
use truth::Truth;

fn main() -> ExitCode {
    let args = Args::parse();
    let mode = args
        .mode
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned());
    let mut truth = Truth::start(mode);
    let mut work =
        || conduct::at(args::Moment::Start, &args).and_then(|()| modes::run(&args, &mut truth));
    let of_all = args
        .stack_kib
        .filter(|_| args.mode != args::Mode::Submitter);
    let run = match of_all {
        None => work(),
        Some(kib) => std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(kib << 10);
            let thread = thread.spawn_scoped(scope, work)?;
            thread.join().expect("a thread that does not panic")
        }),
    };
    match run {
        Ok(()) => {
            truth.print();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::from(if error.is::<Unsupported>() { 3 } else { 1 })
        }
    }
}

/// The device or driver lacks a feature that the mode needs.
#[derive(Debug)]
struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}
