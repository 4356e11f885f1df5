//! Starts this program again without randomised addresses, so that the addresses of a capture are free.
//!
//! A replay has memory at the addresses that it had in the program, as pointers in memory hold them. The kernel places the
//! libraries, stacks and mappings of a process at random, by default; among 400 processes 33 had one of them at a
//! recorded address, and without randomisation none had.

use std::io;

/// The variable that says how often the program has started itself again, so that this ends.
const ATTEMPT: &str = "GAPSCOPE_REPLAY_ATTEMPT";
/// The most attempts where the system does not let a process switch randomisation off, as in some containers.
const MAX_ATTEMPTS: u32 = 8;

/// Returns how often the program has started itself again.
fn attempt() -> Option<u32> {
    std::env::var(ATTEMPT).ok()?.parse().ok()
}

/// Starts this program again with the same arguments, once, without randomised addresses. Where the system refuses that,
/// the program goes on as it is. To be called before any thread is started and before CUDA's driver is loaded.
pub fn with_fixed_addresses() {
    if attempt().is_none() && fix_addresses() {
        again(1);
    }
}

/// Starts this program again after an address was taken: with randomised addresses, another attempt finds others. Returns
/// only where no further attempt makes sense.
pub fn after_a_collision() {
    let attempt = attempt().unwrap_or(0);
    if attempt < MAX_ATTEMPTS && !has_fixed_addresses() {
        again(attempt + 1);
    }
}

/// Replaces this process by one of the same program. Returns where that fails.
fn again(attempt: u32) {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut command = std::process::Command::new(program);
    if let Some(name) = name {
        command.arg0(name);
    }
    let _: io::Error = command
        .args(arguments)
        .env(ATTEMPT, attempt.to_string())
        .exec();
}

/// The value of `personality` that changes nothing.
#[cfg(target_os = "linux")]
const ASK: libc::c_ulong = 0xffff_ffff;

/// Switches randomised addresses off for programs that this process executes. Returns whether they were on, and are off.
#[cfg(target_os = "linux")]
fn fix_addresses() -> bool {
    // SAFETY: the call changes a flag of this process, and no memory.
    unsafe {
        let now = libc::personality(ASK);
        if now < 0 || now & libc::ADDR_NO_RANDOMIZE != 0 {
            return false;
        }
        let wanted = now | libc::ADDR_NO_RANDOMIZE;
        libc::personality(wanted as libc::c_ulong) >= 0 && has_fixed_addresses()
    }
}

/// Returns whether addresses of this process are not randomised.
#[cfg(target_os = "linux")]
fn has_fixed_addresses() -> bool {
    // SAFETY: the call changes nothing.
    let now = unsafe { libc::personality(ASK) };
    now >= 0 && now & libc::ADDR_NO_RANDOMIZE != 0
}

#[cfg(not(target_os = "linux"))]
fn fix_addresses() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn has_fixed_addresses() -> bool {
    true
}

/// Ends this process without waiting for the GPU, where a kernel does not end.
pub fn end_at_once(status: u8) -> ! {
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(status.into()) }
}

/// Does work while what is written to stdout goes to stderr: kernels that print write to stdout, which has the answer of
/// this program.
pub fn with_stdout_on_stderr<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the calls change descriptors of this process that it has open, and write what C's streams hold.
    let kept = unsafe {
        let kept = libc::dup(libc::STDOUT_FILENO);
        if kept >= 0 {
            libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
        }
        kept
    };
    let done = work();
    if kept >= 0 {
        // SAFETY: as above.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::dup2(kept, libc::STDOUT_FILENO);
            libc::close(kept);
        }
    }
    done
}
