//! Sets how the system schedules the sampling thread: it gets a turn soon after it wakes, and takes little.
//!
//! A loaded machine gives turns by groups: a session of a terminal, or a container. Where all of a group's processes are busy, a
//! thread of the group waits for the group's next turn, however nice it is: beside four busy processes on two processors, with
//! others at work, 20 to 30 % of the samples were taken in time at any niceness. Where the system permits, the thread
//! therefore reserves a share of a processor ([`Reservation`]), which the kernel holds it to, and gets all of them.

use libc::{SCHED_OTHER, SYS_sched_setattr, syscall};

/// The slice that the thread requests; a sample takes less. Linux 6.12 and later schedules a short slice sooner. Otherwise samples
/// would come when the program gives up its processor, which is a moment of the program's choice.
const SLICE_NS: u64 = 100_000;
/// The reserved time: a tenth of a processor, in pieces that are long enough for the samples of some threads. The pace ([`crate::pace`])
/// keeps to half of it, so that the kernel never stops the thread in the middle of its samples.
const RESERVED_NS: u64 = 2_000_000;
const RESERVED_EVERY_NS: u64 = 20_000_000;
/// The longest delay of the thread's timer.
const TIMER_SLACK_NS: u64 = 1_000;

/// SCHED_DEADLINE
const SCHED_DEADLINE: u32 = 6;
/// SCHED_FLAG_RESET_ON_FORK: what the thread starts has no reservation.
const RESET_ON_FORK: u64 = 1;

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

impl Attributes {
    /// A thread with a share of a processor of its own.
    const RESERVED: Attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: SCHED_DEADLINE,
        flags: RESET_ON_FORK,
        nice: 0,
        priority: 0,
        runtime: RESERVED_NS,
        deadline: RESERVED_EVERY_NS,
        period: RESERVED_EVERY_NS,
    };
    /// A thread among others, with a short slice.
    const SHORT_SLICE: Attributes = Attributes {
        policy: SCHED_OTHER as u32,
        flags: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
        ..Attributes::RESERVED
    };

    /// Applies the attributes to this thread; returns whether the system permits them.
    fn apply(&self) -> bool {
        // SAFETY: the kernel reads `size` bytes of the structure and changes the scheduling of this thread alone.
        unsafe { syscall(SYS_sched_setattr, 0, &raw const *self, 0) == 0 }
    }
}

/// The thread's share of a processor. The kernel gives it no more than that share, whatever the thread does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reservation {
    is_held: bool,
}

impl Reservation {
    /// Asks for the share. Most users may not have it; then the thread is one among others, with a short slice.
    pub fn ask() -> Reservation {
        // SAFETY: the call changes the timers of this thread alone.
        let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS) };
        let is_held = Attributes::RESERVED.apply();
        if !is_held {
            Attributes::SHORT_SLICE.apply();
        }
        Reservation { is_held }
    }

    /// Does work that takes long, such as reading the symbols of a library, without the share: with it the work would take ten
    /// times as long.
    pub fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.is_held {
            return work();
        }
        Attributes::SHORT_SLICE.apply();
        let done = work();
        Attributes::RESERVED.apply();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: the call reads the scheduling of this thread.
        unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
    }

    #[test]
    fn the_share_is_held_where_the_system_permits_it_but_for_long_work() {
        let thread = std::thread::spawn(|| {
            let reservation = Reservation::ask();
            let is_held = reservation.is_held;
            (is_held, policy(), reservation.pause(policy), policy())
        });
        let (is_held, before, inside, after) = thread.join().unwrap();
        let wanted = match is_held {
            true => SCHED_DEADLINE as i32,
            false => SCHED_OTHER,
        };
        assert_eq!((before, inside, after), (wanted, SCHED_OTHER, wanted));
    }
}
