//! `gapscope capture`: runs a command with the capturing layer (a library that Vulkan's loader puts between program
//! and driver) and the library that the CUDA driver loads, which write a window of the command's GPU work as a capture
//! that can be run again.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context;
use gapscope_capture::model::{Command, EndReason};
use gapscope_capture::request::{Notice, Request, VARIABLE, Window};
use gapscope_capture::{AnyCapture, CONTENT, RECORDS};
use gapscope_files::ContainedPath;
use gapscope_recorder::LaunchWithLayer;
use gapscope_timeline::quantity as number;

use crate::args;
use crate::capture_json::{Captured, End};
use crate::failure::Failure;
use crate::{exit, hook_libraries, output_path, own_captures, page, recorded_command};

const LAYER_NAME: &str = "VK_LAYER_GAPSCOPE_capture";

/// Captures a window of a command's work, prints the result, and ends with the command's status.
pub fn run(arguments: &args::Capture) -> Result<ExitCode, Failure> {
    let finished = capture(arguments).map_err(Failure::of_recording)?;
    let status = exit::status(finished.exit);
    let outcome = print_outcome(arguments, &finished.request);
    Ok(recorded_command::exit_code(status, outcome))
}

/// A command that was run with the capturing layer.
struct CaptureRun {
    exit: gapscope_trace::manifest::Exit,
    /// What the layer was asked to capture.
    request: Request,
    // The folder holds the messages of the layer in each process, so that it must outlive the processes.
    _exchange: tempfile::TempDir,
}

/// Runs the command with the capturing layer, and returns how it ended and the request that the layer got.
fn capture(arguments: &args::Capture) -> Result<CaptureRun, Failure> {
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => output_path::for_capture(Path::new(""), &arguments.command[0]),
    };
    check_output(&output)?;
    let exchange = tempfile::Builder::new()
        .prefix("gapscope-capture-")
        .tempdir();
    let exchange = exchange.context("a temporary folder cannot be made")?;
    let request = Request {
        output: std::path::absolute(&output).context("the output's path")?,
        window: window(arguments),
        keep_outputs: arguments.keep_outputs,
        most_bytes: arguments.most_bytes,
        exchange: exchange.path().to_owned(),
    };
    let launch = LaunchWithLayer {
        command: arguments.command.clone(),
        name: LAYER_NAME,
        library: hook_libraries::find_capture_layer()?,
        cuda: hook_libraries::find_cuda()?,
        folder: exchange.path().join("layer"),
        variable: (VARIABLE, request.to_text()),
    };
    launch.check()?;
    let signals = match request.window {
        Window::Signal => {
            Some(Signals::new(&request.signals()).context("signals cannot be counted")?)
        }
        _ => None,
    };
    let exit = launch.run(|| {
        if let Some(signals) = &signals {
            signals.count();
        }
    })?;
    Ok(CaptureRun {
        exit,
        request,
        _exchange: exchange,
    })
}

/// Returns the window that the options name; without one it is everything.
fn window(arguments: &args::Capture) -> Window {
    if let Some((name, number)) = &arguments.kernel {
        let (name, number) = (name.clone(), *number);
        return Window::Kernel { name, number };
    }
    if let Some(range) = &arguments.launches {
        return Window::Launches(range.clone());
    }
    match (
        &arguments.dispatches,
        &arguments.submissions,
        &arguments.label,
    ) {
        (Some(range), ..) => Window::Dispatches(range.clone()),
        (_, Some(range), _) => Window::Submissions(range.clone()),
        (.., Some(text)) => Window::Label(text.clone()),
        _ if arguments.capture_only => Window::Program,
        _ if arguments.signal => Window::Signal,
        _ => Window::All,
    }
}

/// Returns an error unless the output can be made and does not exist.
fn check_output(output: &Path) -> Result<(), Failure> {
    if output.symlink_metadata().is_ok() {
        let text = format!(
            "{} exists; nothing is overwritten: give another -o",
            output.display()
        );
        return Err(Failure::new(text));
    }
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(failure!("there is no folder {}", folder.display()));
    }
    // The layer makes the capture's folder only when the window begins.
    match tempfile::tempdir_in(folder) {
        Ok(_) => Ok(()),
        Err(error) => Err(failure!(
            "{} cannot be written: {}; name another place with -o",
            output.display(),
            error.kind()
        )),
    }
}

/// The number of signals SIGUSR2 received, in a file that the layer reads. Signals that come between two calls of
/// [`Signals::count`] count as one.
struct Signals {
    /// Set by the handler of the signal.
    arrived: Arc<AtomicBool>,
    file: std::fs::File,
    /// The number that the file has.
    counted: std::cell::Cell<u64>,
}

