//! Makes the details of one row that the page shows beside the timeline: its columns, and links to the rows that it
//! belongs to. A link leads to another row and names the relation between both: `source` and `destination` (buffers
//! of a transfer), `command-buffer`, `submission`, `submitted-by` (a host call), `waits-for` (a submission) and
//! `runs` (work).

use crate::lanes;
use crate::protocol::{Binding, Field, Link, OrMissing, Row, RowKernel, RowLabel, WorkLink};
use crate::snapshot::{Snapshot, WorkPlace};
use crate::texts::cut;
use crate::track::{DrawnTable, ThreadKey, TrackId, WorkColumns};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{BindingSetId, DeviceId, KernelId, LabelId, QueueId};
use gapscope_trace::tables::*;
use std::collections::BTreeMap;

/// The most links that are listed for one relation; `link_counts` counts all.
const MAX_LINKS: usize = 64;
/// The most bindings that are listed for a dispatch.
const MAX_BINDINGS: usize = 1000;

/// Tables whose rows have details; those with a track come first.
pub const TABLES: [&str; 11] = [
    "dispatches",
    "transfers",
    "opaque_work",
    "command_buffers",
    "host_calls",
    "markers",
    "submissions",
    "kernels",
    "labels",
    "buffers",
    "memory",
];

/// The context of a row: its name, times and label, and the rows that it belongs to.
#[derive(Debug, Default)]
struct RowContext {
    title: String,
    times: Option<Interval>,
    times_unknown_because: Option<String>,
    track: Option<TrackId>,
    label: Option<LabelId>,
    kernel: Option<KernelId>,
    queue: Option<QueueId>,
    device: Option<DeviceId>,
    thread: Option<ThreadKey>,
    bindings: Option<OrMissing<Vec<Binding>>>,
    links: Vec<Link>,
    /// The number of links, for relations with more than are listed.
    link_counts: BTreeMap<&'static str, usize>,
}

/// Returns the details of a row; `None` when the table has no such row.
pub fn details(snapshot: &Snapshot, table: &str, row: usize) -> Option<Row> {
    let tables = &snapshot.trace.tables;
    macro_rules! fields_of {
        ($($name:literal: $field:ident of $type:ty,)+) => {
            match table {
                $($name if row < tables.$field.len() => fields::<$type>(&tables.$field, row),)+
                _ => return None,
            }
        };
    }
    let fields = fields_of! {
        "dispatches": dispatches of Dispatches,
        "transfers": transfers of Transfers,
        "opaque_work": opaque_work of OpaqueWork,
        "command_buffers": command_buffers of CommandBuffers,
        "submissions": submissions of Submissions,
        "host_calls": host_calls of HostCalls,
        "markers": markers of Markers,
        "kernels": kernels of Kernels,
        "labels": labels of Labels,
        "buffers": buffers of Buffers,
        "memory": memory of Memory,
    };
    let around = around(snapshot, table, row);
    let manifest = &snapshot.trace.manifest;
    let device = (around.queue)
        .and_then(|queue| manifest.device_of_queue(queue))
        .or_else(|| manifest.device(around.device?));
    Some(Row {
        table: table.to_owned(),
        row,
        title: around.title,
        start_ns: around.times.map(|times| times.start_ns),
        duration_ns: around.times.map(Interval::length_ns),
        times_unknown_because: around.times_unknown_because,
        track: around.track.map(|track| track.to_string()),
        fields,
        label: around.label.map(|id| label(snapshot, id)),
        kernel: around.kernel.and_then(|id| kernel(snapshot, id)),
        queue: (around.queue).map(|queue| cut(&snapshot.vocabulary.queue(queue))),
        device: device.map(|device| cut(&device.name)),
        thread: (around.thread).map(|of| cut(&snapshot.vocabulary.thread(of.process, of.thread))),
        bindings: around.bindings,
        links: around.links,
        link_counts: around.link_counts,
        gap: None,
    })
}

/// Returns all columns of a row with their meanings; those without a value, too.
fn fields<T: Table>(table: &T, row: usize) -> Vec<Field> {
    let texts = T::row_to_text(&table.row(row));
    let mut texts = texts.into_iter().peekable();
    let columns = T::columns().into_iter();
    columns
        .map(|column| Field {
            name: column.name,
            value: texts
                .next_if(|(name, _)| *name == column.name)
                .map(|(_, text)| text),
            meaning: column.meaning.trim(),
        })
        .collect()
}

