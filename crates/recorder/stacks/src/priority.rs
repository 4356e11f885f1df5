//! Sets how the system schedules the sampling thread: it yields to the program, but runs soon after it wakes.

use libc::{SCHED_OTHER, SYS_sched_setattr, syscall};

/// The thread's niceness: the program goes first.
const NICENESS: i32 = 5;
/// The slice that the thread requests; a sample takes less. Linux 6.12 and later schedules a short slice sooner. Otherwise samples
/// would come when the program gives up its processor, which is a moment of the program's choice.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` in its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Lowers the priority of this thread. A refusal by the system is harmless.
pub fn lower() {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: SCHED_OTHER as u32,
        flags: 0,
        nice: NICENESS,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of the structure and changes the priority of this thread alone.
    let refused = unsafe { syscall(SYS_sched_setattr, 0, &raw const attributes, 0) } != 0;
    if refused {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_thread_yields_to_others() {
        let lowered = std::thread::spawn(|| {
            super::lower();
            rustix::process::getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), super::NICENESS);
    }
}
