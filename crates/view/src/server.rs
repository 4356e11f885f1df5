//! Opens traces and a port, and runs the HTTP server of the page until it is interrupted or dropped.
//! [`Server::open`], then [`Server::serve`] on this thread or [`Server::start`] on another.

use crate::Error;
use crate::http::{self, Served};
use crate::preferences::Preferences;
use crate::priority::step_back;
use crate::served_capture::{ServedCapture, is_capture};
use crate::sql::Sql;
use crate::traces::{Traces, name};
use gapscope_report::source_lines::SourceAccess;
use gapscope_trace::Names;
use std::fmt::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// The default number of rows that the page holds, in about 400 MB: all rows of ten million dispatches.
const PAGE_ROWS: u64 = 16_000_000;

/// The options of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port; a free one is chosen where none is given.
    pub port: Option<u16>,
    /// Whether the trace is being recorded, so that the server follows it.
    pub live: bool,
    /// Names of kernels that replace the recorded ones.
    pub names: Option<Arc<Names>>,
    /// The folder of the reader's preferences, such as the arrangement of tracks; without one the browser keeps them, for one port.
    pub state: Option<PathBuf>,
    /// The folder whose files may be quoted as sources of the program, whoever recorded the trace. Without one, sources are
    /// quoted only for traces that this user recorded on this machine.
    pub sources: Option<PathBuf>,
    /// The program that answers SQL; by default `gapscope-query` beside this program or in PATH.
    pub query_program: Option<PathBuf>,
    /// The longest time that a query may take; by default a minute.
    pub longest_query: Option<Duration>,
    /// The most rows of tracks that the page holds at once, of 24 bytes each; by default 16 million. Larger traces
    /// are shown in parts.
    pub page_rows: Option<u64>,
}

/// A server that has a port and reads its traces, but does not answer yet.
pub struct Server {
    listener: TcpListener,
    /// The address of the page, with the token.
    url: String,
    /// Everything that requests are answered from.
    served: Arc<Served>,
    live: bool,
}

/// A server that answers until this handle is dropped.
#[derive(Debug)]
pub struct Running {
    url: String,
    /// Dropping the sender ends the server.
    end: Option<oneshot::Sender<()>>,
    /// The thread that answers; dropping the handle waits for its end.
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Server {
    /// Opens a trace with those of its ranks, two traces to compare, or a capture, and a port of 127.0.0.1. The traces are read in the background.
    ///
    /// # Errors
    /// A trace or a capture cannot be opened, a capture is not alone, a trace is not complete (unless the options say that it is live), the ranks have no common clock,
    /// or the port cannot be opened.
    pub fn open(traces: &[PathBuf], options: Options) -> Result<Server, Error> {
        if !options.live {
            return Server::open_here(traces, options);
        }
        // Threads inherit the niceness of those that start them.
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| {
                step_back();
                Server::open_here(traces, options)
            });
            opening
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Does what [`Self::open`] does, on this thread.
    fn open_here(traces: &[PathBuf], options: Options) -> Result<Server, Error> {
        let capture = traces.iter().find(|path| is_capture(path));
        let (traces, capture) =
            match (capture, traces) {
                (Some(path), [_]) => (
                    Traces::default(),
                    Some(ServedCapture::open(path, name(path))?),
                ),
                (Some(path), _) => return Err(Error::Several(path.clone())),
                (None, traces) => (
                    Traces::open(traces, options.live, options.names.as_ref(), |folder| {
                        match options.live {
                            true => SourceAccess::Recorded(None),
                            false => SourceAccess::for_trace(
                                folder,
                                options.sources.as_deref(),
                                &[],
                                options.state.as_deref(),
                            ),
                        }
                    })?,
                    None,
                ),
            };
        let port = options.port.unwrap_or(0);
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| Error::Port {
                port,
                reason: match error.kind() {
                    std::io::ErrorKind::AddrInUse => "another program has it".to_owned(),
                    _ => error.to_string(),
                },
            })?;
        let port = listener.local_addr().map_err(system)?.port();
        listener.set_nonblocking(true).map_err(system)?;
        let token = token()?;
        Ok(Server {
            url: format!("http://127.0.0.1:{port}/{token}/"),
            listener,
            served: Arc::new(Served {
                traces,
                capture,
                preferences: Preferences::new(options.state.as_deref()),
                sql: Sql::new(options.query_program, options.longest_query),
                page_rows: options.page_rows.unwrap_or(PAGE_ROWS),
                token,
                port,
            }),
            live: options.live,
        })
    }

    /// Returns the address of the page. Whoever knows the address can read the traces.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers until Ctrl-C.
    ///
    /// # Errors
    /// The system refuses.
    pub fn serve(self) -> Result<(), Error> {
        self.answer_until(async {
            // Without a handler, Ctrl-C ends the process as well.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    /// Answers on a thread of its own.
    pub fn start(self) -> Running {
        let url = self.url.clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(|| {
            if self.live {
                step_back();
            }
            self.answer_until(async {
                let _ = ended.await;
            })
        });
        Running {
            url,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// Answers requests on this thread until `end` is ready.
    fn answer_until(self, end: impl Future<Output = ()>) -> Result<(), Error> {
        let runtime = runtime()?;
        let answered = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let serving = axum::serve(listener, http::router(self.served));
            tokio::select! {
                served = serving.into_future() => served,
                () = end => Ok(()),
            }
        });
        // Requests that still wait for an analysis get no answer.
        runtime.shutdown_background();
        answered.map_err(system)
    }
}

impl Running {
    /// Returns the address of the page.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Goes on answering until Ctrl-C.
    ///
    /// # Errors
    /// The system refuses.
    pub fn until_interrupted(self) -> Result<(), Error> {
        let interrupted = runtime()?.block_on(tokio::signal::ctrl_c());
        interrupted.map_err(system)
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(system)
}

fn system(error: std::io::Error) -> Error {
    Error::System(error.to_string())
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has no one to be reported to.
            let _ = thread.join();
        }
    }
}

/// Returns 128 random bits as hexadecimal digits.
fn token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System(format!("no random numbers: {error}")))?;
    let mut token = String::with_capacity(32);
    for byte in bytes {
        let _ = write!(token, "{byte:02x}");
    }
    Ok(token)
}
