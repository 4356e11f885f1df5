//! Checks that the ids in a trace lead somewhere: that rows name only things which the manifest or another table
//! defines. The output is one diagnostic for each column with unknown ids.

use super::selection::Selection;
use crate::ids::*;
use crate::lookup::IdIndex;
use crate::parallel;
use crate::tables::*;
use crate::{Diagnostic, Trace};
use gapscope_model::LossKind;

/// The ids that a trace defines; absent where they are not checked.
pub(super) struct KnownIds {
    processes: Option<IdIndex<ProcessId>>,
    devices: Option<IdIndex<DeviceId>>,
    queues: Option<IdIndex<QueueId>>,
    kernels: Option<IdIndex<KernelId>>,
    labels: Option<IdIndex<LabelId>>,
    buffers: Option<IdIndex<BufferId>>,
    bindings: Option<IdIndex<BindingSetId>>,
    allocations: Option<IdIndex<AllocationId>>,
    submissions: Option<IdIndex<SubmissionId>>,
    command_buffers: Option<IdIndex<CommandBufferId>>,
    counters: Option<IdIndex<CounterId>>,
    stacks: Option<IdIndex<StackId>>,
    frames: Option<IdIndex<FrameId>>,
}

impl KnownIds {
    /// Indexes the ids of a trace. Tables that were not selected are not indexed.
    pub fn new(trace: &Trace, selection: &Selection) -> KnownIds {
        let t = &trace.tables;
        let m = &trace.manifest;
        let checked = selection.is_checked();
        fn ids<I: Id>(checked: bool, ids: impl Iterator<Item = I>) -> Option<IdIndex<I>> {
            checked.then(|| IdIndex::new(&ids.collect::<Vec<I>>()))
        }
        // A trace that admits lost submissions may refer to them.
        let lost = m
            .losses
            .iter()
            .any(|loss| loss.kind == LossKind::Submissions);
        KnownIds {
            processes: ids(checked, m.processes.iter().map(|p| p.id)),
            devices: ids(checked, m.devices.iter().map(|d| d.id)),
            queues: ids(checked, m.queues.iter().map(|q| q.id)),
            kernels: index::<Kernels, _>(selection, &t.kernels.id),
            labels: index::<Labels, _>(selection, &t.labels.id),
            buffers: index::<Buffers, _>(selection, &t.buffers.id),
            bindings: index::<Bindings, _>(selection, &t.bindings.id),
            allocations: index::<Memory, _>(selection, &t.memory.allocation),
            submissions: match lost {
                true => None,
                false => index::<Submissions, _>(selection, &t.submissions.id),
            },
            command_buffers: index::<CommandBuffers, _>(selection, &t.command_buffers.id),
            counters: index::<Counters, _>(selection, &t.counters.id),
            stacks: index::<Stacks, _>(selection, &t.stacks.id),
            frames: index::<Frames, _>(selection, &t.frames.id),
        }
    }

    /// Begins the check of dispatches, still without unknown ids.
    pub fn dispatches(&self) -> DispatchReferences<'_> {
        DispatchReferences {
            known: self,
            found: [None; 6],
        }
    }
}

/// Returns the index of a table's ids; `None` where the selection leaves the table out or wants no checks.
fn index<T: Table, I: Id>(selection: &Selection, ids: &[I]) -> Option<IdIndex<I>> {
    (selection.is_checked() && selection.has_table(T::NAME)).then(|| IdIndex::new(ids))
}

/// The id that stands for none in columns that always have one, such as the submission of a command buffer.
const NO_ID: u64 = u64::MAX;

/// The number of unknown ids, and the first of them.
type UnknownIds = Option<(usize, u64)>;

/// The unknown ids of dispatches, which come in pieces.
pub(super) struct DispatchReferences<'a> {
    known: &'a KnownIds,
    /// By column, in the order of [`Self::COLUMNS`].
    found: [UnknownIds; 6],
}

