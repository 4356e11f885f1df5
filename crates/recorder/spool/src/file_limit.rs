//! Asks for the limit on the size of files, beyond which a hook must not make one.

/// Returns true when a file of this size would exceed the limit of this process (`ulimit -f`): creating it would
/// raise SIGXFSZ, which ends the program.
pub fn exceeds_file_limit(bytes: u64) -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call stores the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    bytes > limit.rlim_cur
}
