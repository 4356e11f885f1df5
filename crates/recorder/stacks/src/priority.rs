//! How the system lets the sampling thread run: it yields to the program, but comes soon after it asked.

use libc::{SCHED_OTHER, SYS_sched_setattr, syscall};

const NICENESS: i32 = 5;
/// A sample takes less. Who asks for little at a time is let in sooner (Linux 6.12 and later); otherwise samples come when the program
/// gives up its processor, which is a moment of its choice.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr`, in its first version.
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

/// Lowers the priority of this thread. It only costs comfort when the system refuses.
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
    // SAFETY: the kernel reads `size` bytes of the structure, and changes this thread's priority alone.
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
