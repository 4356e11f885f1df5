//! Explains errors of the command line: empty arguments, mostly from a shell variable that is not set; a program or a trace in
//! the place of a subcommand; and options that nearly have the name of another.

use crate::args::Arguments;
use crate::{exit, page};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use gapscope_report::command_line;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

/// The least number of letters of an option by which another is guessed.
const MIN_LETTERS: usize = 3;

/// Prints why the arguments cannot be understood. Help and the version, which are no errors, end here, too.
pub fn refuse(error: clap::Error) -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let Some(sentence) = empty_argument(&error).or_else(|| other_task(&error, &arguments)) else {
        with_guess(error, &arguments).exit();
    };
    page::note(sentence);
    ExitCode::from(exit::USAGE)
}

/// Returns a sentence on an argument that is an empty text, which clap reports as missing; `None` for other errors.
fn empty_argument(error: &clap::Error) -> Option<String> {
    let is_empty = error.kind() == ErrorKind::InvalidValue
        && text(error, ContextKind::InvalidValue).is_some_and(str::is_empty)
        && !matches!(error.get(ContextKind::ValidValue), Some(ContextValue::Strings(values)) if !values.is_empty());
    let argument = text(error, ContextKind::InvalidArg).filter(|_| is_empty)?;
    Some(format!(
        "\"\" is given for {argument}, and an empty text names nothing: write it, or set the variable that stands for it"
    ))
}

/// Returns a sentence on a program or a trace in the place of a subcommand, with the command line that was meant; `None` for other
/// errors.
fn other_task(error: &clap::Error, arguments: &[String]) -> Option<String> {
    let first = arguments.first()?;
    let is_first = text(error, ContextKind::InvalidSubcommand) == Some(first.as_str());
    if error.kind() != ErrorKind::InvalidSubcommand || !is_first {
        return None;
    }
    let path = Path::new(first);
    let (what, meant) = match () {
        () if path.join("trace.json").is_file() => ("a trace", "report"),
        () if is_program(path) => ("a program", "record"),
        () => return None,
    };
    let line = command_line(arguments);
    Some(format!(
        "{first} is {what} and no task: type `gapscope {meant} {line}`"
    ))
}

/// Returns true where a shell would run a program by this name.
fn is_program(name: &Path) -> bool {
    let is_executable = |path: &Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.components().count() > 1 {
        return is_executable(name);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&folders);
    is_executable(name) || folders.any(|folder| is_executable(&folder.join(name)))
}

/// Adds a guess to the error of an option that is not known, where clap has none.
fn with_guess(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let guess = text(&error, ContextKind::InvalidArg)
        .filter(|_| error.get(ContextKind::SuggestedArg).is_none())
        .and_then(|given| similar_option(given, arguments));
    if let Some(guess) = guess {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(guess));
    }
    if error.get(ContextKind::SuggestedArg).is_some() {
        // The option is meant, and no value.
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Returns the option of the chosen subcommand that has a word of `given`, such as `--time-limit` for `--limit`.
fn similar_option(given: &str, arguments: &[String]) -> Option<String> {
    let given = given.strip_prefix("--")?;
    let given = given.split_once('=').map_or(given, |(name, _)| name);
    let root = Arguments::command();
    let mut command: &Command = &root;
    for argument in arguments {
        match command.find_subcommand(argument) {
            Some(inner) => command = inner,
            None => break,
        }
    }
    let options = command
        .get_arguments()
        .filter(|option| !option.is_hide_set());
    let names: Vec<&str> = options.filter_map(|option| option.get_long()).collect();
    let has_word = |text: &str, word: &str| text.split('-').any(|part| part == word);
    let is_similar =
        |name: &&&str| has_word(name, given) || has_word(given, name) || name.starts_with(given);
    let guess = names.iter().find(is_similar)?;
    (given.len() >= MIN_LETTERS).then(|| format!("--{guess}"))
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    }
}