/// Returns the context of a row of any of [`TABLES`]; the row exists.
fn around(snapshot: &Snapshot, table: &str, row: usize) -> RowContext {
    let tables = &snapshot.trace.tables;
    match DrawnTable::from_name(table) {
        None | Some(DrawnTable::Submission) => {}
        Some(source) => return drawn(snapshot, source, row),
    }
    match table {
        "submissions" => {
            let t = &tables.submissions;
            let link = submission_link(snapshot, "submission", row).work;
            let mut around = RowContext {
                title: link.name,
                times: Interval::from_row(Some(t.start_ns[row]), Some(t.duration_ns[row])),
                track: is_launch(snapshot, row)
                    .then(|| DrawnTable::Submission.track(&snapshot.trace, row, &snapshot.whole)),
                queue: Some(t.queue[row]),
                thread: Some(ThreadKey {
                    process: t.process[row],
                    thread: t.thread.at(row),
                }),
                ..RowContext::default()
            };
            around.called_by(snapshot, row);
            around.waits_for(snapshot, row);
            around.runs(snapshot, std::iter::once(row));
            around
        }
        "kernels" => RowContext {
            title: kernel_name(snapshot, tables.kernels.id[row]),
            kernel: Some(tables.kernels.id[row]),
            ..RowContext::default()
        },
        "labels" => RowContext {
            title: tables.labels.text[row].to_string(),
            label: Some(tables.labels.id[row]),
            ..RowContext::default()
        },
        "buffers" => RowContext {
            title: buffer_name(snapshot, row),
            device: Some(tables.buffers.device[row]),
            ..RowContext::default()
        },
        _ => RowContext {
            title: tables.memory.event[row].as_str().to_owned(),
            times: Interval::from_row(Some(tables.memory.at_ns[row]), Some(0)),
            device: Some(tables.memory.device[row]),
            ..RowContext::default()
        },
    }
}

/// Returns the context of a row that is drawn, or would be if its times were known.
fn drawn(snapshot: &Snapshot, source: DrawnTable, row: usize) -> RowContext {
    let (trace, index) = (&snapshot.trace, snapshot.index());
    let tables = &trace.tables;
    let name = lanes::name(source, row, trace, &snapshot.texts);
    let times = source.times(trace, row);
    let mut around = RowContext {
        title: snapshot.texts.text(name).to_owned(),
        times,
        track: times.map(|_| source.track(trace, row, &snapshot.whole)),
        ..RowContext::default()
    };
    if let Some(work) = source.work(trace) {
        around.label = work.label.at(row);
        around.queue = Some(work.queue[row]);
        around.of_work(snapshot, &work, row);
    }
    match source {
        DrawnTable::Dispatch => {
            let t = &tables.dispatches;
            around.kernel = Some(t.kernel[row]);
            around.bindings = Some(bindings(snapshot, t.bindings.at(row)));
        }
        DrawnTable::Transfer => {
            let t = &tables.transfers;
            for (relation, buffer) in [
                ("source", t.source.at(row)),
                ("destination", t.destination.at(row)),
            ] {
                let buffer = buffer.and_then(|id| index.buffers.get(id));
                around.links.extend(buffer.map(|row| Link {
                    relation,
                    work: WorkLink {
                        table: "buffers",
                        row,
                        name: buffer_name(snapshot, row),
                        ..WorkLink::default()
                    },
                }));
            }
        }
        DrawnTable::Opaque | DrawnTable::Submission => {}
        DrawnTable::CommandBuffer => {
            let t = &tables.command_buffers;
            around.label = t.label.at(row);
            around.queue = Some(t.queue[row]);
            let submission = index.submissions.get(t.submission[row]);
            around.submitted_by(snapshot, submission);
            if let Some((source, row)) = index.first_work_of(row) {
                around.links.push(link(snapshot, "runs", source, row));
            }
        }
        DrawnTable::HostCall => {
            let t = &tables.host_calls;
            around.queue = t.queue.at(row);
            around.thread = Some(ThreadKey {
                process: t.process[row],
                thread: t.thread.at(row),
            });
            around.runs(snapshot, index.submissions_of(row));
        }
        DrawnTable::Marker => {
            let t = &tables.markers;
            around.label = Some(t.label[row]);
            around.queue = t.queue.at(row);
            around.thread = t.thread.at(row).map(|thread| ThreadKey {
                process: t.process[row],
                thread: Some(thread),
            });
            let id = t.command_buffer.at(row);
            if let Some(row) = id.and_then(|id| index.command_buffers.get(id)) {
                let link = link(snapshot, "command-buffer", DrawnTable::CommandBuffer, row);
                around.links.push(link);
            }
        }
    }
    if around.times.is_none() {
        around.times_unknown_because = Some(unknown_because(snapshot, source, row));
    }
    around
}

