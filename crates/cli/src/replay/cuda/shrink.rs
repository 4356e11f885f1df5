//! `gapscope replay --shrink`: writes a capture of CUDA that has only the pages that its launches need.
//!
//! This process searches, and another one, which it starts, runs the launches: a launch on changed memory may fail, after which a
//! process cannot use the GPU any more. Requests and replies are lines of JSON on the other process's stdin and stdout.

use crate::args;
use crate::exit;
use crate::failure::Failure;
use crate::replay::json::ShrunkCapture;
use crate::replay::remarks;
use crate::{own_captures, page, progress};
use gapscope_capture::Problem;
use gapscope_capture::cuda::CudaCapture;
use gapscope_cuda_replay::shrink::{
    Compares, Fill, Pages, Reply, Request, Shrunk, Trial, find_spare_pages,
};
use gapscope_cuda_replay::{Error, Options, process};
use gapscope_report::Document;
use gapscope_report::document::{Block, Text};
use gapscope_timeline::quantity;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

/// Finds the pages that the launches need, and writes the capture.
pub fn run(
    arguments: &args::Replay,
    capture: &CudaCapture,
    folder: &Path,
    problem: Option<&Problem>,
) -> Result<ExitCode, Failure> {
    // The search may take minutes: that the folder can be made is found out first.
    let is_made = std::fs::create_dir(folder);
    is_made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            failure!("{} exists: give another name to --shrink", folder.display())
        }
        _ => failure!("{} cannot be made: {error}", folder.display()),
    })?;
    let _ = std::fs::remove_dir(folder);
    let shrunk = progress::while_running("finding the pages that the launches need", || {
        shrink(arguments, capture, folder)
    })?;
    // The code of a stranger's capture is a stranger's in the smaller one, too.
    if own_captures::has(&arguments.capture) {
        own_captures::remember(folder);
    }
    let notes = remarks(capture.end.as_ref(), problem);
    let status = exit::after_reading(problem.is_none());
    if arguments.json {
        page::write_json(&ShrunkCapture { shrunk, notes })?;
        return Ok(status);
    }
    let text = Text::new()
        .and("Wrote ")
        .strong(folder.display().to_string())
        .and(format!(
            " with {} of {} of content ({} of {}). With other bytes in the other pages, all launches computed the same.",
            quantity::bytes(shrunk.bytes_kept),
            quantity::bytes(shrunk.bytes),
            quantity::count(shrunk.pages_kept),
            quantity::count_of(shrunk.pages, "page", "pages"),
        ));
    let mut blocks = vec![Block::Sentence(text)];
    let runs = quantity::count_of(shrunk.runs, "run", "runs");
    blocks.push(Block::Item(match shrunk.failed_runs {
        0 => format!("{runs} told them apart.").into(),
        failed => format!("{runs} told them apart; in {} of them a launch failed, as it must with wrong pointers.", quantity::count(failed)).into(),
    }));
    blocks.extend(page::items(&notes));
    page::print(&Document { blocks }, &arguments.width)?;
    Ok(status)
}

fn shrink(
    arguments: &args::Replay,
    capture: &CudaCapture,
    folder: &Path,
) -> Result<Shrunk, Failure> {
    let pages = Pages::from_capture(capture).map_err(|error| Failure::new(error.to_string()))?;
    let mut runner = Runner {
        arguments,
        process: None,
        runs: 0,
        failed_runs: 0,
    };
    let spare = find_spare_pages(pages.count(), &mut runner)?.ok_or_else(|| {
        failure!("the launches differ from themselves: it cannot be told which pages they need")
    })?;
    let folder =
        std::path::absolute(folder).map_err(|error| failure!("{}: {error}", folder.display()))?;
    match runner.ask(&Request::Write(folder, spare.clone()))? {
        Reply::Written => {}
        reply => return Err(unexpected(&reply)),
    }
    let left_out: u64 = spare.iter().map(|range| range.end - range.start).sum();
    let bytes = pages.all_bytes();
    Ok(Shrunk {
        pages: pages.count(),
        pages_kept: pages.count() - left_out,
        bytes,
        bytes_kept: bytes - pages.bytes(&spare),
        runs: runner.runs,
        failed_runs: runner.failed_runs,
    })
}

/// Asks the process that has the GPU, and starts it where there is none.
struct Runner<'a> {
    arguments: &'a args::Replay,
    process: Option<Process>,
    runs: u64,
    failed_runs: u64,
}

