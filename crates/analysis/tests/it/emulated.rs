//! A machine in virtual time, with known delays: a program, or one for each rank, goes in; the traces and the end come out.

use gapscope_analysis::what_if::RankPart;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::ids::QueueId;
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
    /// The host submits the rank's part in a collective to the first queue. It takes so long after all ranks have arrived.
    Collective(i64),
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
    /// The own time of collectives.
    pub collective: f64,
    pub call: f64,
    pub depends: bool,
    /// Each so many-th wait is made, and the last.
    pub wait_each: usize,
    /// Each so many-th read is made, and the last.
    pub read_each: usize,
    /// A call that submits waits while a queue has so many submissions.
    pub queue_size: usize,
    /// Another thread, of the recorder, reads its buffers each so many nanoseconds; 0: never.
    pub recorder_reads_each_ns: i64,
}

pub const SAME: Machine = Machine {
    host: 1.0,
    kernel: 1.0,
    transfer: 1.0,
    collective: 1.0,
    call: 1.0,
    depends: true,
    wait_each: 1,
    read_each: 1,
    queue_size: usize::MAX,
    recorder_reads_each_ns: 0,
};

/// From the start of a call to its wait for a full queue.
const BEFORE_FULL_NS: i64 = 1_000;

fn scaled(ns: i64, factor: f64) -> i64 {
    (ns as f64 * factor).round() as i64
}

/// Runs a program, and returns its trace and its end.
pub fn run(acts: &[Act], machine: Machine) -> (Trace, i64) {
    let mut ran = run_ranks(&[(acts.to_vec(), machine)], 0);
    (ran.traces.remove(0), ran.end_ns)
}

/// What the programs of ranks did.
pub struct RanRanks {
    pub traces: Vec<Trace>,
    /// The parts of each rank in collectives, in order.
    pub parts: Vec<Vec<RankPart>>,
    pub end_ns: i64,
}

/// Runs the program of each rank on a machine of its own. The traces say that the clocks of the devices are wrong by `clock_error_ns` at most.
pub fn run_ranks(programs: &[(Vec<Act>, Machine)], clock_error_ns: i64) -> RanRanks {
    let mut ranks: Vec<Rank> = programs
        .iter()
        .map(|(acts, machine)| Rank::new(acts, *machine, clock_error_ns))
        .collect();
    let mut parts = vec![Vec::new(); ranks.len()];
    for collective in 0.. {
        let arrivals: Vec<Option<(i64, i64)>> =
            ranks.iter_mut().map(Rank::until_collective).collect();
        let Some(last_ns) = arrivals.iter().flatten().map(|(start, _)| *start).max() else {
            break;
        };
        for ((rank, parts), arrival) in ranks.iter_mut().zip(&mut parts).zip(arrivals) {
            let (start, own_ns) = arrival.expect("each rank takes part in each collective");
            let end = last_ns + own_ns;
            rank.leave(start, end);
            parts.push(RankPart {
                queue: QueueId(1),
                interval: Interval::new(start, end),
                collective,
                last_ns,
            });
        }
    }
    let end_ns = ranks.iter().map(Rank::end_ns).max().unwrap_or(0);
    let traces = ranks
        .iter()
        .map(|rank| Trace::from_text(&rank.text_with_recorder()).unwrap());
    RanRanks {
        traces: traces.collect(),
        parts,
        end_ns,
    }
}

/// The program of a rank while it runs.
struct Rank<'p> {
    acts: &'p [Act],
    machine: Machine,
    next: usize,
    text: String,
    waits: usize,
    wait: usize,
    reads: usize,
    read: usize,
    now: i64,
    id: u64,
    end: i64,
    queue_end: [Option<i64>; 2],
    /// The ends of all work of each queue.
    ends: [Vec<i64>; 2],
    last: [Option<u64>; 2],
}

impl<'p> Rank<'p> {
    /// Returns the text of the trace, with the calls of the recorder's own thread.
    fn text_with_recorder(&self) -> String {
        let mut text = self.text.clone();
        let each_ns = self.machine.recorder_reads_each_ns;
        let reads = (1..).map(|read| read * each_ns);
        for at_ns in reads.take_while(|at_ns| each_ns > 0 && *at_ns < self.end_ns()) {
            writeln!(
                text,
                "host_call process=1 thread=8 call=recording start_ns={at_ns} duration_ns=20000"
            )
            .unwrap();
        }
        text
    }

