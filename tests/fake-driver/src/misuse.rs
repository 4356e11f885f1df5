//! Writes the log of misuses of the API, one line each: `vkCall: what was wrong`.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;

/// Reports a misuse. This never panics and never fails the call: a test reads the file.
pub fn report(call: &str, what: impl Display) {
    static LOG: OnceLock<Option<File>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let path = std::env::var_os("FAKE_VK_MISUSE_LOG")?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = log.as_ref() {
        // The whole line is one write, so that lines of several threads and processes do not mix.
        let _ = file.write_all(format!("{call}: {what}\n").as_bytes());
    }
}
