//! How commands end.

pub use gapscope_command::INCOMPLETE;
use gapscope_trace::manifest::Exit;
use std::process::ExitCode;

/// The end of a command that read a trace.
pub fn of_reading(whole: bool) -> ExitCode {
    match whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INCOMPLETE),
    }
}

/// The exit status of a recorded command, as a shell gives it.
pub fn status(exit: Exit) -> u8 {
    match exit {
        // The system keeps eight bits of a code.
        Exit::Code(code) => (code & 0xff) as u8,
        Exit::Signal(signal) => 128_u8.saturating_add(signal as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_that_of_a_shell() {
        assert_eq!(status(Exit::Code(0)), 0);
        assert_eq!(status(Exit::Code(3)), 3);
        assert_eq!(status(Exit::Code(-1)), 255);
        assert_eq!(status(Exit::Signal(9)), 137);
    }
}
