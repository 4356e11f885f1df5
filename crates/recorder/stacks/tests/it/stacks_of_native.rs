//! Programs without Python.

use crate::watched::{Watched, retry, watch};
use gapscope_model::{FrameKind, ThreadState};
use std::process::Command;

#[test]
fn a_native_program_has_its_native_stack() {
    retry(|| {
        let watched: Watched = watch(Command::new("sh").args(["-c", "echo; exec sleep 1"]));
        let samples = watched.of_main();
        let blocked = samples
            .iter()
            .filter(|sample| sample.system_call == Some("clock_nanosleep"));
        let blocked: Vec<_> = blocked.collect();
        if blocked.len() <= 50 {
            return Err(format!("{} samples", samples.len()));
        }
        let named = blocked.iter().filter(|sample| {
            let innermost = sample.frames.last();
            innermost.is_some_and(|frame| {
                frame.kind == FrameKind::Native
                    && frame
                        .function
                        .as_deref()
                        .is_some_and(|name| name.contains("nanosleep"))
                    && frame
                        .library
                        .as_deref()
                        .is_some_and(|path| path.contains("libc"))
            })
        });
        let named = named.count();
        assert!(named * 10 >= blocked.len() * 9, "{:#?}", blocked[0].frames);
        assert!(
            blocked
                .iter()
                .all(|sample| sample.state == ThreadState::Blocked)
        );
        assert!(
            blocked.iter().any(|sample| sample.frames.len() >= 3),
            "callers"
        );
        Ok(())
    });
}