impl Signals {
    /// Begins to count signals, with 0 in the file.
    fn new(path: &Path) -> std::io::Result<Signals> {
        let file = std::fs::File::create_new(path)?;
        file.write_all_at(&0_u64.to_ne_bytes(), 0)?;
        let arrived = Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGUSR2, Arc::clone(&arrived))?;
        Ok(Signals {
            arrived,
            file,
            counted: Default::default(),
        })
    }

    /// Adds a signal to the file if one came since the last call; called regularly while the command runs.
    fn count(&self) {
        if self.arrived.swap(false, Relaxed) {
            self.counted.set(self.counted.get() + 1);
            // The file exists and is long enough.
            let _ = self.file.write_all_at(&self.counted.get().to_ne_bytes(), 0);
        }
    }
}

/// The facts of a capture that are printed.
struct Summary {
    path: PathBuf,
    /// The window as the capture's header states it.
    window: String,
    submissions: usize,
    dispatches: usize,
    /// Whether the submissions are launches of CUDA.
    is_of_cuda: bool,
    /// Launches of graphs that are not in the capture, of CUDA.
    graphs: u64,
    /// The size of the capture's files.
    bytes: u64,
    /// Why the window ended; `None` if the capture breaks off.
    end: Option<EndReason>,
}

impl Summary {
    /// Reads the facts from the capture that the layer wrote just now. A capture of CUDA is remembered as the user's own.
    fn read(path: &Path) -> Result<Summary, Failure> {
        let (capture, problem) =
            AnyCapture::open(path).map_err(|error| Failure::new(error.to_string()))?;
        let is_dispatch = |command: &&Command| matches!(command, Command::Dispatch(_));
        let is_of_cuda = matches!(capture, AnyCapture::Cuda(_));
        let (window, submissions, dispatches, end) = match capture {
            AnyCapture::Vulkan(capture) => (
                capture.header.window.clone(),
                capture.submission_count(),
                capture.executed().filter(is_dispatch).count(),
                capture.end,
            ),
            AnyCapture::Cuda(capture) => {
                own_captures::remember(path);
                let launches = capture.launches().count();
                (capture.header.window, launches, launches, capture.end)
            }
        };
        let size = |name| ContainedPath::new(path, name).bytes().unwrap_or(0);
        Ok(Summary {
            path: path.to_owned(),
            window,
            submissions,
            dispatches,
            is_of_cuda,
            graphs: 0,
            bytes: size(RECORDS) + size(CONTENT),
            end: match problem {
                Some(problem) => Some(EndReason::Failed(problem.to_string())),
                None => end.map(|end| end.reason),
            },
        })
    }

    /// Returns a sentence about the reason for which the window ended.
    fn reason(&self) -> String {
        match &self.end {
            Some(EndReason::Complete) if self.window == Window::All.to_string() => {
                "the window ended with the program".to_owned()
            }
            Some(EndReason::Complete) => "the window is complete".to_owned(),
            Some(EndReason::ProgramEnded) => "the program ended inside the window".to_owned(),
            Some(EndReason::Refused(what)) => {
                format!("the window ended before what cannot be captured: {what}")
            }
            Some(EndReason::Failed(what)) => format!("the window broke off: {what}"),
            None => "the window broke off: the program was killed, or no space was left".to_owned(),
        }
    }

    /// Returns the line about the capture.
    fn text(&self, window: &Window) -> String {
        let aligned = match window {
            Window::Dispatches(range) if self.dispatches as u64 > range.end - range.start => {
                ", whole ones around the dispatches"
            }
            Window::Submissions(range) if self.submissions as u64 > range.end - range.start => {
                ", all of the calls that hand them over"
            }
            _ => "",
        };
        if self.is_of_cuda {
            let is = if self.dispatches == 1 { "is" } else { "are" };
            let graphs = match self.graphs {
                0 => String::new(),
                graphs => format!(
                    "; {} inside of the window were left out: --kernel NAME[:N] captures a kernel of a graph",
                    number::count_of(graphs, "launch of a graph", "launches of graphs")
                ),
            };
            return format!(
                "gapscope: {} ({}) {is} in {}, {}; {}{graphs}\n",
                number::count_of(self.dispatches as u64, "launch", "launches"),
                self.window,
                self.path.display(),
                number::bytes(self.bytes),
                self.reason()
            );
        }
        format!(
            "gapscope: {} in {}{aligned} ({}) are in {}, {}; {}\n",
            number::count_of(self.dispatches as u64, "dispatch", "dispatches"),
            number::count_of(self.submissions as u64, "submission", "submissions"),
            self.window,
            self.path.display(),
            number::bytes(self.bytes),
            self.reason()
        )
    }

    fn json(&self) -> Captured {
        let (end, detail) = match &self.end {
            Some(EndReason::Complete) => (End::Complete, None),
            Some(EndReason::ProgramEnded) => (End::ProgramEnded, None),
            Some(EndReason::Refused(what)) => (End::Refused, Some(what)),
            Some(EndReason::Failed(what)) => (End::Failed, Some(what)),
            None => (End::CutOff, None),
        };
        Captured {
            capture: self.path.clone(),
            window: self.window.clone(),
            submission_count: self.submissions,
            dispatch_count: self.dispatches,
            bytes: self.bytes,
            end,
            end_detail: detail.cloned(),
        }
    }
}

