//! The truth log: what the simulated devices really did, one JSON object a line. Times are nanoseconds of the host's CLOCK_MONOTONIC.
//! Each line has `kind`, `pid`, `start_ns`, `end_ns`, the call's `correlation`, and the members of its kind:
//!
//! | kind | members |
//! |---|---|
//! | `kernel` | `name`, `context`, `stream`, `device`, `node` |
//! | `transfer`, `graph` | `bytes`; `stream` |
//! | `call` | `name`, `thread`, `result`, and the driver's call `inside` a runtime's |
//! | `event` | a record of an event: `event` and `occurrence` are numbers of their own, `context`, `stream` |
//! | `flush` | a flush that the client asked for |
//! | `wait` | `what` waits for what until `end_ns`; `context`, `stream`, and the record of the event: 0 where there is none |

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::OnceLock;

fn log() -> Option<&'static File> {
    static LOG: OnceLock<Option<File>> = OnceLock::new();
    LOG.get_or_init(|| {
        let path = std::env::var_os("FAKE_CUDA_TRUTH")?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    })
    .as_ref()
}

/// Appends a line. `more` are further members, each with a comma before it.
pub fn write(
    kind: &str,
    correlation: u32,
    (start, end): (u64, u64),
    more: std::fmt::Arguments<'_>,
) {
    if let Some(mut file) = log() {
        let pid = std::process::id();
        let line = format!(
            "{{\"kind\":\"{kind}\",\"pid\":{pid},\"correlation\":{correlation},\"start_ns\":{start},\"end_ns\":{end}{more}}}\n"
        );
        let _ = file.write_all(line.as_bytes());
    }
}
