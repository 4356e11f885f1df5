//! Repeats a trace in time, as if the same program had run longer. Real work is less regular than made-up work, so
//! such traces show the speed on real work at any size.

use crate::ids::{AllocationId, CommandBufferId, SubmissionId};
use crate::optional::Optional;
use crate::tables::*;
use crate::{Error, Selection, Tables, TraceWriter, for_each_table, read};
use std::path::Path;

/// The time between the end of the trace and the start of its next repetition.
const PAUSE_NS: i64 = 1_000_000;

/// Writes the trace `from` into the folder `to`, which must not exist, `times` times over, one repetition after the
/// other. Submissions, command buffers and allocations have new ids in each; kernels, labels, counters, stacks and the
/// like are written once.
///
/// # Errors
/// `from` cannot be read, `to` exists, or the system refuses.
pub fn repeat(from: &Path, to: &Path, times: u32) -> Result<(), Error> {
    let (trace, _) = read(from, &Selection::all())?;
    let (mut tables, mut manifest) = (trace.tables, trace.manifest);
    let step = Step::new(&tables, manifest.end_ns - manifest.start_ns + PAUSE_NS);
    let mut writer = TraceWriter::create(to)?;
    for repetition in 0..times {
        let mut copy = tables.clone();
        macro_rules! append {
            ($($field:ident: $table:ty,)+) => {$(
                writer.tables_mut().$field.append(&mut copy.$field);
            )+};
        }
        for_each_table!(append);
        writer.flush_full()?;
        if repetition == 0 {
            tables = repeated(tables);
        }
        step.shift(&mut tables);
    }
    let longer_ns = step.time_ns * i64::from(times.saturating_sub(1));
    manifest.end_ns += longer_ns;
    for process in &mut manifest.processes {
        process.end_ns = process.end_ns.map(|end_ns| end_ns + longer_ns);
    }
    writer.finish(&manifest)
}

/// Returns the tables whose rows each repetition has: those that happen at a time.
fn repeated(tables: Tables) -> Tables {
    Tables {
        dispatches: tables.dispatches,
        command_buffers: tables.command_buffers,
        submissions: tables.submissions,
        dependencies: tables.dependencies,
        transfers: tables.transfers,
        opaque_work: tables.opaque_work,
        barriers: tables.barriers,
        host_calls: tables.host_calls,
        markers: tables.markers,
        memory: tables.memory,
        counter_values: tables.counter_values,
        samples: tables.samples,
        ..Tables::default()
    }
}

/// By how much times and ids grow from one repetition to the next.
struct Step {
    time_ns: i64,
    submissions: u64,
    command_buffers: u64,
    allocations: u32,
}

impl Step {
    /// Returns the step for tables that last `time_ns`.
    fn new(tables: &Tables, time_ns: i64) -> Step {
        let submissions = tables.submissions.id.iter().map(|id| id.0).max();
        let command_buffers = tables.command_buffers.id.iter().map(|id| id.0).max();
        let allocations = tables.memory.allocation.iter().map(|id| id.0).max();
        Step {
            time_ns,
            submissions: submissions.map_or(1, |id| id + 1),
            command_buffers: command_buffers.map_or(1, |id| id + 1),
            allocations: allocations.map_or(1, |id| id + 1),
        }
    }

    /// Moves all rows to the next repetition.
    fn shift(&self, tables: &mut Tables) {
        let submission = |id: &mut SubmissionId| {
            if *id != SubmissionId::UNKNOWN {
                id.0 += self.submissions;
            }
        };
        let command_buffer = |id: &mut CommandBufferId| id.0 += self.command_buffers;
        let allocation = |id: &mut AllocationId| id.0 += self.allocations;
        let time = |ns: &mut i64| *ns += self.time_ns;
        let times = |ns: &mut Optional<i64>| ns.values_mut().iter_mut().for_each(time);
        macro_rules! work {
            ($($table:ident),+) => {$(
                tables.$table.command_buffer.values_mut().iter_mut().for_each(command_buffer);
                tables.$table.submission.values_mut().iter_mut().for_each(submission);
                times(&mut tables.$table.start_ns);
            )+};
        }
        work!(dispatches, transfers, opaque_work);
        let rows = &mut tables.command_buffers;
        rows.id.iter_mut().for_each(command_buffer);
        rows.submission.iter_mut().for_each(submission);
        times(&mut rows.start_ns);
        times(&mut rows.seen_ns);
        let rows = &mut tables.submissions;
        rows.id.iter_mut().for_each(submission);
        rows.start_ns.iter_mut().for_each(time);
        let rows = &mut tables.dependencies;
        rows.submission.iter_mut().for_each(submission);
        rows.waits_for.values_mut().iter_mut().for_each(submission);
        times(&mut rows.host_signal_ns);
        tables
            .barriers
            .command_buffer
            .iter_mut()
            .for_each(command_buffer);
        let rows = &mut tables.host_calls;
        rows.start_ns.iter_mut().for_each(time);
        rows.waits_for.values_mut().iter_mut().for_each(submission);
        let rows = &mut tables.markers;
        rows.command_buffer
            .values_mut()
            .iter_mut()
            .for_each(command_buffer);
        times(&mut rows.start_ns);
        let rows = &mut tables.memory;
        rows.at_ns.iter_mut().for_each(time);
        rows.allocation.iter_mut().for_each(allocation);
        tables.counter_values.start_ns.iter_mut().for_each(time);
        tables.samples.time_ns.iter_mut().for_each(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

    #[test]
    fn repetitions_follow_each_other_with_ids_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let [once, thrice] = ["once", "thrice"].map(|name| folder.path().join(name));
        let small = Synthetic {
            dispatches: 10_000,
            ..Synthetic::default()
        };
        small.write(&once).unwrap();
        repeat(&once, &thrice, 3).unwrap();
        let (first, _) = read(&once, &Selection::all()).unwrap();
        let (all, diagnostics) = read(&thrice, &Selection::all()).unwrap();
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let (one, three) = (&first.tables, &all.tables);
        assert_eq!(three.dispatches.len(), 3 * one.dispatches.len());
        assert_eq!(three.kernels, one.kernels);
        let mut ids = three.submissions.id.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3 * one.submissions.len());
        let length_ns = first.manifest.end_ns - first.manifest.start_ns + PAUSE_NS;
        assert_eq!(all.manifest.end_ns, first.manifest.end_ns + 2 * length_ns);
        let last = 3 * one.dispatches.len() - 1;
        let start_ns = one.dispatches.start_ns.at(one.dispatches.len() - 1);
        let later_ns = start_ns.map(|ns| ns + 2 * length_ns);
        assert_eq!(three.dispatches.start_ns.at(last), later_ns);
    }
}
