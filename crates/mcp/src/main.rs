//! The program behind `gapscope mcp`, which `gapscope` executes: a server of the Model Context Protocol (MCP), by
//! which a client's language model calls tools. Stdout carries the protocol alone.
//!
//! Each tool runs the program `gapscope`, so that a crash of one task ends neither the server nor another task, and
//! answers are the same as on the command line. `server` has the tools, `roots` checks their paths, `child` runs
//! them.
#![forbid(unsafe_code)]

mod child;
mod roots;
mod server;

use clap::{Args, Command, FromArgMatches};
use gapscope_companion::{Mcp, one_line, say, without_os_error_numbers};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use roots::RootsError;
use server::Server;
use std::io;
use std::process::ExitCode;
use std::time::Duration;
use tokio::task::JoinError;

/// The time that tasks have to end after the client has left.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let command = Command::new("gapscope mcp")
        .bin_name("gapscope mcp")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100);
    let matches = Mcp::augment_args(command).get_matches();
    let arguments = Mcp::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let sentence = one_line(&without_os_error_numbers(&error.to_string()));
            say(&format!("gapscope: {sentence}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Why the server did not start, or ended.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error("threads cannot be started: {0}")]
    Threads(#[source] io::Error),
    #[error("the handshake with the client failed: {0}")]
    Handshake(#[source] Box<ServerInitializeError>),
    #[error("serving ended: {0}")]
    Join(#[source] JoinError),
}

/// Serves the client on stdin and stdout until it leaves.
fn run(arguments: Mcp) -> Result<(), ServeError> {
    let server = Server::new(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Threads)?;
    let served = runtime.block_on(async {
        let running = server
            .serve(rmcp::transport::stdio())
            .await
            .map_err(|error| ServeError::Handshake(Box::new(error)))?;
        running.waiting().await.map_err(ServeError::Join)
    });
    // Tasks that still run are killed with the processes that they started.
    runtime.shutdown_timeout(SHUTDOWN_LIMIT);
    served.map(drop)
}
