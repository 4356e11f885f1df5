//! The program behind `gapscope query`, which `gapscope` starts with its own arguments: answers one statement, or
//! opens the prompt. The answer goes to stdout or the file of `-o`, sentences about problems to stderr.
#![forbid(unsafe_code)]

use clap::{Args, Command, FromArgMatches};
use gapscope_companion::{
    AnswerFormat, INCOMPLETE, Query, WriteError, one_line, say, state_folder, with_sql_apart,
    without_os_error_numbers, write,
};
use gapscope_files::NewFile;
use gapscope_query::{Error, Format, Session, Traces, looks_like_sql, prompt};
use gapscope_trace::{memory, panics};
use signal_hook::consts::SIGINT;
use std::ffi::OsString;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The exit status of a program that SIGINT ended, as shells report it.
const INTERRUPTED: i32 = 130;

fn main() -> ExitCode {
    let command = Command::new("gapscope query")
        .bin_name("gapscope query")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100);
    let given = with_sql_apart(std::env::args_os());
    let matches = Query::augment_args(command).get_matches_from(given);
    let arguments = Query::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Functions of the engine panic on values that it does not foresee. The sentence below stands for what a panic prints.
    std::panic::set_hook(Box::new(|_| {}));
    let answered = std::thread::scope(|scope| {
        let work = || panics::guarded(|| run(&arguments));
        let thread = std::thread::Builder::new().stack_size(gapscope_query::STACK_BYTES);
        thread.spawn_scoped(scope, work).map(|thread| thread.join())
    });
    let answered = match answered {
        Ok(Ok(answered)) => answered,
        // Panics are caught on the thread itself.
        Ok(Err(_)) => return ExitCode::FAILURE,
        Err(error) => Ok(Err(Failure::Thread(error))),
    };
    let failure = match answered {
        Ok(Ok(code)) => return code,
        Ok(Err(failure)) => failure.to_string(),
        Err(panic) => gapscope_query::panicked(panic.text()),
    };
    warn(&failure);
    ExitCode::FAILURE
}

/// How often a look is taken at the memory and the time. At 10 GB a second, this process grows by 50 MB meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Ends this process when it holds more memory than it may. The engine counts the memory of sorts and groups, and not that
/// of functions, of which one can ask for more than the machine has.
fn watch_memory() {
    std::thread::spawn(|| {
        while !memory::is_exceeded() {
            std::thread::sleep(LOOK_EVERY);
        }
        warn(&gapscope_query::too_much_memory());
        std::process::exit(1);
    });
}

/// Ends this process after the time that a statement may take. The engine looks at nothing while it computes a value,
/// of which one can take minutes.
fn watch_time(longest: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(longest);
        warn(&format!(
            "the query was stopped after {} s: ask for less, or give a longer --time-limit",
            longest.as_secs_f64()
        ));
        std::process::exit(1);
    });
}