impl RowContext {
    /// Adds what work has from its command buffer and its submission.
    fn of_work(&mut self, snapshot: &Snapshot, work: &WorkColumns, row: usize) {
        let WorkPlace {
            command_buffer,
            submission,
        } = snapshot.work_place(work, row);
        self.submitted_by(snapshot, submission);
        if let Some(row) = command_buffer {
            let label = snapshot.trace.tables.command_buffers.label.at(row);
            self.label = self.label.or(label);
            let link = link(snapshot, "command-buffer", DrawnTable::CommandBuffer, row);
            self.links.push(link);
        }
    }

    /// Adds the host call that made a submission, its thread and the submission itself.
    fn submitted_by(&mut self, snapshot: &Snapshot, submission: Option<usize>) {
        let t = &snapshot.trace.tables.submissions;
        let Some(row) = submission else { return };
        self.called_by(snapshot, row);
        let relation = match is_launch(snapshot, row) {
            true => "submitted-by",
            false => "submission",
        };
        self.links.push(submission_link(snapshot, relation, row));
        self.thread = self.thread.or(Some(ThreadKey {
            process: t.process[row],
            thread: t.thread.at(row),
        }));
    }

    /// Adds the host call that made a submission.
    fn called_by(&mut self, snapshot: &Snapshot, submission: usize) {
        let call = snapshot.submit_calls.call(submission);
        let link = call.map(|call| link(snapshot, "submitted-by", DrawnTable::HostCall, call));
        self.links.extend(link);
    }

    /// Adds the submissions that a submission waits for.
    fn waits_for(&mut self, snapshot: &Snapshot, submission: usize) {
        let index = snapshot.index();
        let t = &snapshot.trace.tables.dependencies;
        let others = (index.dependencies_of(submission))
            .filter_map(|row| index.submissions.get(t.waits_for.at(row)?));
        let links = others.map(|row| submission_link(snapshot, "waits-for", row));
        self.add("waits-for", links);
    }

    /// Adds the first work of each command buffer of some submissions, and their work outside of command buffers.
    fn runs(&mut self, snapshot: &Snapshot, submissions: impl Iterator<Item = usize>) {
        let index = snapshot.index();
        let works = submissions.flat_map(|submission| {
            let first = |row| {
                let first = index.first_work_of(row);
                first.unwrap_or((DrawnTable::CommandBuffer, row))
            };
            let buffers = index.command_buffers_of(submission).map(first);
            buffers.chain(index.direct_work_of(submission))
        });
        self.add(
            "runs",
            works.map(|(source, row)| link(snapshot, "runs", source, row)),
        );
    }

    /// Adds links of one relation, up to [`MAX_LINKS`], and their number where there are more.
    fn add(&mut self, relation: &'static str, links: impl Iterator<Item = Link>) {
        let mut count = 0usize;
        for link in links {
            count += 1;
            if count <= MAX_LINKS {
                self.links.push(link);
            }
        }
        if count > MAX_LINKS {
            self.link_counts.insert(relation, count);
        }
    }
}

/// Returns a link to a row that is drawn.
fn link(snapshot: &Snapshot, relation: &'static str, source: DrawnTable, row: usize) -> Link {
    Link {
        relation,
        work: work_link(snapshot, source, row),
    }
}

/// Returns true where a submission is drawn as the call that made it.
fn is_launch(snapshot: &Snapshot, submission: usize) -> bool {
    let calls = &snapshot.submit_calls;
    calls.is_launch(&snapshot.trace, submission)
}

/// Returns a link to a submission, which is drawn where it is a launch.
fn submission_link(snapshot: &Snapshot, relation: &'static str, row: usize) -> Link {
    if is_launch(snapshot, row) {
        return link(snapshot, relation, DrawnTable::Submission, row);
    }
    let t = &snapshot.trace.tables.submissions;
    Link {
        relation,
        work: WorkLink {
            table: "submissions",
            row,
            name: format!("submission {}", t.id[row]),
            start_ns: Some(t.start_ns[row]),
            duration_ns: Some(t.duration_ns[row]),
            ..WorkLink::default()
        },
    }
}

