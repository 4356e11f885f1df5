//! How a recorded command ended.

use gapscope_trace::manifest::Exit;

/// The exit status of a command, as a shell gives it.
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
