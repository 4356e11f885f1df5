//! Lowers the priority of what works behind the page: of threads that show a recording while it runs, and of queries.

/// The niceness of threads that show a recording while it runs, behind the recorder's own threads; and of queries, which keep all cores
/// busy, behind the browser that shows the page.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of this thread and of those that it starts, so that a recorded program and its recorder go first.
pub fn step_back() {
    // On other systems the niceness is that of the whole process. A refusal of the system does no harm.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Lowers the priority of a program that has just been started, and of the threads that it will start.
pub fn put_back(program: &tokio::process::Child) {
    #[cfg(target_os = "linux")]
    {
        let id = program.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::setpriority_process(Some(id), NICENESS);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
}