impl DispatchReferences<'_> {
    /// The columns of dispatches that hold ids.
    const COLUMNS: [&'static str; 6] = [
        "command_buffer",
        "queue",
        "kernel",
        "bindings",
        "label",
        "submission",
    ];

    /// Adds the unknown ids of the next piece.
    pub fn check(&mut self, t: &Dispatches) {
        let k = self.known;
        let found = [
            unknown(&t.command_buffer, &k.command_buffers),
            unknown(&t.queue, &k.queues),
            unknown(&t.kernel, &k.kernels),
            unknown(&t.bindings, &k.bindings),
            unknown(&t.label, &k.labels),
            unknown(&t.submission, &k.submissions),
        ];
        for (all, more) in self.found.iter_mut().zip(found) {
            *all = match (*all, more) {
                (Some((rows, example)), Some((more, _))) => Some((rows + more, example)),
                (all, more) => all.or(more),
            };
        }
    }

    /// Returns a diagnostic for each column with unknown ids.
    pub fn diagnostics(self) -> Vec<Diagnostic> {
        let found = Self::COLUMNS.into_iter().zip(self.found);
        let found = found.filter_map(|(column, found)| diagnostic("dispatches", column, found));
        found.collect()
    }
}

/// Reports ids that the trace does not define.
pub(super) fn check(trace: &Trace, selection: &Selection, diagnostics: &mut Vec<Diagnostic>) {
    let t = &trace.tables;
    let k = KnownIds::new(trace, selection);
    let mut checks: Vec<Box<dyn Fn() -> Option<Diagnostic> + Send + '_>> = Vec::new();
    macro_rules! check {
        ($($table:ident { $($column:ident -> $known:ident,)+ })+) => {$($(
            checks.push(Box::new(|| {
                let found = unknown(&t.$table.$column, &k.$known);
                diagnostic(stringify!($table), stringify!($column), found)
            }));
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
        host_calls { process -> processes, queue -> queues, waits_for -> submissions, }
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
        counters { device -> devices, queue -> queues, }
        counter_values { counter -> counters, }
        samples { process -> processes, stack -> stacks, }
        stacks { parent -> stacks, frame -> frames, }
        allocator_memory { process -> processes, device -> devices, label -> labels, stack -> stacks, }
        graph_nodes { process -> processes, label -> labels, }
        kernel_metrics { kernel -> kernels, submission -> submissions, }
        pc_samples { process -> processes, device -> devices, kernel -> kernels, }
    }
    diagnostics.extend(
        parallel::each(checks, |check| check())
            .into_iter()
            .flatten(),
    );
}

/// Returns the diagnostic for a column's unknown ids; `None` where there are none.
fn diagnostic(table: &'static str, column: &'static str, found: UnknownIds) -> Option<Diagnostic> {
    let (rows, example) = found?;
    Some(Diagnostic::UnknownId {
        table,
        column,
        rows,
        example,
    })
}

/// A column's value as an id, if there is one.
trait OptionalId<I> {
    fn id(self) -> Option<I>;
}

impl<I: Id> OptionalId<I> for &I {
    fn id(self) -> Option<I> {
        Some(*self)
    }
}

impl<I: Id> OptionalId<I> for Option<I> {
    fn id(self) -> Option<I> {
        self
    }
}

/// Returns the unknown ones among a column's ids; `None` where there are none or the ids are not checked.
fn unknown<I: Id, V: OptionalId<I>>(
    ids: impl IntoIterator<Item = V>,
    known: &Option<IdIndex<I>>,
) -> UnknownIds {
    let known = known.as_ref()?;
    let mut found: UnknownIds = None;
    // Neighbouring ids are often the same.
    let mut last_known = None;
    for id in ids.into_iter().filter_map(OptionalId::id) {
        if last_known == Some(id) {
            continue;
        }
        if known.get(id).is_some() {
            last_known = Some(id);
        } else if id.number() != NO_ID {
            found.get_or_insert((0, id.number())).0 += 1;
        }
    }
    found
}
