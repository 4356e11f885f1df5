//! Answers SQL over the open traces by running the program `gapscope-query`, which is killed when nobody waits for
//! its answer any more. The query goes to the program's standard input. Of its standard output the first line has the
//! columns and each other line a row, both as JSON; of its standard error each line is a sentence.

use crate::priority::put_back;
use crate::protocol::{Catalogue, SqlAnswer, SqlColumn};
use gapscope_companion::{
    INCOMPLETE, QUERY_PROGRAM, companion, one_line, without_os_error_numbers,
};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;

/// The most rows of an answer; the answer says whether there are more.
pub const MAX_ROWS: usize = 1000;
/// The most bytes of an answer, whose texts may be long.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// The most bytes that are read of the program's standard error.
const MAX_STDERR_BYTES: usize = 64 << 10;
/// The most queries that run at a time, since each may take all cores and much memory; others wait.
const MAX_RUNNING: usize = 2;
/// The longest time that a query may take by default; then it is stopped.
const MAX_DURATION: Duration = Duration::from_secs(60);

/// Runs the program that answers SQL.
#[derive(Debug)]
pub struct Sql {
    /// The program; `None` to look for it beside this program and in PATH.
    program: Option<PathBuf>,
    /// The longest time that a query may take.
    longest: Duration,
    /// Admits [`MAX_RUNNING`] queries at a time.
    running: Semaphore,
}

/// The first line of an answer.
#[derive(Deserialize)]
struct Columns {
    columns: Vec<SqlColumn>,
}

/// The reason why a query has no answer, in a sentence.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The program is not installed.
    #[error("{0}")]
    Absent(String),
    /// The program refused the query, or was stopped.
    #[error("{0}")]
    Failed(String),
}

/// The output of the program.
struct ProgramOutput {
    /// The standard output.
    answer: Vec<u8>,
    /// The lines of its standard error.
    sentences: Vec<String>,
    status: ExitStatus,
}

impl Sql {
    pub fn new(program: Option<PathBuf>, longest: Option<Duration>) -> Sql {
        Sql {
            program,
            longest: longest.unwrap_or(MAX_DURATION),
            running: Semaphore::new(MAX_RUNNING),
        }
    }

    /// Returns the rows of a query on traces. Dropping the future stops the query.
    ///
    /// # Errors
    /// The program is not installed, refuses the query, or takes too long.
    pub async fn rows(&self, traces: &[PathBuf], sql: &str) -> Result<SqlAnswer, SqlError> {
        let asked = Instant::now();
        // One more row tells that there are more.
        let most = (MAX_ROWS + 1).to_string();
        let options = ["--format=rows", "--most", &most];
        let said = self.answer(&options, traces, sql).await?;
        let text = text(said.answer)?;
        let mut lines = text.lines();
        let Columns { columns } = parsed(lines.next().unwrap_or_default())?;
        let mut rows = lines.map(parsed).collect::<Result<Vec<_>, _>>()?;
        let more = rows.len() > MAX_ROWS;
        rows.truncate(MAX_ROWS);
        let names = traces
            .iter()
            .map(|path| path.to_string_lossy().into_owned());
        Ok(SqlAnswer {
            columns,
            rows,
            more,
            missing: said.sentences,
            traces: names.collect(),
            took_ms: asked.elapsed().as_secs_f64() * 1e3,
        })
    }

    /// Returns the tables, their columns, and the saved queries.
    ///
    /// # Errors
    /// As [`Self::rows`].
    pub async fn catalogue(&self, traces: &[PathBuf]) -> Result<Catalogue, SqlError> {
        let said = self
            .answer(&["--schema", "--format=json"], traces, "")
            .await?;
        parsed(&text(said.answer)?)
    }

    /// Runs the program on the traces with a query and waits for its output. A status that says that rows are missing
    /// is no error: the sentences say which.
    async fn answer(
        &self,
        options: &[&str],
        traces: &[PathBuf],
        sql: &str,
    ) -> Result<ProgramOutput, SqlError> {
        let found = self
            .program
            .clone()
            .or_else(|| companion::find(QUERY_PROGRAM));
        let program =
            found.ok_or_else(|| SqlError::Absent(companion::missing("query", QUERY_PROGRAM)))?;
        let mut command = Command::new(&program);
        let paths = traces.iter().map(|path| path.as_os_str());
        command.args(options).arg("--").args(paths);
        // The semaphore is never closed.
        let _turn = self.running.acquire().await;
        let said = match tokio::time::timeout(self.longest, run(command, sql)).await {
            Ok(said) => said.map_err(|error| {
                let error = format!("{} cannot be run: {error}", program.display());
                SqlError::Failed(without_os_error_numbers(&error))
            })?,
            Err(_) => return Err(SqlError::Failed(self.too_long())),
        };
        if said.answer.len() > MAX_ANSWER_BYTES {
            let most = MAX_ANSWER_BYTES >> 20;
            return Err(SqlError::Failed(format!(
                "the answer has more than {most} MiB: ask for fewer columns, or run `gapscope query`, which writes any answer to a file"
            )));
        }
        let partial = said.status.code() == Some(INCOMPLETE.into());
        match (said.status.success() || partial, said.sentences.last()) {
            (true, _) => Ok(said),
            (false, Some(sentence)) => Err(SqlError::Failed(sentence.clone())),
            (false, None) => Err(SqlError::Failed(format!(
                "the query was ended from outside ({}): where memory was short, ask for fewer rows or groups",
                said.status
            ))),
        }
    }

    /// Returns the sentence for a query that took too long.
    fn too_long(&self) -> String {
        let seconds = self.longest.as_secs_f64();
        format!(
            "the query was stopped after {seconds} s: ask for less, or run `gapscope query` with a longer --time-limit"
        )
    }
}

/// Runs the program, which is killed when the future is dropped.
async fn run(mut command: Command, sql: &str) -> std::io::Result<ProgramOutput> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    put_back(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let asking = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read the query says why on its standard error.
            let _ = stdin.write_all(sql.as_bytes()).await;
        }
    };
    let (answer, said, ()) = tokio::join!(
        start_of(stdout, MAX_ANSWER_BYTES + 1),
        start_of(stderr, MAX_STDERR_BYTES),
        asking
    );
    let answer = answer?;
    if answer.len() > MAX_ANSWER_BYTES {
        child.start_kill()?;
    }
    let status = child.wait().await?;
    let said = String::from_utf8_lossy(&said?).into_owned();
    let sentences = said.lines().filter(|line| !line.trim().is_empty());
    Ok(ProgramOutput {
        answer,
        sentences: sentences
            .map(|line| one_line(line.strip_prefix("gapscope: ").unwrap_or(line)))
            .collect(),
        status,
    })
}

/// Reads the first `most` bytes of a stream.
async fn start_of(stream: Option<impl AsyncRead + Unpin>, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(most as u64).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Returns the standard output as text.
fn text(bytes: Vec<u8>) -> Result<String, SqlError> {
    String::from_utf8(bytes).map_err(|_| other_version())
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, SqlError> {
    serde_json::from_str(text).map_err(|_| other_version())
}

/// Returns the error of an answer that cannot be understood.
fn other_version() -> SqlError {
    SqlError::Failed(format!(
        "the answer of {QUERY_PROGRAM} cannot be read: it is of another version of gapscope; {}",
        companion::mend(QUERY_PROGRAM)
    ))
}
