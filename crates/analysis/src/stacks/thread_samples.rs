//! Indexes the stack samples of a trace by host thread, in order of time. Samples are of three kinds: taken at
//! regular times, by hooks at calls of a thread, or of workers (processes such as data loaders, only sampled).

use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::tables::{SampleSource, Samples};
use std::collections::{HashMap, HashSet};

/// The rows of the table `samples` by thread, each list in order of time.
#[derive(Debug)]
pub struct ThreadSamples<'a> {
    /// The samples to whose rows all lists here refer.
    pub table: &'a Samples,
    /// The rows of samples taken at regular times.
    sampled: HashMap<HostThread, Vec<u32>>,
    /// The rows of samples that hooks took at calls of a thread.
    exact: HashMap<HostThread, Vec<u32>>,
    /// The rows of samples of workers, for all of their threads together.
    workers: Vec<u32>,
}

impl<'a> ThreadSamples<'a> {
    pub fn new(table: &'a Samples, manifest: &Manifest) -> ThreadSamples<'a> {
        let only_sampled: HashSet<ProcessId> = (manifest.processes.iter())
            .filter(|process| process.is_only_sampled())
            .map(|process| process.id)
            .collect();
        let mut threads = ThreadSamples {
            table,
            sampled: HashMap::new(),
            exact: HashMap::new(),
            workers: Vec::new(),
        };
        for (row, source) in table.source.iter().enumerate() {
            let thread = HostThread {
                process: table.process[row],
                thread: table.thread[row],
            };
            let rows = match source {
                _ if only_sampled.contains(&thread.process) => &mut threads.workers,
                SampleSource::Sampled => threads.sampled.entry(thread).or_default(),
                _ => threads.exact.entry(thread).or_default(),
            };
            rows.push(row as u32);
        }
        let all = threads
            .sampled
            .values_mut()
            .chain(threads.exact.values_mut());
        for rows in all.chain([&mut threads.workers]) {
            // The rows are mostly sorted already.
            rows.sort_by_key(|row| table.time_ns[*row as usize]);
        }
        threads
    }

    /// Returns how many samples were taken at regular times, without those of workers.
    pub fn taken(&self) -> u64 {
        self.sampled.values().map(|rows| rows.len() as u64).sum()
    }

    /// Returns those of `rows`, which are in order of time, that lie in `interval` without its end.
    fn inside<'r>(&self, rows: &'r [u32], interval: Interval) -> &'r [u32] {
        let before = |ns: i64| rows.partition_point(|row| self.table.time_ns[*row as usize] < ns);
        let (from, to) = (before(interval.start_ns), before(interval.end_ns));
        &rows[from..to.max(from)]
    }

    /// Returns the rows of a thread's samples in an interval.
    pub fn sampled(&self, thread: HostThread, interval: Interval) -> &[u32] {
        let rows = self.sampled.get(&thread);
        rows.map_or(&[], |rows| self.inside(rows, interval))
    }

    /// Returns the rows of samples that a hook took of a thread in an interval. The end is included, because a wait
    /// ends with such a sample.
    pub fn exact(&self, thread: HostThread, interval: Interval) -> &[u32] {
        let closed = Interval::new(interval.start_ns, interval.end_ns.saturating_add(1));
        let rows = self.exact.get(&thread);
        rows.map_or(&[], |rows| self.inside(rows, closed))
    }

    /// Returns the other sampled threads of the process of `thread`, each with the rows of its samples in an interval.
    pub fn others(
        &self,
        thread: HostThread,
        interval: Interval,
    ) -> impl Iterator<Item = (HostThread, &[u32])> {
        let all = self.sampled.iter();
        let others =
            all.filter(move |(other, _)| other.process == thread.process && **other != thread);
        others.map(move |(other, rows)| (*other, self.inside(rows, interval)))
    }

    /// Returns the rows of workers' samples in an interval.
    pub fn workers(&self, interval: Interval) -> &[u32] {
        self.inside(&self.workers, interval)
    }

    /// Returns the row of the thread's sample that is nearest to a time, or `None` where there is none within
    /// `within_ns`.
    pub fn nearest(&self, thread: HostThread, at_ns: i64, within_ns: i64) -> Option<u32> {
        let reach = Interval::new(
            at_ns.saturating_sub(within_ns),
            at_ns.saturating_add(within_ns),
        );
        let rows = self.sampled(thread, reach);
        let distance = |row: &&u32| self.table.time_ns[**row as usize].abs_diff(at_ns);
        rows.iter().min_by_key(distance).copied()
    }
}
