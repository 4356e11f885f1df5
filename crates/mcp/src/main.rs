//! The program behind `gapscope mcp`, which `gapscope` executes. Stdout carries the protocol alone.
//!
//! Each tool runs the program `gapscope`, so that a crash of one task ends neither the server nor another task, and
//! answers are the same as on the command line.
#![forbid(unsafe_code)]

mod child;
mod roots;
mod server;

use clap::{Args, Command, FromArgMatches};
use gapscope_command::{Mcp, one_line, say, without_number};
use rmcp::ServiceExt;
use server::Server;
use std::process::ExitCode;
use std::time::Duration;

/// How long tasks may run on after the client has gone.
const LINGER: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let command = Command::new("gapscope mcp")
        .bin_name("gapscope mcp")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100);
    let matches = Mcp::augment_args(command).get_matches();
    let arguments = Mcp::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            say(&format!(
                "gapscope: {}\n",
                one_line(&without_number(&sentence))
            ));
            ExitCode::FAILURE
        }
    }
}

/// Serves until the client closes stdin.
fn run(arguments: Mcp) -> Result<(), String> {
    let server = Server::new(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("no threads can be had: {error}"))?;
    let served = runtime.block_on(async {
        let running = server
            .serve(rmcp::transport::stdio())
            .await
            .map_err(|error| format!("the client did not begin as the protocol asks: {error}"))?;
        running
            .waiting()
            .await
            .map_err(|error| format!("serving ended: {error}"))
    });
    // Tasks that still run are killed with the processes that they started.
    runtime.shutdown_timeout(LINGER);
    served.map(drop)
}
