//! The `gapscope` command: what the libraries do, on a command line.
#![forbid(unsafe_code)]

mod args;
mod completions;
mod export;
mod failure;
mod info;
mod layer;
mod output;
mod page;
mod progress;
mod ranks;
mod record;
mod recover;
mod report;
mod trace;
mod view;

use args::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Record(arguments) => record::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        page::say(&format!("gapscope: {failure}\n"));
        ExitCode::from(failure.status)
    })
}