/// Returns the reference by which the page shows a drawn row and goes there.
pub fn work_link(snapshot: &Snapshot, source: DrawnTable, row: usize) -> WorkLink {
    let trace = &snapshot.trace;
    let times = source.times(trace, row);
    let name = lanes::name(source, row, trace, &snapshot.texts);
    WorkLink {
        table: source.table(),
        row,
        name: snapshot.texts.text(name).to_owned(),
        track: times.map(|_| source.track(trace, row, &snapshot.whole).to_string()),
        start_ns: times.map(|times| times.start_ns),
        duration_ns: times.map(Interval::length_ns),
    }
}

/// Returns the label with its path; both are empty where the trace lacks it.
fn label(snapshot: &Snapshot, id: LabelId) -> RowLabel {
    let labels = &snapshot.trace.tables.labels;
    let ids = &snapshot.index().labels;
    let row = ids.get(id).into_iter();
    let mut rows: Vec<usize> = row.flat_map(|row| labels.outwards(ids, row)).collect();
    rows.reverse();
    let path = rows.iter().map(|row| cut(&labels.text[*row])).collect();
    RowLabel { path, rows }
}

/// Returns the kernel with its columns; `None` where the trace lacks it.
fn kernel(snapshot: &Snapshot, id: KernelId) -> Option<RowKernel> {
    let kernels = &snapshot.trace.tables.kernels;
    let row = snapshot.index().kernels.get(id)?;
    Some(RowKernel {
        row,
        name: kernel_name(snapshot, id),
        fields: fields::<Kernels>(kernels, row),
        has_source: kernels.source[row].is_some(),
    })
}

fn kernel_name(snapshot: &Snapshot, id: KernelId) -> String {
    let texts = &snapshot.texts;
    texts.text(texts.kernel(id)).to_owned()
}

/// Returns the name of a buffer, or its id in words.
pub fn buffer_name(snapshot: &Snapshot, row: usize) -> String {
    let buffers = &snapshot.trace.tables.buffers;
    match &buffers.name[row] {
        Some(name) => cut(name),
        None => format!("buffer {}", buffers.id[row]),
    }
}

/// Returns the bindings of a set, or the sentence why they are unknown.
fn bindings(snapshot: &Snapshot, set: Option<BindingSetId>) -> OrMissing<Vec<Binding>> {
    let rows = &snapshot.trace.tables.bindings;
    let Some(set) = set else {
        return OrMissing::missing(match rows.is_empty() {
            true => "The trace has no buffer bindings.",
            false => "No bindings of it were recorded.",
        });
    };
    let of_set = snapshot.index().bindings_of(set);
    let bindings = of_set.take(MAX_BINDINGS).map(|row| {
        let buffer_row = snapshot.index().buffers.get(rows.buffer[row]);
        let buffer = buffer_row.map(|row| buffer_name(snapshot, row));
        Binding {
            set: rows.set[row],
            binding: rows.binding[row],
            element: rows.element[row],
            access: rows.access[row].as_str(),
            buffer: buffer.unwrap_or_else(|| format!("buffer {}", rows.buffer[row])),
            buffer_row,
            offset_bytes: rows.offset_bytes[row].to_string(),
            bytes: rows.bytes[row].to_string(),
        }
    });
    OrMissing::There(bindings.collect())
}

/// Returns a sentence that says why a row has no times.
fn unknown_because(snapshot: &Snapshot, source: DrawnTable, row: usize) -> String {
    let (index, tables) = (snapshot.index(), &snapshot.trace.tables);
    let id = match source {
        DrawnTable::Marker => tables.markers.command_buffer.at(row),
        DrawnTable::CommandBuffer => Some(tables.command_buffers.id[row]),
        _ => (source.work(&snapshot.trace)).and_then(|work| work.command_buffer.at(row)),
    };
    let command_buffer = id.and_then(|id| index.command_buffers.get(id));
    let timing = command_buffer.map(|row| tables.command_buffers.timing[row]);
    let mode = snapshot.trace.manifest.sampling_mode.as_str();
    match timing {
        Some(Timing::Measured) if source != DrawnTable::CommandBuffer => {
            format!("Only its command buffer was timed (sampling mode {mode}).")
        }
        Some(Timing::Measured) | None => {
            "Its times are not in the trace, or are impossible; the losses say why.".to_owned()
        }
        Some(timing) => {
            use gapscope_trace::column::Column;
            let mut values = Timing::VALUES.iter();
            let value = values.find(|(text, _)| *text == timing.as_str());
            let meaning = value.map_or("its trace does not say why", |(_, meaning)| meaning.trim());
            format!("The times of its command buffer are {timing}: {meaning}")
        }
    }
}
