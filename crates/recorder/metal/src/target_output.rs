//! Passes on the output of the recorded command. xctrace writes it to a file, between its own words on its own
//! output; it is copied from there to the standard output.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two looks at the file.
const PAUSE: Duration = Duration::from_millis(20);

/// A thread that copies a growing file to the standard output.
#[derive(Debug)]
pub(crate) struct TargetOutput {
    /// Asks the thread to copy the rest and end.
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TargetOutput {
    /// Starts to copy a file, which may not exist yet. Dropping the value copies the rest and ends the thread.
    pub fn copy(path: PathBuf) -> TargetOutput {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = ended.clone();
        let thread = std::thread::spawn(move || {
            let mut file = None;
            loop {
                let last = flag.load(Ordering::Acquire);
                if file.is_none() {
                    file = File::open(&path).ok();
                }
                if let Some(file) = &mut file
                    && copy_new(file, &mut io::stdout()).is_err()
                {
                    // The reader is gone (`| head`).
                    return;
                }
                if last {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        });
        TargetOutput {
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for TargetOutput {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies what the file has from its current position on.
fn copy_new(file: &mut File, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 1 << 14];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return out.flush();
        }
        out.write_all(&buffer[..length])?;
    }
}
