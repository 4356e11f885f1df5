//! Computes the tables `device_activity` and `process_activity`: how long the work of each device and process ran.
//! Time in which several pieces of work run counts once, for which the work of a trace must be sorted; doing that in
//! SQL would take longer.

use crate::computed::ComputedDefinition;
use crate::library::Library;
use crate::schema::{ColumnFacts, own_columns};
use crate::source::Source;
use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use gapscope_timeline::intervals::{Interval, union_length_ns};
use gapscope_timeline::vocabulary::Gpus;
use gapscope_trace::ids::QueueId;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::panics::guarded;
use gapscope_trace::tables::{CommandBuffers, Dispatches, OpaqueWork, Transfers};
use gapscope_trace::{Selection, Trace};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Returns the columns that both tables have besides those of their owner.
fn figures() -> Vec<ColumnFacts> {
    own_columns! {
        pieces: UInt64, "Pieces of work with known times: dispatches, transfers and opaque work; command buffers where only they were timed.";
        start_ns: Int64, "When the first of them started.";
        end_ns: Int64, "When the last of them ended.";
        work_ns: Int64, "The sum of their times; of work that overlaps each counts.";
        busy_ns: Int64, "Time in which at least one of them ran.";
    }
}

/// Defines the table of physical devices, however many processes used them.
pub(crate) fn device_table() -> ComputedDefinition {
    definition(
        "device_activity",
        "How long each physical device ran something, between its first and its last work. Computed when asked for.",
        own_columns! {
            device: UInt32, "Id of the device; where several processes used it, the first id.";
            device_name: Utf8View, "Name of the device.";
        },
        |library, source| {
            let gpus = Gpus::new(&source.manifest);
            let activity = Activity::read(library, source, |queue| gpus.of_queue(queue));
            let worked = || activity.0.keys().copied();
            let ids = worked().map(|gpu| gpus.devices(gpu).first().map(|id| id.0));
            let names = worked().map(|gpu| gpus.name(gpu));
            let mut arrays: Vec<ArrayRef> = vec![
                Arc::new(UInt32Array::from_iter(ids)),
                Arc::new(StringViewArray::from_iter_values(names)),
            ];
            arrays.extend(activity.figures());
            arrays
        },
    )
}

/// Defines the table of processes.
pub(crate) fn process_table() -> ComputedDefinition {
    definition(
        "process_activity",
        "How long the GPU work of each process ran, on whatever devices. Computed when asked for.",
        own_columns! { process: UInt32, "Id of the process."; },
        |library, source| {
            let activity = Activity::read(library, source, |queue| {
                Some(source.manifest.device_of_queue(queue)?.process)
            });
            let ids = UInt32Array::from_iter_values(activity.0.keys().map(|id| id.0));
            let mut arrays: Vec<ArrayRef> = vec![Arc::new(ids)];
            arrays.extend(activity.figures());
            arrays
        },
    )
}

/// Defines a table of the owner's `columns` and the common figures; `rows` computes both for a trace.
fn definition(
    name: &'static str,
    meaning: &'static str,
    mut columns: Vec<ColumnFacts>,
    rows: fn(&Library, &Source) -> Vec<ArrayRef>,
) -> ComputedDefinition {
    columns.extend(figures());
    ComputedDefinition {
        name,
        meaning,
        columns,
        rows,
    }
}

/// The intervals of work by owner, a device or a process.
struct Activity<K>(BTreeMap<K, Vec<Interval>>);

/// Selects the times of all work, and those of command buffers where only these were timed.
fn selection(mode: SamplingMode) -> Selection {
    const TIMES: [&str; 3] = ["queue", "start_ns", "duration_ns"];
    let selection = Selection::manifest()
        .columns::<Dispatches>(&TIMES)
        .columns::<Transfers>(&TIMES)
        .columns::<OpaqueWork>(&TIMES)
        .unchecked();
    match mode {
        SamplingMode::CommandBuffer => selection.columns::<CommandBuffers>(&TIMES),
        _ => selection,
    }
}

impl<K: Copy + Ord> Activity<K> {
    /// Reads the work of a trace; `owner` returns the device or process of a queue. Problems are reported as remarks.
    fn read(
        library: &Library,
        source: &Source,
        owner: impl Fn(QueueId) -> Option<K>,
    ) -> Activity<K> {
        let selection = selection(source.manifest.sampling_mode);
        let works = library.compute(source, &selection, "rows", |trace| {
            guarded(|| works(trace, owner)).unwrap_or_else(|panic| {
                library.remark(format!("{} is damaged ({panic})", source.name));
                BTreeMap::new()
            })
        });
        Activity(works)
    }

    /// Returns the arrays of the columns that the function `figures` lists, a row for each owner.
    fn figures(&self) -> Vec<ArrayRef> {
        let each = |figure: fn(&[Interval]) -> i64| {
            let figures = self.0.values().map(|works| figure(works));
            Arc::new(Int64Array::from_iter_values(figures))
        };
        let pieces = self.0.values().map(|works| works.len() as u64);
        vec![
            Arc::new(UInt64Array::from_iter_values(pieces)),
            each(|works| works.first().map_or(0, |first| first.start_ns)),
            each(|works| works.iter().map(|work| work.end_ns).max().unwrap_or(0)),
            each(|works| {
                let lengths = works.iter().map(|work| work.length_ns());
                lengths.fold(0, i64::saturating_add)
            }),
            each(|works| union_length_ns(works.iter().copied())),
        ]
    }
}

/// Returns the times of all work by owner, in the order of their starts. Work of a queue without owner is left out.
fn works<K: Copy + Ord>(
    trace: &Trace,
    owner: impl Fn(QueueId) -> Option<K>,
) -> BTreeMap<K, Vec<Interval>> {
    let mut owners: HashMap<QueueId, Option<K>> = HashMap::new();
    let mut works: BTreeMap<K, Vec<Interval>> = BTreeMap::new();
    macro_rules! add {
        ($($table:ident),+) => {$(
            let table = &trace.tables.$table;
            let times = table.start_ns.iter().zip(&table.duration_ns);
            let mut rows = table.queue.iter().zip(times).peekable();
            // Rows of one queue mostly follow each other.
            while let Some((queue, _)) = rows.peek() {
                let queue = **queue;
                let owner = owners.entry(queue).or_insert_with(|| owner(queue));
                let mut mine = owner.map(|owner| works.entry(owner).or_default());
                while let Some((_, (start_ns, duration_ns))) = rows.next_if(|(next, _)| **next == queue) {
                    if let Some(mine) = &mut mine {
                        mine.extend(Interval::from_row(start_ns, duration_ns));
                    }
                }
            }
        )+};
    }
    add!(dispatches, transfers, opaque_work, command_buffers);
    works.retain(|_, works| !works.is_empty());
    for works in works.values_mut() {
        // A stable sort is fast here because long stretches are already in order.
        works.sort_by_key(|interval| interval.start_ns);
    }
    works
}
