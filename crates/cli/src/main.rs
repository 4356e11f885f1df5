//! Runs the `gapscope` command: parses its arguments and calls the libraries.
#![forbid(unsafe_code)]

#[macro_use]
mod failure;

mod args;
mod baseline;
mod bench;
#[cfg(target_os = "linux")]
mod capture;
mod capture_json;
mod companion;
mod completions;
mod deps;
mod diff;
mod doctor;
mod exit;
mod explain;
mod export;
mod gputrace;
#[cfg(target_os = "linux")]
mod hook_libraries;
mod import;
mod info;
mod interrupts;
mod kernel_names;
mod output_path;
mod own_captures;
mod own_recordings;
mod page;
mod progress;
mod ranks;
#[cfg(target_os = "linux")]
mod record;
mod record_metal;
mod recorded_command;
#[cfg(target_os = "linux")]
mod recover;
mod replay;
mod report;
mod schema;
mod spirv_val;
#[cfg(target_os = "linux")]
mod terminal_line;
mod trace;
mod view;
mod what_if;
mod wrong_arguments;

use args::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use gapscope_companion::{MCP_PROGRAM, QUERY_PROGRAM, with_sql_apart};
use gapscope_trace::{memory, panics};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    gapscope_recorder::survive_file_size_limit();
    panics::quiet();
    let command = match Arguments::try_parse_from(arguments()) {
        Ok(arguments) => arguments.command,
        Err(error) => return wrong_arguments::refuse(error),
    };
    let limited = memory::apply_variable().map_err(|error| Failure::new(error.to_string()));
    let outcome = limited.and_then(|unchecked| {
        if let Some(sentence) = unchecked {
            page::note(&sentence);
        }
        run(command)
    });
    outcome.unwrap_or_else(|failure| {
        page::note(&failure);
        ExitCode::from(failure.status)
    })
}

/// Returns the arguments of this process.
fn arguments() -> Vec<OsString> {
    let mut all = std::env::args_os();
    let mut arguments: Vec<OsString> = all.by_ref().take(2).collect();
    match arguments.get(1).is_some_and(|command| command == "query") {
        true => arguments.extend(with_sql_apart(all)),
        false => arguments.extend(all),
    }
    arguments
}

/// Does a command's task. Where this system cannot do it, the failure says which can.
fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Record(arguments) if arguments.gputrace.is_some() => gputrace::run(&arguments),
        Command::Record(arguments) if record_metal::applies() => record_metal::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Record(arguments) => record::run(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Record(_) => Err(elsewhere("records", "Linux and macOS")),
        #[cfg(target_os = "linux")]
        Command::Capture(arguments) => capture::run(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Capture(_) => Err(elsewhere("captures", "Linux")),
        Command::Report(arguments) => report::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Baseline(arguments) => baseline::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Query(_) => Err(companion::run("query", QUERY_PROGRAM)),
        Command::Mcp(_) => Err(companion::run("mcp", MCP_PROGRAM)),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Deps(arguments) => deps::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Recover(arguments) => recover::run(&arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Recover(_) => Err(elsewhere("completes unfinished traces", "Linux")),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::WhatIf(arguments) => what_if::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::SampleCounters => gapscope_recorder::counters::sample_counters()
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| Failure::new(error.to_string())),
        #[cfg(not(target_os = "linux"))]
        Command::SampleCounters => Err(elsewhere("samples hardware counters", "Linux")),
    }
}

/// Returns the failure of a task that this system cannot do.
#[cfg(not(target_os = "linux"))]
fn elsewhere(does: &str, systems: &str) -> Failure {
    failure!("gapscope {does} on {systems}, not here")
}
