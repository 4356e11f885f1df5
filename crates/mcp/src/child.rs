//! Runs the program `gapscope` for a call of a tool, with a time limit and bounded output: arguments and standard
//! input go in, and the exit status and both outputs come out ([`FinishedChild`]). The program is ended when its answer is
//! longer than anybody reads.

use gapscope_companion::one_line;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// The most bytes that are kept of each output; the rest is read and dropped.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// The time that outputs have to end after the program: a process that it started and that runs on may keep them open.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Why a child has no result.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error("{}", one_line(&format!("{} cannot be started: {source}", program.display())))]
    Start { program: PathBuf, source: io::Error },
    #[error("it took longer than {} s and was ended", .0.as_secs())]
    TimedOut(Duration),
    #[error("gapscope did not end well: {0}")]
    Wait(#[source] io::Error),
}

/// The exit status of a child and its outputs, in which bytes that are not UTF-8 are replaced.
#[derive(Debug)]
pub struct FinishedChild {
    /// `None` for a child that was ended because its answer was long enough.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

/// Returns the path of `gapscope` beside this program, or else its name, which the system looks up in PATH.
pub fn gapscope() -> PathBuf {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let beside = executable.ok().map(|path| path.with_file_name("gapscope"));
    beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("gapscope"))
}

/// Runs `gapscope` with these arguments in a folder. It is killed, with all processes that it started, after `limit`,
/// when its standard output has more than `most` bytes where that is given, and when the client gives up. Once it has ended by itself, processes
/// that it started may run on.
///
/// # Errors
/// The program cannot be started, or takes too long.
pub async fn run(
    arguments: Vec<OsString>,
    stdin: &str,
    folder: &Path,
    limit: Duration,
    most: Option<usize>,
) -> Result<FinishedChild, ChildError> {
    let program = gapscope();
    let mut child = Command::new(&program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| ChildError::Start { program, source })?;
    let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(id as i32)));
    let (mut to, out, said) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ran = async {
        let write = async {
            if let Some(pipe) = &mut to {
                // A child that does not read its input has ended.
                let _ = pipe.write_all(stdin.as_bytes()).await;
            }
            drop(to.take());
            Ok(())
        };
        let answer = read_output(out, &mut stdout, most);
        let mut outputs =
            pin!(async { tokio::try_join!(write, answer, read_output(said, &mut stderr, None)) });
        // The end of the child decides, whoever else has its outputs open.
        tokio::select! {
            status = child.wait() => {
                let _ = tokio::time::timeout(OUTPUT_GRACE, &mut outputs).await;
                Some(status)
            }
            read = &mut outputs => match read {
                Ok(_) => Some(child.wait().await),
                Err(LongAnswer) => None,
            }
        }
    };
    let status = tokio::time::timeout(limit, ran).await;
    let status = status.map_err(|_| ChildError::TimedOut(limit))?;
    if status.is_some() {
        group.disarm();
    }
    Ok(FinishedChild {
        status: status.transpose().map_err(ChildError::Wait)?,
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// The process group of a child, which is killed when this value is dropped, unless it was disarmed.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Disarms the value once the child has ended by itself.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // If the group has just ended, there is nothing to kill.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// An answer is longer than the caller wants.
struct LongAnswer;

/// Reads an output to its end into `kept`, which gets its start; an output of more than `most` bytes is an error.
async fn read_output(
    pipe: Option<impl AsyncRead + Unpin>,
    kept: &mut Vec<u8>,
    most: Option<usize>,
) -> Result<(), LongAnswer> {
    let Some(mut pipe) = pipe else {
        return Ok(());
    };
    let mut piece = vec![0; 1 << 16];
    while let Ok(read @ 1..) = pipe.read(&mut piece).await {
        let room = MAX_OUTPUT_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..read.min(room)]);
        if most.is_some_and(|most| kept.len() > most) {
            return Err(LongAnswer);
        }
    }
    Ok(())
}

/// Returns the first `max_characters` of a text and, where it was cut, a sentence that says so, followed by the
/// advice `instead`.
pub fn cut(text: &str, max_characters: usize, instead: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(max_characters) else {
        return text.to_owned();
    };
    format!(
        "{}\n… The answer was cut here, after {max_characters} characters. {instead}",
        &text[..end]
    )
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("äöü", 3, "Ask."), "äöü");
        let text = cut("äöüß", 3, "Ask for less.");
        assert!(text.starts_with("äöü\n… The answer was cut here"), "{text}");
        assert!(
            text.ends_with("after 3 characters. Ask for less."),
            "{text}"
        );
    }
}
