//! Rebases the times of a trace (subtracts an origin from them) so that its recording starts at 0: the page's numbers
//! are exact up to 2^53 only, which a machine's monotonic clock passes after 104 days.

use crate::chunks::CHUNK_ROWS;
use gapscope_trace::optional::Optional;
use gapscope_trace::parallel::each;
use gapscope_trace::{Tables, Trace};

/// The columns that hold times, not durations. A test compares this list with the tables.
macro_rules! for_each_time {
    ($callback:ident, $tables:expr) => {
        $callback!($tables, {
            dispatches: start_ns;
            command_buffers: start_ns, seen_ns;
            submissions: start_ns;
            dependencies: host_signal_ns;
            transfers: start_ns;
            opaque_work: start_ns;
            host_calls: start_ns;
            markers: start_ns;
            memory: at_ns;
            counter_values: start_ns;
            samples: time_ns;
        })
    };
}

/// Rebases the times of `tables` to `origin_ns`.
pub fn shift_tables(tables: &mut Tables, origin_ns: i64) {
    let mut chunks: Vec<&mut [i64]> = Vec::new();
    macro_rules! collect {
        ($tables:expr, { $($table:ident: $($column:ident),+;)+ }) => {$($(
            chunks.extend($tables.$table.$column.times().chunks_mut(CHUNK_ROWS));
        )+)+};
    }
    for_each_time!(collect, tables);
    each(chunks, |times| {
        times.iter_mut().for_each(|time| time.shift(origin_ns))
    });
}

/// A column of times, with or without absent ones.
trait Times {
    /// Returns the stored times; those of absent ones are meaningless.
    fn times(&mut self) -> &mut [i64];
}

impl Times for Vec<i64> {
    fn times(&mut self) -> &mut [i64] {
        self
    }
}

impl Times for Optional<i64> {
    fn times(&mut self) -> &mut [i64] {
        self.values_mut()
    }
}

/// Rebases all times of a trace to `origin_ns`.
pub fn shift(trace: &mut Trace, origin_ns: i64) {
    shift_tables(&mut trace.tables, origin_ns);
    let manifest = &mut trace.manifest;
    manifest.start_ns.shift(origin_ns);
    manifest.end_ns.shift(origin_ns);
    for process in &mut manifest.processes {
        process.start_ns.shift(origin_ns);
        process.end_ns.shift(origin_ns);
    }
}

/// A time, or an absent one, that can be rebased.
trait Time {
    fn shift(&mut self, origin_ns: i64);
}

impl Time for i64 {
    #[inline]
    fn shift(&mut self, origin_ns: i64) {
        *self = self.saturating_sub(origin_ns);
    }
}

impl Time for Option<i64> {
    #[inline]
    fn shift(&mut self, origin_ns: i64) {
        if let Some(time) = self {
            time.shift(origin_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::tables::*;

    /// Columns in nanoseconds that are lengths, not times.
    const LENGTHS: &[&str] = &["duration_ns", "busy_ns", "period_ns"];

    #[test]
    fn every_time_column_is_moved() {
        let mut moved = Vec::new();
        macro_rules! name {
            ($tables:expr, { $($table:ident: $($column:ident),+;)+ }) => {
                $($(moved.push((stringify!($table), stringify!($column)));)+)+
            };
        }
        for_each_time!(name, ());
        let mut times = Vec::new();
        macro_rules! find {
            ($($table:ty),+) => {$(
                for column in <$table>::columns() {
                    if column.name.ends_with("_ns") && !LENGTHS.contains(&column.name) {
                        times.push((<$table>::NAME, column.name));
                    }
                }
            )+};
        }
        find!(
            Dispatches,
            CommandBuffers,
            Submissions,
            Dependencies,
            Transfers,
            OpaqueWork,
            Barriers,
            HostCalls,
            Markers,
            Labels,
            Memory,
            Buffers,
            Bindings,
            Kernels,
            Counters,
            CounterValues,
            Samples,
            Stacks,
            Frames
        );
        moved.sort_unstable();
        times.sort_unstable();
        assert_eq!(moved, times);
    }

    #[test]
    fn times_count_from_the_origin_and_lengths_stay() {
        let text = "manifest start_ns=1000 end_ns=5000
            process id=1 start_ns=1000
            dispatch queue=1 kernel=1 start_ns=1500 duration_ns=7
            host_call process=1 thread=1 start_ns=1200 duration_ns=30";
        let mut trace = Trace::from_text(text).unwrap();
        shift(&mut trace, 1000);
        assert_eq!((trace.manifest.start_ns, trace.manifest.end_ns), (0, 4000));
        assert_eq!(trace.tables.dispatches.row(0).start_ns, Some(500));
        assert_eq!(trace.tables.dispatches.row(0).duration_ns, Some(7));
        assert_eq!(
            (
                trace.tables.host_calls.row(0).start_ns,
                trace.tables.host_calls.row(0).busy_ns
            ),
            (200, 30)
        );
    }
}
