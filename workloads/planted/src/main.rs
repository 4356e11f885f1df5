mod args;
mod buffer;
mod gpu;
mod kernel;
mod modes;
mod recording;
mod spin;
mod truth;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use args::Args;
use gpu::Unsupported;
use truth::Truth;

fn main() -> ExitCode {
    let args = Args::parse();
    let mode = args
        .mode
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned());
    let mut truth = Truth::begin(mode);
    match modes::run(&args, &mut truth) {
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
