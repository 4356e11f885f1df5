//! Runs the interactive prompt in the terminal: answers one statement after the other, with history and completion.

use crate::{Error, Format, Session, saved};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The answer to `.help`.
const HELP: &str = "\
A statement ends with ; and may have several lines. Ctrl-C stops it, Ctrl-D leaves.
  .schema [TABLE]  tables and columns
  .saved           saved queries; .saved NAME runs one
  .format FORMAT   table, csv or json from now on
  .help            this
  .quit            leave
";

/// Reads statements from the terminal and writes their answers to `out`, at first in `format`, until the user leaves.
/// Setting `stop` ends a running query; `say` receives sentences about errors and missing data. The history is kept
/// in `history`, if possible.
///
/// # Errors
/// The terminal or `out` fails.
pub fn prompt(
    session: &Session,
    mut format: Format,
    history: Option<PathBuf>,
    stop: &AtomicBool,
    out: &mut (dyn Write + Send),
    mut say: impl FnMut(&str),
) -> Result<(), Error> {
    let failed = |error: ReadlineError| Error::Prompt(error.to_string());
    let config = Config::builder()
        .history_ignore_space(true)
        .auto_add_history(true)
        .build();
    let mut editor: Editor<Completions, FileHistory> =
        Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Completions::new(session)));
    if let Some(path) = &history {
        // On first use there is no history.
        let _ = editor.load_history(path);
    }
    loop {
        let line = match editor.readline("gapscope> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        let text = line.trim();
        let mut words = text.split_whitespace();
        let written = match (words.next(), words.next()) {
            (None, _) => Ok(()),
            (Some(".quit" | ".exit"), _) => break,
            (Some(".help"), _) => out.write_all(HELP.as_bytes()),
            (Some(".format"), name) => {
                match name.and_then(parse_format) {
                    Some(chosen) => format = chosen,
                    None => say("write .format table, .format csv or .format json"),
                }
                Ok(())
            }
            (Some(".schema"), table) => {
                match session.schema(table.map(|t| t.trim_end_matches(';'))) {
                    Ok(text) => out.write_all(text.as_bytes()),
                    Err(error) => {
                        say(&error.to_string());
                        Ok(())
                    }
                }
            }
            (Some(".saved"), None) => saved::ALL
                .iter()
                .try_for_each(|saved| writeln!(out, "{:<16} {}", saved.name, saved.meaning)),
            (Some(".saved"), Some(name)) => match session.saved(name) {
                Ok(sql) => answer(session, &sql, format, stop, out, &mut say)?,
                Err(error) => {
                    say(&error.to_string());
                    Ok(())
                }
            },
            (Some(word), _) if word.starts_with('.') => {
                say(&format!("there is no command {word}: .help lists them"));
                Ok(())
            }
            _ => answer(session, text, format, stop, out, &mut say)?,
        };
        written.and_then(|()| out.flush()).map_err(Error::Write)?;
        if let Some(path) = &history {
            save(&mut editor, path);
        }
    }
    Ok(())
}

fn parse_format(name: &str) -> Option<Format> {
    match name {
        "table" => Some(Format::Table),
        "csv" => Some(Format::Csv),
        "json" => Some(Format::Json),
        _ => None,
    }
}

/// Saves the history, and makes its folder; errors are ignored.
fn save(editor: &mut Editor<Completions, FileHistory>, path: &PathBuf) {
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    let _ = editor.save_history(path);
}

/// Runs a statement, writes its answer with the number of rows and the time, and says what went wrong. The outer
/// error ends the prompt, because its reader closed the pipe; the inner result is that of writing the last line.
fn answer(
    session: &Session,
    sql: &str,
    format: Format,
    stop: &AtomicBool,
    out: &mut (dyn Write + Send),
    say: &mut impl FnMut(&str),
) -> Result<std::io::Result<()>, Error> {
    stop.store(false, Ordering::Relaxed);
    let start = Instant::now();
    let answer = session.run_until(sql, format, out, stop);
    for remark in session.take_remarks() {
        say(&remark);
    }
    match answer {
        Ok(rows) => {
            let seconds = start.elapsed().as_secs_f64();
            let noun = if rows.0 == 1 { "row" } else { "rows" };
            Ok(writeln!(out, "({} {noun}, {seconds:.2} s)", rows.0))
        }
        Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            Err(Error::Write(error))
        }
        Err(error) => {
            say(&error.to_string());
            Ok(Ok(()))
        }
    }
}

/// The helper of the line editor, with all words in order: it completes them, and recognises complete statements.
struct Completions(Vec<String>);

/// The words of SQL that are completed.
const KEYWORDS: [&str; 22] = [
    "select",
    "from",
    "where",
    "group by",
    "order by",
    "limit",
    "join",
    "left join",
    "using",
    "having",
    "with",
    "count(*)",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "median(",
    "distinct",
    "between",
    "is not null",
    "desc",
    "explain",
];

impl Completions {
    fn new(session: &Session) -> Completions {
        let mut words: Vec<String> = KEYWORDS.map(str::to_owned).into();
        for table in &session.tables {
            words.push(table.name.to_owned());
            words.extend(table.columns.iter().map(|column| column.name.clone()));
        }
        words.extend(saved::ALL.iter().map(|saved| saved.name.to_owned()));
        words.extend([".schema", ".saved", ".format", ".help", ".quit"].map(str::to_owned));
        words.sort();
        words.dedup();
        Completions(words)
    }
}

impl Completer for Completions {
    type Candidate = String;

    /// Returns where the word before the cursor begins, and the words that begin with it.
    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let in_word = |c: char| c.is_alphanumeric() || "_-".contains(c);
        let mut start = before.rfind(|c| !in_word(c)).map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
        if before.starts_with('.') && start == 1 {
            start = 0;
        }
        let typed = before[start..].to_lowercase();
        let fitting = self
            .0
            .iter()
            .filter(|word| !typed.is_empty() && word.starts_with(&typed));
        Ok((start, fitting.cloned().collect()))
    }
}

impl Validator for Completions {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Highlighter for Completions {}
impl Hinter for Completions {
    type Hint = String;
}
impl Helper for Completions {}

/// Returns true for a statement with its `;`, a command, or an empty line.
fn is_complete(input: &str) -> bool {
    let text = input.trim();
    text.is_empty() || text.starts_with('.') || (text.ends_with(';') && !ends_in_quotes(text))
}

/// Returns true where a quote is still open at the end of the text.
fn ends_in_quotes(text: &str) -> bool {
    let mut open = None;
    for character in text.chars().filter(|c| matches!(c, '\'' | '"')) {
        open = match open {
            None => Some(character),
            Some(quote) if quote == character => None,
            same => same,
        };
    }
    open.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_with_a_semicolon_outside_of_quotes() {
        for whole in ["", ".help", "select 1;", "select ';';  ", "select '\"';"] {
            assert!(is_complete(whole), "{whole}");
        }
        for partial in ["select 1", "select\n1", "select ';", "select \"a;"] {
            assert!(!is_complete(partial), "{partial}");
        }
    }
}
