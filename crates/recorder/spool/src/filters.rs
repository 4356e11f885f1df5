//! Tells whether the program filters its system calls (seccomp), so that a hook leaves undone what could end it, such as
//! starting a thread. A filter that the session has too, as in a container, does not count: it does not end hooks.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// The state that was seen when the hook was loaded, as one of the values below.
static AT_LOAD: AtomicU32 = AtomicU32::new(NOT_LOOKED);
const NOT_LOOKED: u32 = 0;
const NO_FILTER: u32 = 1;
/// There are filters, and the session has them too.
const INHERITED: u32 = 2;
/// The program, or what has started it, has set a filter.
const OWN: u32 = 3;

/// Looks at the filters of this process when the hook is loaded, and returns whether it has one of its own.
pub(crate) fn look() -> bool {
    let own = match is_filtered() {
        false => NO_FILTER,
        true => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let of_session = std::env::var(crate::env::FILTERS).ok();
            let of_session: Option<u32> = of_session.and_then(|number| number.parse().ok());
            match count(&status) > of_session {
                true => OWN,
                false => INHERITED,
            }
        }
    };
    AT_LOAD.store(own, Relaxed);
    own == OWN
}

/// Returns true where this process has filtered its system calls before the hook was loaded, or since then. One that the
/// program adds to those of a container is not seen here; the session sees it.
pub(crate) fn has_own() -> bool {
    match AT_LOAD.load(Relaxed) {
        OWN => true,
        NO_FILTER => is_filtered(),
        _ => false,
    }
}

/// Returns the number of filters that the text of `/proc/PID/status` counts.
pub fn count(status: &str) -> Option<u32> {
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse().ok()
    };
    // Old kernels only say whether there is one.
    field("Seccomp_filters:").or_else(|| field("Seccomp:"))
}

/// Returns true where the system calls of this thread are filtered.
fn is_filtered() -> bool {
    // SAFETY: the call only reads.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) > 0 }
}
