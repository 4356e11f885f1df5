//! The program behind `gapscope query`, which `gapscope` starts with its own arguments.
#![forbid(unsafe_code)]

use clap::{Args, Command, FromArgMatches};
use gapscope_command::{
    AnswerFormat, INCOMPLETE, Query, one_line, say, state_folder, without_number, write,
};
use gapscope_query::{Error, Format, Session, Traces, looks_like_sql, prompt};
use gapscope_trace::{memory, panics};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    panics::quiet();
    let command = Command::new("gapscope query")
        .bin_name("gapscope query")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100);
    let matches = Query::augment_args(command).get_matches();
    let arguments = Query::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let answered = memory::take_variable().and_then(|unchecked| {
        if let Some(sentence) = unchecked {
            complain(&sentence);
        }
        run(&arguments)
    });
    answered.unwrap_or_else(|sentence| {
        complain(&sentence);
        ExitCode::FAILURE
    })
}

/// Answers a query on traces.
fn run(arguments: &Query) -> Result<ExitCode, String> {
    let (given, sql) = split(arguments);
    let to_terminal = match &arguments.output {
        None => io::stdout().is_terminal(),
        Some(path) => path.as_os_str() == "-" && io::stdout().is_terminal(),
    };
    if arguments.format == AnswerFormat::Parquet && to_terminal {
        return Err("a terminal cannot show parquet: name a file after -o".to_owned());
    }
    if let Some(path) = file(arguments)
        && path.symlink_metadata().is_ok()
    {
        return Err(failed(Error::Exists(path.to_owned())));
    }
    let traces = Traces::open(given).map_err(failed)?;
    let mut incomplete = !traces.skipped.is_empty();
    for sentence in &traces.skipped {
        complain(&format!("skipped: {sentence}"));
    }
    let mut session = Session::new(traces).map_err(failed)?;
    session.limit_rows(arguments.most);
    let text = match (&arguments.saved, sql) {
        _ if arguments.schema => {
            write(&match arguments.format {
                AnswerFormat::Json => format!("{}\n", session.catalogue()),
                _ => session.schema(None).map_err(failed)?,
            })?;
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
        complain(&sentence);
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

/// Separates the traces from the SQL, if the last argument is SQL.
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

fn from_stdin() -> Result<String, String> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("the SQL cannot be read from stdin: {error}"))?;
    if text.trim().is_empty() {
        return Err(
            "no SQL was given: write it after the traces, choose a saved query by --saved, or pipe it into stdin"
                .to_owned(),
        );
    }
    Ok(text)
}

fn answer(arguments: &Query, session: &Session, sql: &str) -> Result<(), String> {
    let format = format(arguments.format);
    let Some(path) = file(arguments) else {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
        return match session.run(sql, format, &mut out) {
            // A reader that closes the pipe (`| head`) is not a failure.
            Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
                // Flushing the rest would fail in the same way, and print an error.
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
        // The file was created above and is incomplete.
        let _ = std::fs::remove_file(path);
        match error {
            Error::Write(error) => unwritten(path, &error),
            error => failed(error),
        }
    })
}

/// Returns the file for the answer, if it goes to one.
fn file(arguments: &Query) -> Option<&Path> {
    let path = arguments.output.as_deref()?;
    (path.as_os_str() != "-").then_some(path)
}

fn ask(arguments: &Query, session: &Session) -> Result<(), String> {
    if file(arguments).is_some() {
        return Err("-o is for one answer: write the SQL after the traces too".to_owned());
    }
    let stop = Arc::new(AtomicBool::new(false));
    // While a line is being typed, the terminal sends no signal.
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
        .map_err(|error| format!("Ctrl-C cannot be heeded: {error}"))?;
    let count = session.traces().sources.len();
    let noun = if count == 1 { "trace" } else { "traces" };
    say(&format!("{count} {noun}; .help says what can be asked\n"));
    let format = format(arguments.format);
    prompt(
        session,
        format,
        history(),
        &stop,
        &mut io::stdout(),
        complain,
    )
    .map_err(failed)
}

/// Returns the file with the history of the prompt.
fn history() -> Option<PathBuf> {
    Some(state_folder()?.join("query-history"))
}

fn format(format: AnswerFormat) -> Format {
    match format {
        AnswerFormat::Table => Format::Table,
        AnswerFormat::Csv => Format::Csv,
        AnswerFormat::Json => Format::Json,
        AnswerFormat::Rows => Format::Rows,
        AnswerFormat::Parquet => Format::Parquet,
    }
}

fn complain(sentence: &str) {
    say(&format!(
        "gapscope: {}\n",
        one_line(&without_number(sentence))
    ));
}

fn failed(error: Error) -> String {
    error.to_string()
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists => failed(Error::Exists(path.to_owned())),
        _ => format!("{} cannot be written: {error}", path.display()),
    }
}
