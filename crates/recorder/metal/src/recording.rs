//! Makes a recording: Apple's xctrace records into a bundle (a folder), its tables are exported, and imported as a
//! trace.

use crate::Error;
use crate::export::export;
use crate::interrupt::{Interrupts, ToolExit};
use crate::program::resolved;
use crate::stage::Stage;
use crate::target_output::TargetOutput;
use crate::tool::{Xctrace, last_words};
use gapscope_import::xctrace::{IMPORTER, Toc};
use gapscope_import::{Imported, Options};
use gapscope_trace::manifest::{Exit, Loss};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The program to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A command with its arguments. It has this process's environment and no standard input. Its standard output is
    /// passed on; xctrace does not pass on its standard error.
    Launch(Vec<OsString>),
    /// A running process.
    Attach(u32),
}

/// The settings of a recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The command or process.
    pub target: Target,
    /// The folder of the trace, which must not exist.
    pub output: PathBuf,
    /// The time after which xctrace ends the recording, and the command if it launched it.
    pub time_limit: Option<Duration>,
    /// The xctrace to use.
    pub xctrace: Xctrace,
}

/// The end of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The folder of the trace.
    pub output: PathBuf,
    /// The end of the command, if xctrace tells it.
    pub exit: Option<Exit>,
    /// The time limit ended it.
    pub timed_out: bool,
    /// The outcome.
    pub outcome: Outcome,
    /// The things that were not recorded.
    pub losses: Vec<Loss>,
    /// Sentences for every report.
    pub notes: Vec<String>,
}

/// The outcome of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A trace with GPU work.
    Recorded {
        /// The command buffers in it.
        command_buffers: u64,
        /// The pieces of GPU work whose times are known.
        timed_work: u64,
    },
    /// No Metal work, and no trace.
    NothingRecorded {
        /// The reason: a sentence.
        reason: String,
    },
}

impl Recording {
    /// Records until the command has ended, the time limit is reached or the user interrupts, and writes the trace.
    /// `show` is told the progress.
    ///
    /// # Errors
    /// xctrace does not exist, or cannot record or export; or the trace cannot be written. A recording worth keeping
    /// is kept, and the error says where.
    pub fn run(&self, mut show: impl FnMut(Stage)) -> Result<Recorded, Error> {
        let launch = match &self.target {
            Target::Launch(command) => resolved(command)?,
            Target::Attach(_) => Vec::new(),
        };
        let parent = check_output(&self.output)?;
        let version = self.xctrace.version()?;
        let interrupts = Interrupts::take().map_err(Error::io(Path::new("signal handlers")))?;
        // The folder is beside the trace: a recording may be large, and another disk small.
        let folder = tempfile::Builder::new()
            .prefix(".gapscope-xctrace-")
            .tempdir_in(&parent)
            .map_err(Error::io(&parent))?;
        let bundle = folder.path().join("recording.trace");
        show(Stage::Recording);
        let ended = self.record(&launch, &bundle, folder.path(), &interrupts)?;
        let result = self.make_trace(
            &bundle,
            folder.path(),
            &version,
            &ended,
            &interrupts,
            &mut show,
        );
        if let Err(
            Error::NotExported { .. } | Error::NotImported { .. } | Error::Interrupted { .. },
        ) = &result
        {
            // The error names the folder.
            let _ = folder.keep();
        }
        result
    }

    /// Runs xctrace until the recording ends. It is an error only where no bundle was written.
    fn record(
        &self,
        launch: &[OsString],
        bundle: &Path,
        folder: &Path,
        interrupts: &Interrupts,
    ) -> Result<RecordingEnd, Error> {
        let printed = folder.join("stdout");
        let mut command = self.xctrace.command([
            "record",
            "--template",
            "Metal System Trace",
            "--no-prompt",
            "--output",
        ]);
        command.arg(bundle);
        if let Some(limit) = self.time_limit {
            command
                .arg("--time-limit")
                .arg(format!("{}ms", limit.as_millis().max(1)));
        }
        match &self.target {
            Target::Attach(pid) => {
                command.arg("--attach").arg(pid.to_string());
            }
            Target::Launch(_) => {
                for (name, value) in std::env::vars_os() {
                    let mut pair = name;
                    pair.push("=");
                    pair.push(value);
                    command.arg("--env").arg(pair);
                }
                command.arg("--target-stdout").arg(&printed);
                command.args(["--launch", "--"]).args(launch);
            }
        }
        let log = folder.join("record.log");
        let writer = File::create(&log).map_err(Error::io(&log))?;
        let errors = writer.try_clone().map_err(Error::io(&log))?;
        command.stdout(writer).stderr(Stdio::from(errors));
        // A Ctrl-C reaches gapscope only, which passes one on: a second one would break off the saving.
        command.process_group(0);
        let program = self.xctrace.program();
        let started = Instant::now();
        let mut child = command.spawn().map_err(Error::io(program))?;
        let output = TargetOutput::copy(printed);
        let ToolExit {
            status,
            interrupted,
        } = interrupts.wait(&mut child, program)?;
        drop(output);
        // A status other than 0 may be the command's own.
        if !bundle.exists() {
            let words = last_words(&std::fs::read_to_string(&log).unwrap_or_default());
            return Err(Error::NotRecorded {
                reason: format!("{words} ({status})"),
            });
        }
        Ok(RecordingEnd {
            interrupted,
            took: started.elapsed(),
        })
    }

