//! Lowers the priority of threads that show a recording while it runs.

/// The niceness of threads that show a recording while it runs: the recorder's own threads go first.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of this thread and of those that it starts, so that a recorded program and its recorder go first.
pub fn step_back() {
    // On other systems the niceness is that of the whole process. A refusal of the system does no harm.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
