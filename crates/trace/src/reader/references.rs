//! Do the ids in a trace lead anywhere?

use super::Selection;
use crate::lookup::IdIndex;
use crate::tables::*;
use crate::{Diagnostic, Trace};

/// Reports ids that the trace does not know. Tables that were not selected are not looked into.
pub(super) fn check(trace: &Trace, selection: &Selection, diagnostics: &mut Vec<Diagnostic>) {
    let t = &trace.tables;
    let m = &trace.manifest;
    let ids = |ids: Vec<u32>| Some(IdIndex::new(&ids));
    let processes = ids(m.processes.iter().map(|p| p.id).collect());
    let devices = ids(m.devices.iter().map(|d| d.id).collect());
    let queues = ids(m.queues.iter().map(|q| q.id).collect());
    let kernels = index::<Kernels, _>(selection, &t.kernels.id);
    let labels = index::<Labels, _>(selection, &t.labels.id);
    let buffers = index::<Buffers, _>(selection, &t.buffers.id);
    let bindings = index::<Bindings, _>(selection, &t.bindings.id);
    let allocations = index::<Memory, _>(selection, &t.memory.allocation);
    // A trace that says that it lacks submissions is not odd for it.
    let lost = m.losses.iter().any(|loss| loss.what == "submissions");
    let submissions = index::<Submissions, _>(selection, &t.submissions.id).filter(|_| !lost);
    let command_buffers = index::<CommandBuffers, _>(selection, &t.command_buffers.id);

    macro_rules! check {
        ($($table:ident { $($column:ident -> $known:ident,)+ })+) => {$($(
            let values = t.$table.$column.iter();
            if let Some((rows, example)) = unknown(values.map(|id| id.id()), $known.as_ref()) {
                diagnostics.push(Diagnostic::UnknownId {
                    table: stringify!($table),
                    column: stringify!($column),
                    rows,
                    example,
                });
            }
        )+)+};
    }
    check! {
        dispatches {
            command_buffer -> command_buffers,
            queue -> queues,
            kernel -> kernels,
            bindings -> bindings,
            label -> labels,
            submission -> submissions,
        }
        command_buffers {
            process -> processes,
            queue -> queues,
            submission -> submissions,
            label -> labels,
        }
        submissions { process -> processes, queue -> queues, }
        dependencies { submission -> submissions, waits_for -> submissions, }
        transfers {
            command_buffer -> command_buffers,
            queue -> queues,
            source -> buffers,
            destination -> buffers,
            label -> labels,
            submission -> submissions,
        }
        opaque_work {
            command_buffer -> command_buffers,
            queue -> queues,
            label -> labels,
            submission -> submissions,
        }
        barriers { command_buffer -> command_buffers, }
        host_calls { process -> processes, queue -> queues, }
        markers {
            process -> processes,
            label -> labels,
            queue -> queues,
            command_buffer -> command_buffers,
        }
        labels { parent -> labels, }
        memory { process -> processes, device -> devices, }
        buffers { process -> processes, device -> devices, allocation -> allocations, }
        bindings { buffer -> buffers, }
        kernels { process -> processes, }
    }
}

fn index<T: Table, I: Copy + Into<u64>>(selection: &Selection, ids: &[I]) -> Option<IdIndex> {
    selection.has_table(T::NAME).then(|| IdIndex::new(ids))
}

/// A column's value as an id, if it is there.
trait Id {
    fn id(&self) -> Option<u64>;
}

impl Id for u32 {
    fn id(&self) -> Option<u64> {
        Some(u64::from(*self))
    }
}

impl Id for u64 {
    fn id(&self) -> Option<u64> {
        Some(*self)
    }
}

impl<I: Id> Id for Option<I> {
    fn id(&self) -> Option<u64> {
        self.as_ref().and_then(Id::id)
    }
}

/// How many ids are not known, and the first of them.
fn unknown(
    ids: impl Iterator<Item = Option<u64>>,
    known: Option<&IdIndex>,
) -> Option<(usize, u64)> {
    let known = known?;
    let mut found: Option<(usize, u64)> = None;
    // Neighbours are often the same.
    let mut last_known = None;
    for id in ids.flatten() {
        if last_known == Some(id) {
            continue;
        }
        if known.get(id).is_some() {
            last_known = Some(id);
        } else {
            found.get_or_insert((0, id)).0 += 1;
        }
    }
    found
}