    /// Exports the bundle's tables into `folder` and imports them. A recording without Metal work is an outcome, not
    /// an error.
    fn make_trace(
        &self,
        bundle: &Path,
        folder: &Path,
        version: &str,
        ended: &RecordingEnd,
        interrupts: &Interrupts,
        show: &mut impl FnMut(Stage),
    ) -> Result<Recorded, Error> {
        let exports = folder.join("exports");
        std::fs::create_dir(&exports).map_err(Error::io(&exports))?;
        let exported = export(&self.xctrace, bundle, &exports, interrupts, show)?;
        show(Stage::Importing);
        let mut notes = exported.notes;
        if ended.interrupted {
            notes.push("The recording was interrupted by a signal.".to_owned());
        }
        if !version.is_empty() {
            notes.push(format!("Recorded by {version}."));
        }
        let options = Options {
            pid: match self.target {
                Target::Attach(pid) => Some(pid),
                Target::Launch(_) => None,
            },
            command: match &self.target {
                Target::Launch(command) => Some(
                    command
                        .iter()
                        .map(|word| word.to_string_lossy().into_owned())
                        .collect(),
                ),
                Target::Attach(_) => None,
            },
            notes,
            ..Options::default()
        };
        let exit = self.exit(&exports);
        let timed_out = self.time_limit.is_some_and(|limit| ended.took >= limit) && exit.is_none();
        let mut recorded = Recorded {
            output: self.output.clone(),
            exit,
            timed_out,
            outcome: Outcome::NothingRecorded {
                reason: String::new(),
            },
            losses: Vec::new(),
            notes: Vec::new(),
        };
        match IMPORTER.import(&exported.files, &self.output, &options, &|_, _| {}) {
            Ok(imported) => {
                recorded.outcome = Outcome::Recorded {
                    command_buffers: imported.command_buffers,
                    timed_work: imported.timed_work,
                };
                recorded.losses = imported.losses;
                recorded.notes = imported.notes;
                Ok(recorded)
            }
            Err(gapscope_import::Error::NothingRecorded { reason }) => {
                recorded.outcome = Outcome::NothingRecorded { reason };
                Ok(recorded)
            }
            Err(source) => Err(Error::NotImported {
                source,
                kept: bundle.to_owned(),
            }),
        }
    }

    /// Returns how the command ended, also when it did nothing that can be imported.
    fn exit(&self, exports: &Path) -> Option<Exit> {
        let file = File::open(exports.join("toc.xml")).ok()?;
        let toc = Toc::read(std::io::BufReader::new(file)).ok()?;
        toc.metal_run()?.exit()
    }
}

/// How xctrace's recording ended: whether a signal ended it, and how long it took.
struct RecordingEnd {
    interrupted: bool,
    took: Duration,
}

/// Imports a recording that Instruments or xctrace made, `NAME.trace`, and leaves it as it is.
///
/// # Errors
/// As [`Recording::run`], without recording.
pub fn import_bundle(
    xctrace: &Xctrace,
    bundle: &Path,
    output: &Path,
    options: &Options,
    mut show: impl FnMut(Stage),
) -> Result<Imported, Error> {
    std::fs::metadata(bundle).map_err(Error::io(bundle))?;
    let parent = check_output(output)?;
    xctrace.version()?;
    let interrupts = Interrupts::take().map_err(Error::io(Path::new("signal handlers")))?;
    let folder = tempfile::Builder::new()
        .prefix(".gapscope-xctrace-")
        .tempdir_in(&parent)
        .map_err(Error::io(&parent))?;
    let exported = export(xctrace, bundle, folder.path(), &interrupts, &mut show)?;
    show(Stage::Importing);
    let mut options = options.clone();
    options.notes.extend(exported.notes);
    let imported = IMPORTER.import(&exported.files, output, &options, &|_, _| {});
    imported.map_err(|source| Error::NotImported {
        source,
        kept: bundle.to_owned(),
    })
}

/// Checks that a trace can be written, and returns its folder.
fn check_output(output: &Path) -> Result<PathBuf, Error> {
    if output.symlink_metadata().is_ok() {
        return Err(Error::Output(gapscope_trace::Error::Exists {
            path: output.to_owned(),
        }));
    }
    let parent = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    if !parent.is_dir() {
        return Err(Error::Output(gapscope_trace::Error::NoParent {
            path: output.to_owned(),
            parent,
        }));
    }
    std::path::absolute(&parent).map_err(Error::io(&parent))
}