/// Prints each capture on stderr; removes those without submissions. If none is left, the error says why.
fn print_outcome(arguments: &args::Capture, request: &Request) -> Result<(), Failure> {
    let notices = request.notices();
    let mut captured = false;
    let mut not_replayable = None;
    for notice in &notices {
        let Notice::Begun(path) = notice else {
            continue;
        };
        let mut summary = Summary::read(path)?;
        summary.graphs = notices.iter().map(graphs_left_out).sum();
        let broken = notices.iter().find_map(|notice| match notice {
            Notice::BrokenOff { capture, reason } if capture == path => Some(reason),
            _ => None,
        });
        if let Some(reason) = broken {
            summary.end = Some(EndReason::Failed(reason.clone()));
        }
        if summary.submissions == 0 {
            // A capture without submissions has nothing to replay.
            let _ = std::fs::remove_dir_all(path);
            not_replayable = Some(match &summary.end {
                Some(EndReason::Refused(what)) => what.clone(),
                _ => summary.reason(),
            });
            continue;
        }
        captured = true;
        page::say(&match arguments.json {
            true => serde_json::to_string(&summary.json())? + "\n",
            false => summary.text(&request.window),
        });
    }
    if captured {
        return Ok(());
    }
    let reason = not_replayable.unwrap_or_else(|| why_nothing(&notices, &request.window));
    Err(failure!("nothing was captured: {reason}"))
}

/// Returns the number of launches of graphs that a notice says were left out.
fn graphs_left_out(notice: &Notice) -> u64 {
    match notice {
        Notice::CudaEnded { graphs, .. } => *graphs,
        _ => 0,
    }
}

/// Returns a sentence about the reason why no window began.
fn why_nothing(notices: &[Notice], window: &Window) -> String {
    if let Some(Notice::NotBegun(reason)) =
        notices.iter().find(|n| matches!(n, Notice::NotBegun(_)))
    {
        return reason.clone();
    }
    if notices.contains(&Notice::Cuda)
        && (window.is_of_cuda() || !notices.contains(&Notice::Device))
    {
        return why_nothing_of_cuda(notices, window);
    }
    if !notices.contains(&Notice::Device) {
        return "the command made no Vulkan device through the loader and did not initialise CUDA, or uses neither (`gapscope doctor` \
                says what is missing)"
            .to_owned();
    }
    let most = notices.iter().filter_map(|notice| match notice {
        Notice::Ended {
            submissions,
            dispatches,
        } => Some((*submissions, *dispatches)),
        _ => None,
    });
    let counts = most.max();
    match (window, counts) {
        (_, None) => "the command was killed before the window began".to_owned(),
        (Window::Program, _) => {
            "the command did not call start_capture, or submitted nothing in it".to_owned()
        }
        (Window::Signal, _) => "no signal SIGUSR2 came before the last submission".to_owned(),
        (Window::Dispatches(_), Some((_, dispatches))) => format!(
            "the command had {}, and the window is {window}",
            number::count_of(dispatches, "dispatch", "dispatches")
        ),
        (Window::Label(text), Some((submissions, _))) => format!(
            "none of {} was under a label that contains {text}",
            number::count_of(submissions, "submission", "submissions")
        ),
        (_, Some((submissions, _))) => format!(
            "the command had {}, and the window is {window}",
            number::count_of(submissions, "submission", "submissions")
        ),
    }
}

/// Returns a sentence about the reason why no window of a program that uses CUDA began.
fn why_nothing_of_cuda(notices: &[Notice], window: &Window) -> String {
    let counts = notices.iter().filter_map(|notice| match notice {
        Notice::CudaEnded {
            launches,
            named,
            graphs,
        } => Some((*launches, *named, *graphs)),
        _ => None,
    });
    let Some((launches, named, graphs)) = counts.max() else {
        return "the command was killed before the window began".to_owned();
    };
    let launches = number::count_of(launches, "launch", "launches");
    let reason = match window {
        Window::Kernel { name, .. } => {
            let named = number::count_of(named, "launch", "launches");
            format!(
                "the command had {named} of kernels whose name contains {name} (upper and lower case differ), and the window is {window}; \
                 `gapscope record` lists the names"
            )
        }
        Window::Submissions(_) => {
            "a window of submissions is of Vulkan: choose --launches A..B or --kernel NAME for CUDA"
                .to_owned()
        }
        Window::Program => {
            "the command did not call start_capture, or launched no kernel in it".to_owned()
        }
        Window::Signal => "no kernel was launched after a signal SIGUSR2".to_owned(),
        Window::Label(text) if named == 0 => {
            format!("the command had no label that contains {text}")
        }
        Window::Label(text) => format!("no kernel was launched under a label that contains {text}"),
        _ => format!("the command had {launches} of kernels, and the window is {window}"),
    };
    match graphs {
        0 => reason,
        graphs => format!(
            "{reason}; kernels inside of its {} are not captured",
            number::count_of(graphs, "launch of a graph", "launches of graphs")
        ),
    }
}
