//! The exit statuses of the commands.

pub use gapscope_companion::INCOMPLETE;
use gapscope_trace::manifest::Exit;
use std::process::ExitCode;

/// The task could not be done, or a check that was asked for did not pass: outputs differ, a NaN was found, a gate is
/// broken.
pub const FAILED: u8 = 1;

/// The command line is wrong. The parser clap uses the same status.
pub const USAGE: u8 = 2;

/// The trace cannot know what was asked, and the reasons were printed.
pub const REFUSED: u8 = 2;

/// gapscope itself failed, and the recorded command's own status was 0. `timeout`, `env` and containers use the
/// same status for their own failures.
pub const CANNOT_RECORD: u8 = 125;

/// The command to record exists and cannot be run.
pub const NOT_EXECUTABLE: u8 = 126;

/// The command to record is not found.
pub const NOT_FOUND: u8 = 127;

/// The base to which the number of the signal is added that ended the recorded command.
pub const SIGNAL: u8 = 128;

/// The command was interrupted by Ctrl-C.
#[cfg(target_os = "linux")]
pub const INTERRUPTED: u8 = SIGNAL + 2;

/// Returns the status of a command that read a trace: success if the trace was whole, else [`INCOMPLETE`].
pub fn after_reading(whole: bool) -> ExitCode {
    match whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INCOMPLETE),
    }
}

/// Returns success if `passed`, else [`FAILED`].
pub fn passed(passed: bool) -> ExitCode {
    match passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    }
}

/// Returns the status of a recorded command in the encoding of shells.
pub fn status(exit: Exit) -> u8 {
    match exit {
        // The system keeps eight bits of a code.
        Exit::Code(code) => (code & 0xff) as u8,
        Exit::Signal(signal) => SIGNAL.saturating_add(signal as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_table_is_of_these() {
        let page = include_str!("../../../docs/scripts.md");
        let rows = page.lines().filter_map(|line| {
            let (status, _) = line.strip_prefix("| `")?.split_once("` |")?;
            status.parse::<u8>().ok()
        });
        let rows: Vec<u8> = rows.collect();
        assert_eq!(
            rows,
            [
                0,
                FAILED,
                USAGE,
                INCOMPLETE,
                CANNOT_RECORD,
                NOT_EXECUTABLE,
                NOT_FOUND
            ]
        );
        assert!(page.contains(&format!("| `{SIGNAL} + N` |")));
    }

    #[test]
    fn the_status_is_that_of_a_shell() {
        assert_eq!(status(Exit::Code(0)), 0);
        assert_eq!(status(Exit::Code(3)), 3);
        assert_eq!(status(Exit::Code(-1)), 255);
        assert_eq!(status(Exit::Signal(9)), 137);
    }
}
