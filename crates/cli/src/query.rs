//! `gapscope query`.

use crate::args::{AnswerFormat, Query};
use crate::failure::{Failure, without_number};
use crate::page;
use gapscope_query::{Error, Format, Session, Traces, looks_like_sql, prompt};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The answer lacks rows of what was given.
const INCOMPLETE: u8 = 3;

/// Answers a query on traces.
pub fn run(arguments: &Query) -> Result<ExitCode, Failure> {
    let (given, sql) = split(arguments);
    let to_terminal = match &arguments.output {
        None => io::stdout().is_terminal(),
        Some(path) => path.as_os_str() == "-" && io::stdout().is_terminal(),
    };
    if arguments.format == AnswerFormat::Parquet && to_terminal {
        return Err(Failure::new(
            "a terminal cannot show parquet: name a file after -o",
        ));
    }
    if let Some(path) = file(arguments)
        && path.symlink_metadata().is_ok()
    {
        return Err(failed(Error::Exists(path.to_owned())));
    }
    let traces = Traces::open(given).map_err(failed)?;
    let mut incomplete = !traces.skipped.is_empty();
    for sentence in &traces.skipped {
        say(&format!("skipped: {sentence}"));
    }
    let session = Session::new(traces).map_err(failed)?;
    let text = match (&arguments.saved, sql) {
        _ if arguments.schema => {
            page::write(&session.schema(None).map_err(failed)?)?;
            return Ok(status(incomplete));
        }
        (Some(name), _) => session.saved(name).map_err(failed)?,
        (None, Some(sql)) => sql,
        (None, None) if io::stdin().is_terminal() => {
            ask(arguments, &session)?;
            return Ok(status(incomplete));
        }
        (None, None) => from_stdin()?,
    };
    let answered = answer(arguments, &session, &text);
    for sentence in session.take_remarks() {
        incomplete = true;
        say(&sentence);
    }
    answered?;
    Ok(status(incomplete))
}

fn status(incomplete: bool) -> ExitCode {
    match incomplete {
        true => ExitCode::from(INCOMPLETE),
        false => ExitCode::SUCCESS,
    }
}

/// The traces, and the SQL if the last of what was given is some.
fn split(arguments: &Query) -> (&[OsString], Option<String>) {
    let all = arguments.traces.as_slice();
    if arguments.schema || arguments.saved.is_some() {
        return (all, None);
    }
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() && looks_like_sql(last) => {
            (rest, last.to_str().map(str::to_owned))
        }
        _ => (all, None),
    }
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("the SQL cannot be read from stdin: {error}")))?;
    if text.trim().is_empty() {
        return Err(Failure::new(
            "no SQL was given: write it after the traces, choose a saved query by --saved, or pipe it into stdin",
        ));
    }
    Ok(text)
}

fn answer(arguments: &Query, session: &Session, sql: &str) -> Result<(), Failure> {
    let format = format(arguments.format);
    let Some(path) = file(arguments) else {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
        return match session.run(sql, format, &mut out) {
            // A reader that has had enough (`| head`) is no failure.
            Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
                // What is left would meet the same end, and say so.
                let _ = out.into_parts();
                Ok(())
            }
            result => result.map(drop).map_err(failed),
        };
    };
    let out = File::create_new(path).map_err(|error| unwritten(path, &error))?;
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let written = session.run(sql, format, &mut out);
    written.map(drop).map_err(|error| {
        // It was made above and is not whole.
        let _ = std::fs::remove_file(path);
        match error {
            Error::Write(error) => unwritten(path, &error),
            error => failed(error),
        }
    })
}

/// The file for the answer, if it goes to one.
fn file(arguments: &Query) -> Option<&Path> {
    let path = arguments.output.as_deref()?;
    (path.as_os_str() != "-").then_some(path)
}

fn ask(arguments: &Query, session: &Session) -> Result<(), Failure> {
    if file(arguments).is_some() {
        return Err(Failure::new(
            "-o is for one answer: write the SQL after the traces too",
        ));
    }
    let stop = Arc::new(AtomicBool::new(false));
    // While a line is typed the terminal sends no signal.
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
        .map_err(|error| Failure::new(format!("Ctrl-C cannot be heeded: {error}")))?;
    let count = session.traces().sources.len();
    let noun = if count == 1 { "trace" } else { "traces" };
    page::say(&format!("{count} {noun}; .help says what can be asked\n"));
    let format = format(arguments.format);
    prompt(session, format, history(), &stop, &mut io::stdout(), say).map_err(failed)
}

/// Where the lines of earlier prompts are kept.
fn history() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match set("XDG_STATE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".local/state"),
    };
    Some(folder.join("gapscope/query-history"))
}

fn format(format: AnswerFormat) -> Format {
    match format {
        AnswerFormat::Table => Format::Table,
        AnswerFormat::Csv => Format::Csv,
        AnswerFormat::Json => Format::Json,
        AnswerFormat::Parquet => Format::Parquet,
    }
}

fn say(sentence: &str) {
    let sentence = sentence.replace(['\n', '\r'], " ");
    page::say(&format!("gapscope: {}\n", without_number(&sentence)));
}

fn failed(error: Error) -> Failure {
    Failure::new(without_number(&error.to_string()))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => failed(Error::Exists(path.to_owned())),
        _ => {
            let text = format!("{} cannot be written: {error}", path.display());
            Failure::new(without_number(&text))
        }
    }
}