/// Why the program fails. Each prints as one sentence.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Memory(#[from] memory::NotASize),
    #[error(transparent)]
    Query(#[from] Error),
    #[error(transparent)]
    Stdout(#[from] WriteError),
    #[error("a terminal cannot show parquet: name a file after -o")]
    ParquetOnTerminal,
    #[error("the SQL cannot be read from stdin: {0}")]
    Stdin(#[source] io::Error),
    #[error(
        "no SQL was given: write it after the traces, choose a saved query by --saved, or pipe it into stdin"
    )]
    NoSql,
    #[error("-o is for one answer: write the SQL after the traces too")]
    FileForPrompt,
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    #[error("Ctrl-C cannot be handled: {0}")]
    Signal(#[source] io::Error),
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Failure {
    fn write(path: &Path, source: io::Error) -> Failure {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::AlreadyExists => Error::Exists(path).into(),
            _ => Failure::Write { path, source },
        }
    }
}

/// Opens the traces and answers what the arguments ask for: the schema, a saved query, the SQL behind the traces, the
/// prompt where stdin is a terminal, or the SQL from stdin.
fn run(arguments: &Query) -> Result<ExitCode, Failure> {
    if std::env::var_os(memory::VARIABLE).is_none() {
        // A page or a client runs two queries at once.
        memory::set_limit(memory::limit() / 2);
    }
    if let Some(sentence) = memory::apply_variable()? {
        warn(&sentence);
    }
    watch_memory();
    let (given, sql) = split(arguments);
    let to_terminal = match &arguments.output {
        None => io::stdout().is_terminal(),
        Some(path) => path.as_os_str() == "-" && io::stdout().is_terminal(),
    };
    if arguments.format == AnswerFormat::Parquet && to_terminal {
        return Err(Failure::ParquetOnTerminal);
    }
    if let Some(path) = file(arguments)
        && path.symlink_metadata().is_ok()
    {
        return Err(Error::Exists(path.to_owned()).into());
    }
    let traces = Traces::open(given)?;
    let mut incomplete = !traces.skipped.is_empty();
    for sentence in &traces.skipped {
        warn(&format!("skipped: {sentence}"));
    }
    let mut session = Session::new(traces)?;
    session.limit_rows(arguments.most);
    let text = match (&arguments.saved, sql) {
        _ if arguments.schema => {
            write(&match arguments.format {
                AnswerFormat::Json => format!("{}\n", session.catalogue()),
                _ => session.schema(None)?,
            })?;
            return Ok(status(incomplete));
        }
        (Some(name), _) => session.saved(name)?,
        (None, Some(sql)) => sql,
        (None, None) if io::stdin().is_terminal() => {
            ask(arguments, &session)?;
            return Ok(status(incomplete));
        }
        (None, None) => from_stdin()?,
    };
    watch_time(arguments.time_limit);
    let answered = answer(arguments, &session, &text);
    for sentence in session.take_remarks() {
        incomplete = true;
        warn(&sentence);
    }
    answered?;
    Ok(status(incomplete))
}

/// Returns the exit status: a special one where data were missing.
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

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(Failure::Stdin)?;
    if text.trim().is_empty() {
        return Err(Failure::NoSql);
    }
    Ok(text)
}

/// Runs one statement and writes its answer to stdout, or to a new file that appears when it is whole.
fn answer(arguments: &Query, session: &Session, sql: &str) -> Result<(), Failure> {
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
            result => Ok(result.map(drop)?),
        };
    };
    let failed = |error: io::Error| Failure::write(path, error);
    let new = NewFile::create(path).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 16, new.file());
    session
        .run(sql, format, &mut out)
        .map_err(|error| match error {
            Error::Write(error) => failed(error),
            error => error.into(),
        })?;
    out.flush().map_err(failed)?;
    drop(out);
    new.place().map(drop).map_err(failed)
}

/// Returns the file of `-o`; `None` for stdout.
fn file(arguments: &Query) -> Option<&Path> {
    let path = arguments.output.as_deref()?;
    (path.as_os_str() != "-").then_some(path)
}

/// Opens the prompt.
fn ask(arguments: &Query, session: &Session) -> Result<(), Failure> {
    if file(arguments).is_some() {
        return Err(Failure::FileForPrompt);
    }
    let stop = Arc::new(AtomicBool::new(false));
    // While a line is being typed, the terminal sends no signal. The second one ends a value that the engine computes
    // without a look at the first.
    signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED, stop.clone())
        .map_err(Failure::Signal)?;
    signal_hook::flag::register(SIGINT, stop.clone()).map_err(Failure::Signal)?;
    let count = session.traces().sources.len();
    let noun = if count == 1 { "trace" } else { "traces" };
    say(&format!("{count} {noun}; .help says what can be asked\n"));
    let format = format(arguments.format);
    Ok(prompt(
        session,
        format,
        history(),
        &stop,
        &mut io::stdout(),
        warn,
    )?)
}

/// Returns the path of the prompt's history; `None` where there is no folder for state.
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

/// Writes a sentence to stderr, on one line.
fn warn(sentence: &str) {
    say(&format!(
        "gapscope: {}\n",
        one_line(&without_os_error_numbers(sentence))
    ));
}