impl Compares for Runner<'_> {
    type Error = Failure;

    fn is_same(
        &mut self,
        fill: Fill,
        pages: &[Range<u64>],
        is_thorough: bool,
    ) -> Result<bool, Failure> {
        self.runs += 1;
        match self.ask(&Request::Compare(fill, pages.to_vec(), is_thorough))? {
            Reply::Compared(is_same) => Ok(is_same),
            Reply::LaunchFailed => {
                self.failed_runs += 1;
                Ok(false)
            }
            reply => Err(unexpected(&reply)),
        }
    }
}

impl Runner<'_> {
    /// Returns the answer to a request. The end of the process without one is that of a failed launch.
    fn ask(&mut self, request: &Request) -> Result<Reply, Failure> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::start(self.arguments)?,
        };
        match process.ask(request) {
            Ok(Some(Reply::Failed(reason))) => Err(Failure::new(reason)),
            Ok(Some(Reply::LaunchFailed)) | Ok(None) => Ok(Reply::LaunchFailed),
            Ok(Some(reply)) => {
                self.process = Some(process);
                Ok(reply)
            }
            Err(error) => Err(failure!(
                "the process that runs the launches cannot be asked: {error}"
            )),
        }
    }
}

/// A process that runs the launches. It ends with its stdin.
struct Process {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this program for the same capture, and waits until it is ready.
    fn start(arguments: &args::Replay) -> Result<Process, Failure> {
        let cannot = |error: io::Error| {
            failure!("the process that runs the launches cannot be started: {error}")
        };
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["replay", "--trust", "--shrink-runner"]);
        if let Some(device) = &arguments.device {
            command.arg(format!("--device={device}"));
        }
        command.arg("--").arg(&arguments.capture);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(cannot)?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(cannot(io::ErrorKind::BrokenPipe.into()));
        };
        let mut process = Process {
            child,
            requests,
            replies: BufReader::new(replies),
        };
        match process.reply().map_err(cannot)? {
            Some(Reply::Ready) => Ok(process),
            Some(Reply::Failed(reason)) => Err(Failure::new(reason)),
            Some(reply) => Err(unexpected(&reply)),
            None => Err(failure!(
                "the launches cannot be run: the process that runs them ended at its start"
            )),
        }
    }

    fn ask(&mut self, request: &Request) -> io::Result<Option<Reply>> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.requests.write_all(&line)?;
        self.reply()
    }

    /// Returns the next reply; `None` if the process has ended.
    fn reply(&mut self) -> io::Result<Option<Reply>> {
        let mut line = String::new();
        match self.replies.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A launch that does not end would keep the process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unexpected(reply: &Reply) -> Failure {
    failure!(
        "the process that runs the launches answered {reply:?}, which is no answer to the question"
    )
}

/// Runs launches for another process, which asks on stdin, until it asks no more.
pub fn serve(arguments: &args::Replay, capture: &CudaCapture) -> Result<ExitCode, Failure> {
    // Kernels that print write to stdout, which is stderr while the GPU is used.
    let replies = io::stdout().as_fd().try_clone_to_owned();
    let mut replies =
        File::from(replies.map_err(|error| failure!("the replies cannot be written: {error}"))?);
    let options = Options {
        device: super::options(arguments).device,
        ..Options::default()
    };
    let trial = process::with_stdout_on_stderr(|| Trial::open(capture, &options));
    let mut trial = trial.map_err(|error| {
        if matches!(error, Error::Address { .. }) {
            process::after_a_collision();
        }
        let _ = reply(&mut replies, &Reply::Failed(error.to_string()));
        Failure::new(error.to_string())
    })?;
    let is_asked = reply(&mut replies, &Reply::Ready).is_ok();
    let requests = io::stdin().lines().map_while(Result::ok);
    for line in requests.take_while(|_| is_asked) {
        let answer = process::with_stdout_on_stderr(|| match serde_json::from_str(&line) {
            Ok(request) => answer(&mut trial, &request),
            Err(error) => Reply::Failed(format!("a request cannot be read: {error}")),
        });
        let is_heard = reply(&mut replies, &answer).is_ok();
        if answer == Reply::LaunchFailed {
            // An orderly end would wait for a kernel that does not end.
            process::end_at_once(exit::FAILED);
        }
        if !is_heard {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(trial: &mut Trial<'_>, request: &Request) -> Reply {
    let answer = match request {
        Request::Compare(fill, pages, is_thorough) => {
            (trial.is_same(*fill, pages, *is_thorough)).map(Reply::Compared)
        }
        Request::Write(folder, pages) => trial.write(folder, pages).map(|()| Reply::Written),
    };
    answer.unwrap_or_else(|error| match error {
        // After an error of a launch, calls of the driver fail, too.
        Error::Launch { .. } | Error::TimeLimit { .. } | Error::Call { .. } => Reply::LaunchFailed,
        error => Reply::Failed(error.to_string()),
    })
}

fn reply(replies: &mut File, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    replies.write_all(&line)
}
