//! Finds, in the work of a GPU, the stretches of time in which only dispatches of one kernel ran, one after the other
//! or at once. A pause is time inside a stretch in which nothing ran. A piece of work comes with the number of its
//! kernel.

use gapscope_timeline::intervals::Interval;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A time from the start of a dispatch to the end of one of the same kernel, without other work in between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stretch {
    pub(super) interval: Interval,
    /// The number of the kernel.
    pub(super) kernel: u32,
    /// The indices of the stretch's pauses in [`Stretches`].
    pauses: Range<u32>,
}

/// The time for which a kernel ran on a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RunTimes {
    /// The time in which at least one dispatch of the kernel ran.
    pub(super) ran_ns: i64,
    /// The time in which the kernel's dispatches ran and nothing else did.
    pub(super) alone_ns: i64,
}

/// The stretches of a GPU that are long enough to hold a sample, in order of time.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    pub(super) all: Vec<Stretch>,
    /// The pauses of all stretches, in order of time.
    pauses: Vec<Interval>,
    /// The run times of each kernel, by its number.
    pub(super) kernels: Vec<RunTimes>,
    /// Shorter stretches are left out.
    least_ns: i64,
    /// The stretch that may still go on.
    open: Option<Stretch>,
    /// The current pause in the open stretch.
    pause: Option<Interval>,
}

impl Stretches {
    /// Finds the stretches of work in order of start. Each piece comes with the number of its kernel, which is less than
    /// `kernels`, or with `kernels` for other work. Stretches shorter than `least_ns` are left out.
    pub(super) fn new(
        works: impl Iterator<Item = (Interval, u32)>,
        kernels: usize,
        least_ns: i64,
    ) -> Stretches {
        let mut sweep = Sweep {
            running: BinaryHeap::new(),
            counts: vec![0; kernels + 1],
            since_ns: vec![0; kernels + 1],
            distinct: 0,
            now_ns: i64::MIN,
            found: Stretches {
                kernels: vec![RunTimes::default(); kernels],
                least_ns,
                ..Stretches::default()
            },
        };
        let mut works = works
            .filter(|(interval, _)| !interval.is_empty())
            .peekable();
        while let Some((interval, kernel)) = works.next() {
            let next = works.peek().map(|(next, _)| next.start_ns);
            sweep.add(interval, kernel, next.unwrap_or(i64::MAX));
        }
        sweep.until(i64::MAX);
        sweep.found.close();
        sweep.found
    }

    /// Returns how much of `part` of a stretch was pauses. Parts are asked for in order of time: `seen` pauses are over.
    pub(super) fn idle_ns(&self, stretch: &Stretch, part: Interval, seen: &mut usize) -> i64 {
        *seen = (*seen).max(stretch.pauses.start as usize);
        let end = stretch.pauses.end as usize;
        while *seen < end && self.pauses[*seen].end_ns <= part.start_ns {
            *seen += 1;
        }
        let left = self.pauses.get(*seen..end).unwrap_or_default().iter();
        left.take_while(|idle| idle.start_ns < part.end_ns)
            .map(|idle| idle.intersection(part).length_ns())
            .sum()
    }

    /// Adds an interval in which only dispatches of `kernel` ran.
    fn add_alone(&mut self, kernel: u32, interval: Interval) {
        self.kernels[kernel as usize].alone_ns += interval.length_ns();
        match &mut self.open {
            Some(open) if open.kernel == kernel => {
                open.interval.end_ns = interval.end_ns;
                if let Some(idle) = self.pause.take() {
                    self.pauses.push(idle);
                    open.pauses.end += 1;
                }
            }
            _ => {
                self.close();
                let at = self.pauses.len() as u32;
                self.open = Some(Stretch {
                    interval,
                    kernel,
                    pauses: at..at,
                });
            }
        }
    }

    /// Adds an interval in which nothing ran.
    fn add_pause(&mut self, interval: Interval) {
        if self.open.is_some() {
            let idle = self.pause.get_or_insert(interval);
            idle.end_ns = interval.end_ns;
        }
    }

    /// Ends the open stretch, because something else ran or the work is over.
    fn close(&mut self) {
        self.pause = None;
        if let Some(open) = self.open.take() {
            match open.interval.length_ns() >= self.least_ns {
                true => self.all.push(open),
                false => self.pauses.truncate(open.pauses.start as usize),
            }
        }
    }
}

/// A sweep over the starts and ends of work, with the work that runs in between.
struct Sweep {
    /// The ends and kernel numbers of running work, the earliest end first.
    running: BinaryHeap<Reverse<(i64, u32)>>,
    /// The number of running dispatches by kernel; the last number counts all other work.
    counts: Vec<u32>,
    /// For each kernel, the start of the first of its running dispatches.
    since_ns: Vec<i64>,
    /// The number of different kernels that run.
    distinct: u32,
    /// The time up to which everything has been counted.
    now_ns: i64,
    found: Stretches,
}

impl Sweep {
    /// Adds work. The next piece starts at `next_ns`.
    #[inline]
    fn add(&mut self, interval: Interval, kernel: u32, next_ns: i64) {
        self.until(interval.start_ns);
        self.pass(interval.start_ns);
        if self.running.is_empty() && next_ns >= interval.end_ns {
            // Nothing runs beside most work.
            self.now_ns = interval.end_ns;
            match self.found.kernels.get_mut(kernel as usize) {
                Some(ran) => {
                    ran.ran_ns += interval.length_ns();
                    self.found.add_alone(kernel, interval);
                }
                None => self.found.close(),
            }
            return;
        }
        let count = &mut self.counts[kernel as usize];
        if *count == 0 {
            self.distinct += 1;
            self.since_ns[kernel as usize] = interval.start_ns;
        }
        *count += 1;
        self.running.push(Reverse((interval.end_ns, kernel)));
    }

    /// Ends the work that ends at `until_ns` or before.
    #[inline]
    fn until(&mut self, until_ns: i64) {
        while let Some(Reverse((end_ns, kernel))) = self.running.peek().copied() {
            if end_ns > until_ns {
                return;
            }
            self.pass(end_ns);
            self.running.pop();
            let kernel = kernel as usize;
            self.counts[kernel] -= 1;
            if self.counts[kernel] == 0 {
                self.distinct -= 1;
                if let Some(ran) = self.found.kernels.get_mut(kernel) {
                    ran.ran_ns += end_ns - self.since_ns[kernel];
                }
            }
        }
    }

    /// Counts the interval up to `to_ns` for what ran in it.
    #[inline]
    fn pass(&mut self, to_ns: i64) {
        let interval = Interval::new(self.now_ns, to_ns);
        if interval.is_empty() {
            return;
        }
        self.now_ns = to_ns;
        let sole = self.running.peek().map(|Reverse((_, kernel))| *kernel);
        match (self.distinct, sole) {
            (0, _) => self.found.add_pause(interval),
            (1, Some(kernel)) if (kernel as usize) < self.found.kernels.len() => {
                self.found.add_alone(kernel, interval);
            }
            _ => self.found.close(),
        }
    }
}
