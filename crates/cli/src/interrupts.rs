//! Removes unfinished files when a signal ends a command that writes them.

/// From now on, a signal that ends this process first removes its unfinished files and folders.
#[cfg(target_os = "linux")]
pub fn remove_unfinished_first() {
    // If the system refuses, the names of unfinished files say what they are.
    let _ = watch();
}

/// Starts the thread that waits for a signal.
#[cfg(target_os = "linux")]
fn watch() -> std::io::Result<()> {
    use gapscope_recorder::is_ignored;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let (mut wake, arrives) = UnixStream::pair()?;
    let arrived: std::sync::Arc<AtomicUsize> = Default::default();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if !is_ignored(signal) {
            signal_hook::flag::register_usize(signal, arrived.clone(), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, arrives.try_clone()?)?;
        }
    }
    std::thread::spawn(move || {
        if wake.read_exact(&mut [0]).is_ok() {
            gapscope_files::remove_unfinished();
            let signal = arrived.load(Ordering::SeqCst) as i32;
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Unfinished files have names that say what they are, and the next command that writes the same output removes them.
#[cfg(not(target_os = "linux"))]
pub fn remove_unfinished_first() {}