    fn new(acts: &'p [Act], machine: Machine, clock_error_ns: i64) -> Rank<'p> {
        let waits = acts
            .iter()
            .filter(|act| matches!(act, WaitQueue(_) | WaitDevice));
        Rank {
            acts,
            machine,
            next: 0,
            text: format!(
                "manifest sampling_mode=dispatch
         process id=1 pid=10
         thread process=1 thread=7 name=main
         device id=1 process=1 name=GPU uuid=aa clock.error_ns={clock_error_ns}
         queue id=1 device=1
         queue id=2 device=1
         kernel id=1 process=1 name=work
         kernel id=2 process=1 name=ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"
            ),
            waits: waits.count(),
            wait: 0,
            reads: acts
                .iter()
                .filter(|act| matches!(act, Act::Read { .. }))
                .count(),
            read: 0,
            now: 0,
            id: 0,
            end: 0,
            queue_end: [None; 2],
            ends: Default::default(),
            last: [None; 2],
        }
    }

    /// Runs until the rank arrives at a collective, and returns when, with the own time of the collective; `None` at the end of the program.
    fn until_collective(&mut self) -> Option<(i64, i64)> {
        while let Some(act) = self.acts.get(self.next) {
            self.next += 1;
            match *act {
                Host(ns) => self.now += scaled(ns, self.machine.host),
                Act::Submit {
                    queue,
                    ns,
                    transfer,
                    depends,
                } => self.submit(queue, ns, transfer, depends),
                Act::Collective(own_ns) => {
                    let start = self.launch(0, "kernel");
                    return Some((start, scaled(own_ns, self.machine.collective)));
                }
                Act::Read { queue, ns } => self.read(queue, ns),
                WaitQueue(queue) => {
                    let call = format!("wait-queue-idle queue={}", queue + 1);
                    self.wait(self.queue_end[queue], &call);
                }
                WaitDevice => {
                    self.wait(self.queue_end[0].max(self.queue_end[1]), "wait-device-idle");
                }
            }
            self.end = self.end.max(self.now);
        }
        None
    }

    /// Ends the rank's part in a collective.
    fn leave(&mut self, start: i64, end: i64) {
        self.work("dispatch kernel=2", 0, start, end - start);
        self.end = self.end.max(self.now);
    }

    /// Submits work to a queue, and returns when it starts as far as launch and queue let it.
    fn launch(&mut self, queue: usize, kind: &str) -> i64 {
        self.id += 1;
        let (id, now, name) = (self.id, self.now, queue + 1);
        let call_ns = scaled(CALL_NS, self.machine.call) + self.wait_while_full(queue);
        writeln!(
            self.text,
            "submission id={id} process=1 queue={name} kind={kind} thread=7 start_ns={now} duration_ns={call_ns} function=launch"
        )
        .unwrap();
        self.now += call_ns;
        let launched = now + LAUNCH_NS;
        let ended = self.queue_end[queue].map(|ended| ended + GAP_NS);
        launched.max(ended.unwrap_or(launched))
    }

    /// Runs the last submission.
    fn work(&mut self, row: &str, queue: usize, start: i64, ns: i64) {
        let (id, name) = (self.id, queue + 1);
        writeln!(
            self.text,
            "{row} submission={id} queue={name} start_ns={start} duration_ns={ns}"
        )
        .unwrap();
        self.queue_end[queue] = Some(start + ns);
        self.ends[queue].push(start + ns);
        self.last[queue] = Some(id);
        self.end = self.end.max(start + ns);
    }

    fn submit(&mut self, queue: usize, ns: i64, transfer: bool, depends: bool) {
        let kind = ["kernel", "transfer"][usize::from(transfer)];
        let mut start = self.launch(queue, kind);
        let other = 1 - queue;
        if let (true, Some(awaited)) = (depends, self.last[other]) {
            let id = self.id;
            writeln!(self.text, "dependency submission={id} waits_for={awaited}").unwrap();
            if let (true, Some(ended)) = (self.machine.depends, self.queue_end[other]) {
                start = start.max(ended + HANDOVER_NS);
            }
        }
        let factor = [self.machine.kernel, self.machine.transfer][usize::from(transfer)];
        let row = match transfer {
            true => "transfer kind=host-to-device",
            false => "dispatch kernel=1",
        };
        self.work(row, queue, start, scaled(ns, factor));
    }

    /// Waits in a call until a queue has room, and returns for how long.
    fn wait_while_full(&mut self, queue: usize) -> i64 {
        let ends = &self.ends[queue];
        let full_ns = self.now + BEFORE_FULL_NS;
        let ahead = ends.len().checked_sub(self.machine.queue_size);
        let until_ns = ahead.map_or(full_ns, |ahead| ends[ahead] + WAKE_NS);
        if until_ns <= full_ns {
            return 0;
        }
        let waited_ns = until_ns - full_ns;
        writeln!(
            self.text,
            "host_call process=1 thread=7 call=queue-full start_ns={full_ns} duration_ns={waited_ns}"
        )
        .unwrap();
        waited_ns
    }

    fn read(&mut self, queue: usize, ns: i64) {
        self.read += 1;
        if !self.read.is_multiple_of(self.machine.read_each) && self.read != self.reads {
            return;
        }
        self.id += 1;
        let (id, now, name) = (self.id, self.now, queue + 1);
        let start = self.queue_end[queue].map_or(i64::MIN, |ended| ended + GAP_NS);
        let start = start.max(now + LAUNCH_NS);
        let call_ns = start + ns + WAKE_NS - now;
        writeln!(
            self.text,
            "submission id={id} process=1 queue={name} kind=transfer thread=7 start_ns={now} duration_ns={call_ns} function=read\n\
             host_call process=1 thread=7 call=copy-and-wait queue={name} start_ns={now} duration_ns={call_ns} result=0 function=read"
        )
        .unwrap();
        self.work("transfer kind=device-to-host", queue, start, ns);
        self.now += call_ns;
    }

    fn wait(&mut self, target: Option<i64>, call: &str) {
        self.wait += 1;
        let (start, returns) = (self.now, self.now + WAIT_NS);
        let is_made = self.wait.is_multiple_of(self.machine.wait_each) || self.wait == self.waits;
        self.now = match target.filter(|_| is_made) {
            Some(ended) => returns.max(ended + WAKE_NS),
            None => returns,
        };
        let ns = self.now - start;
        writeln!(
            self.text,
            "host_call process=1 thread=7 call={call} start_ns={start} duration_ns={ns} result=0"
        )
        .unwrap();
    }

    /// Returns the end of the run. The host's last time is no call of its own.
    fn end_ns(&self) -> i64 {
        let ends_in_host = (self.acts.iter().rev()).take_while(|act| matches!(act, Host(_)));
        let after = ends_in_host.map(|act| match act {
            Host(ns) => scaled(*ns, self.machine.host),
            _ => 0,
        });
        let after: i64 = after.sum();
        let device = self.queue_end[0].max(self.queue_end[1]).unwrap_or(0);
        match self.end == self.now {
            true => (self.now - after).max(device),
            false => self.end,
        }
    }
}
