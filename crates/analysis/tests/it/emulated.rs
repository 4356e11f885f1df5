//! A machine in virtual time, with known delays: a program goes in, its trace and its end come out.

use gapscope_trace::Trace;
use std::fmt::Write;

use Act::{Host, WaitDevice, WaitQueue};

/// The delays of the emulated machine.
pub const LAUNCH_NS: i64 = 10_000;
pub const GAP_NS: i64 = 2_000;
pub const HANDOVER_NS: i64 = 3_000;
pub const WAKE_NS: i64 = 8_000;
pub const CALL_NS: i64 = 5_000;
/// The own time of a wait.
pub const WAIT_NS: i64 = 2_000;

/// Something that the emulated program does.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// The host computes.
    Host(i64),
    /// The host submits work to a queue: a kernel, or a transfer. With a dependency on the last work of the other queue.
    Submit {
        queue: usize,
        ns: i64,
        transfer: bool,
        depends: bool,
    },
    /// The host reads memory of the device by a copy on a queue, and waits for the copy.
    Read { queue: usize, ns: i64 },
    /// The host waits for a queue.
    WaitQueue(usize),
    /// The host waits for the device.
    WaitDevice,
}

pub const fn kernel(queue: usize, ns: i64) -> Act {
    Act::Submit {
        queue,
        ns,
        transfer: false,
        depends: false,
    }
}

pub const fn transfer(queue: usize, ns: i64) -> Act {
    Act::Submit {
        queue,
        ns,
        transfer: true,
        depends: false,
    }
}

pub const fn dependent(queue: usize, ns: i64) -> Act {
    Act::Submit {
        queue,
        ns,
        transfer: false,
        depends: true,
    }
}

/// What is different in the second run.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    pub host: f64,
    pub kernel: f64,
    pub transfer: f64,
    pub call: f64,
    pub depends: bool,
    /// Each so many-th wait is made, and the last.
    pub wait_each: usize,
    /// Each so many-th read is made, and the last.
    pub read_each: usize,
    /// A call that submits waits while a queue has so many submissions.
    pub queue_size: usize,
}

pub const SAME: Machine = Machine {
    host: 1.0,
    kernel: 1.0,
    transfer: 1.0,
    call: 1.0,
    depends: true,
    wait_each: 1,
    read_each: 1,
    queue_size: usize::MAX,
};

/// From the start of a call to its wait for a full queue.
const BEFORE_FULL_NS: i64 = 1_000;

fn scaled(ns: i64, factor: f64) -> i64 {
    (ns as f64 * factor).round() as i64
}

