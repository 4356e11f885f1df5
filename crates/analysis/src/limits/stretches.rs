//! Stretches of a GPU's time in which only dispatches of one kernel ran, one after the other or at once.

use crate::intervals::Interval;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// From the start of a dispatch to the end of one of the same kernel, with nothing of another kind in between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stretch {
    pub(super) interval: Interval,
    /// Number of the kernel.
    pub(super) kernel: u32,
    /// The pauses in it.
    idles: Range<u32>,
}

/// How long a kernel ran on a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Ran {
    /// At least one of its dispatches did.
    pub(super) ran_ns: i64,
    /// And nothing else.
    pub(super) alone_ns: i64,
}

/// The stretches of a GPU that are long enough to hold a sample, in order of time.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    pub(super) all: Vec<Stretch>,
    idles: Vec<Interval>,
    /// By number of the kernel.
    pub(super) kernels: Vec<Ran>,
    least_ns: i64,
    open: Option<Stretch>,
    /// Since when nothing has run, within the open stretch.
    idle: Option<Interval>,
}

impl Stretches {
    /// Of works in order of their start, each with the number of its kernel, below `kernels`; `kernels` itself stands for all
    /// other work. Stretches shorter than `least_ns` are left out.
    pub(super) fn of(
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
                kernels: vec![Ran::default(); kernels],
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

    /// How much of `part` of a stretch was pauses. `seen` pauses are over for good: parts are asked for in order of time.
    pub(super) fn idle_ns(&self, stretch: &Stretch, part: Interval, seen: &mut usize) -> i64 {
        *seen = (*seen).max(stretch.idles.start as usize);
        let end = stretch.idles.end as usize;
        while *seen < end && self.idles[*seen].end_ns <= part.start_ns {
            *seen += 1;
        }
        let left = self.idles.get(*seen..end).unwrap_or_default().iter();
        left.take_while(|idle| idle.start_ns < part.end_ns)
            .map(|idle| idle.intersection(part).length_ns())
            .sum()
    }

    /// From then to then only dispatches of `kernel` ran.
    fn alone(&mut self, kernel: u32, interval: Interval) {
        self.kernels[kernel as usize].alone_ns += interval.length_ns();
        match &mut self.open {
            Some(open) if open.kernel == kernel => {
                open.interval.end_ns = interval.end_ns;
                if let Some(idle) = self.idle.take() {
                    self.idles.push(idle);
                    open.idles.end += 1;
                }
            }
            _ => {
                self.close();
                let at = self.idles.len() as u32;
                self.open = Some(Stretch {
                    interval,
                    kernel,
                    idles: at..at,
                });
            }
        }
    }

    fn pause(&mut self, interval: Interval) {
        if self.open.is_some() {
            let idle = self.idle.get_or_insert(interval);
            idle.end_ns = interval.end_ns;
        }
    }

    /// Something else ran, or ends what there is.
    fn close(&mut self) {
        self.idle = None;
        if let Some(open) = self.open.take() {
            match open.interval.length_ns() >= self.least_ns {
                true => self.all.push(open),
                false => self.idles.truncate(open.idles.start as usize),
            }
        }
    }
}

/// What runs, from one start or end of work to the next.
struct Sweep {
    /// By end.
    running: BinaryHeap<Reverse<(i64, u32)>>,
    /// Dispatches that run, by kernel; the last is all other work.
    counts: Vec<u32>,
    /// When the first of them began.
    since_ns: Vec<i64>,
    /// Kernels that run.
    distinct: u32,
    now_ns: i64,
    found: Stretches,
}

impl Sweep {
    /// The next one starts at `next_ns`.
    #[inline]
    fn add(&mut self, interval: Interval, kernel: u32, next_ns: i64) {
        self.until(interval.start_ns);
        self.pass(interval.start_ns);
        if self.running.is_empty() && next_ns >= interval.end_ns {
            // Most work: nothing runs beside it.
            self.now_ns = interval.end_ns;
            match self.found.kernels.get_mut(kernel as usize) {
                Some(ran) => {
                    ran.ran_ns += interval.length_ns();
                    self.found.alone(kernel, interval);
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

    /// Ends what ends by then.
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

    /// Says what ran until then.
    #[inline]
    fn pass(&mut self, to_ns: i64) {
        let interval = Interval::new(self.now_ns, to_ns);
        if interval.is_empty() {
            return;
        }
        self.now_ns = to_ns;
        let sole = self.running.peek().map(|Reverse((_, kernel))| *kernel);
        match (self.distinct, sole) {
            (0, _) => self.found.pause(interval),
            (1, Some(kernel)) if (kernel as usize) < self.found.kernels.len() => {
                self.found.alone(kernel, interval);
            }
            _ => self.found.close(),
        }
    }
}
