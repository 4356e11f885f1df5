//! Asks for the limits of the process (`ulimit`) that a hook must respect: the size of files and the address space.

use std::ffi::c_int;

/// Returns true when a file of this size would exceed the limit of this process (`ulimit -f`): creating it would
/// raise SIGXFSZ, which ends the program.
pub fn exceeds_file_limit(bytes: u64) -> bool {
    // SAFETY: the call stores the limit.
    limit(|limit| unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit) })
        .is_some_and(|most| bytes > most)
}

/// Returns the bytes of address space that this process may have (`ulimit -v`); `None` without a limit.
pub(crate) fn address_space() -> Option<u64> {
    // SAFETY: as above.
    limit(|limit| unsafe { libc::getrlimit(libc::RLIMIT_AS, limit) })
}

/// Returns the limit in force that `ask` stores; `None` without one.
fn limit(ask: impl FnOnce(*mut libc::rlimit) -> c_int) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    ask(&raw mut limit);
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