/// Runs a program, and returns its trace and its end.
pub fn run(acts: &[Act], machine: Machine) -> (Trace, i64) {
    let mut text = String::from(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         thread process=1 thread=7 name=main
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         queue id=2 device=1
         kernel id=1 process=1 name=work\n",
    );
    let waits = acts
        .iter()
        .filter(|act| matches!(act, WaitQueue(_) | WaitDevice));
    let (waits, mut wait) = (waits.count(), 0);
    let (mut now, mut id, mut end) = (0, 0, 0);
    let mut queue_end: [Option<i64>; 2] = [None; 2];
    let mut last: [Option<u64>; 2] = [None; 2];
    let mut ends: [Vec<i64>; 2] = Default::default();
    let is_read = |act: &&Act| matches!(act, Act::Read { .. });
    let (reads, mut read) = (acts.iter().filter(is_read).count(), 0);
    for act in acts {
        match *act {
            Host(ns) => now += scaled(ns, machine.host),
            Act::Submit {
                queue,
                ns,
                transfer,
                depends,
            } => {
                id += 1;
                let mut start = now + LAUNCH_NS;
                if let Some(ended) = queue_end[queue] {
                    start = start.max(ended + GAP_NS);
                }
                let other = 1 - queue;
                if let (true, Some(awaited)) = (depends, last[other]) {
                    writeln!(text, "dependency submission={id} waits_for={awaited}").unwrap();
                    if let (true, Some(ended)) = (machine.depends, queue_end[other]) {
                        start = start.max(ended + HANDOVER_NS);
                    }
                }
                let factor = [machine.kernel, machine.transfer][usize::from(transfer)];
                let ns = scaled(ns, factor);
                let mut call_ns = scaled(CALL_NS, machine.call);
                let ahead = ends[queue].len().checked_sub(machine.queue_size);
                let full_ns = now + BEFORE_FULL_NS;
                if let Some(ended) = ahead.map(|ahead| ends[queue][ahead])
                    && ended + WAKE_NS > full_ns
                {
                    let waited_ns = ended + WAKE_NS - full_ns;
                    writeln!(
                        text,
                        "host_call process=1 thread=7 call=queue-full start_ns={full_ns} duration_ns={waited_ns}"
                    )
                    .unwrap();
                    call_ns += waited_ns;
                }
                ends[queue].push(start + ns);
                let kind = ["kernel", "transfer"][usize::from(transfer)];
                let row = match transfer {
                    true => "transfer kind=host-to-device",
                    false => "dispatch kernel=1",
                };
                let name = queue + 1;
                writeln!(
                    text,
                    "submission id={id} process=1 queue={name} kind={kind} thread=7 start_ns={now} duration_ns={call_ns} function=launch\n\
                     {row} submission={id} queue={name} start_ns={start} duration_ns={ns}"
                )
                .unwrap();
                queue_end[queue] = Some(start + ns);
                last[queue] = Some(id);
                now += call_ns;
                end = end.max(start + ns);
            }
            Act::Read { queue, ns } => {
                read += 1;
                if read % machine.read_each != 0 && read != reads {
                    continue;
                }
                id += 1;
                let start = queue_end[queue].map_or(i64::MIN, |ended| ended + GAP_NS);
                let start = start.max(now + LAUNCH_NS);
                let ended = start + ns;
                let call_ns = ended + WAKE_NS - now;
                let name = queue + 1;
                writeln!(
                    text,
                    "submission id={id} process=1 queue={name} kind=transfer thread=7 start_ns={now} duration_ns={call_ns} function=read\n\
                     host_call process=1 thread=7 call=copy-and-wait queue={name} start_ns={now} duration_ns={call_ns} result=0 function=read\n\
                     transfer kind=device-to-host submission={id} queue={name} start_ns={start} duration_ns={ns}"
                )
                .unwrap();
                queue_end[queue] = Some(ended);
                ends[queue].push(ended);
                last[queue] = Some(id);
                now += call_ns;
            }
            WaitQueue(_) | WaitDevice => {
                wait += 1;
                let target = match *act {
                    WaitQueue(queue) => queue_end[queue],
                    _ => queue_end[0].max(queue_end[1]),
                };
                let (start, returns) = (now, now + WAIT_NS);
                let is_made = wait % machine.wait_each == 0 || wait == waits;
                now = match target.filter(|_| is_made) {
                    Some(ended) => returns.max(ended + WAKE_NS),
                    None => returns,
                };
                let call = match *act {
                    WaitQueue(queue) => format!("wait-queue-idle queue={}", queue + 1),
                    _ => "wait-device-idle".to_owned(),
                };
                let ns = now - start;
                writeln!(
                    text,
                    "host_call process=1 thread=7 call={call} start_ns={start} duration_ns={ns} result=0"
                )
                .unwrap();
            }
        }
        end = end.max(now);
    }
    // The host's last time is no call of its own.
    let ends_in_host = acts.iter().rev().take_while(|act| matches!(act, Host(_)));
    let after = ends_in_host.map(|act| match act {
        Host(ns) => scaled(*ns, machine.host),
        _ => 0,
    });
    let after: i64 = after.sum();
    if end == now {
        end = (now - after).max(queue_end[0].max(queue_end[1]).unwrap_or(0));
    }
    (Trace::from_text(&text).unwrap(), end)
}
