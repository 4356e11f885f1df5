//! Finds dependencies in a range of a trace by the buffer ranges that are bound, since a trace does not say which
//! bytes a kernel reaches. Two pieces of work depend on each other where their ranges overlap in memory and one of
//! them writes. Work is numbered in the order in which it ran.

use crate::analysed_trace::AnalysedTrace;
use crate::dependencies::{DependenciesPart, MAX_DEPENDENCY_NODES};
use crate::protocol::{self, DependencySubmission, NodePlace, OrMissing};
use crate::row_details::{buffer_name, work_link};
use crate::snapshot::Snapshot;
use crate::track::DrawnTable;
use gapscope_analysis::unread::{DATAFLOW, unknown_because};
use gapscope_dependencies::{Access, ByteSet, Dependencies, Node, NodeKind, Scope};
use gapscope_timeline::WorkKind;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{BufferId, Id, LabelId};
use gapscope_trace::tables::{Access as Allowed, Table, TransferKind};
use std::ops::Range;
use std::sync::Arc;

/// The most nodes on each side of a row.
const AROUND: usize = 200;
/// The number of the first memory that stands for a buffer whose allocation is unknown.
const OWN_MEMORY: u64 = 1 << 32;
/// The greatest address; greater ones, as of a damaged trace, are lowered, so that sums fit 64 bits.
const MAX_ADDRESS: u64 = u64::MAX >> 2;
/// The row that stands for an unknown submission.
const NO_SUBMISSION: usize = usize::MAX;

/// The sentences for the page: why hazards are unknown, and why the bytes of a dispatch or of a transfer are not
/// exact.
const REASON: &str = "a recording has only the ranges that are bound, and no memory barriers: `gapscope capture` has both";
const BOUND: &str = "only what is bound is recorded";
const SOMEWHERE: &str = "where in its buffers a transfer goes is not recorded";

/// The part of a trace whose dependencies are asked for.
pub enum DependencyScope {
    /// The work that starts in a range, or all work, from number `first` on.
    Range {
        window: Option<Interval>,
        first: usize,
    },
    /// The work around a row.
    Around { source: DrawnTable, row: usize },
}

/// Finds the dependencies in a part of a trace.
pub fn dependencies(
    analysed: &AnalysedTrace,
    which: &DependencyScope,
) -> OrMissing<protocol::Dependencies> {
    let snapshot = &*analysed.snapshot;
    if let Some(sentence) = unknown_because(&snapshot.trace, DATAFLOW) {
        return OrMissing::missing(sentence);
    }
    let flow = analysed.flow();
    let (window, first, most) = match *which {
        DependencyScope::Range { window, first } => (window, first, MAX_DEPENDENCY_NODES),
        DependencyScope::Around { source, row } => {
            let wanted = (kind(source), row);
            match flow.work(None).position(|work| work == wanted) {
                Some(at) => (None, at.saturating_sub(AROUND), 2 * AROUND),
                None => {
                    return OrMissing::missing(
                        "When it ran is not known, nor what ran before and after it.",
                    );
                }
            }
        }
    };
    let mut all = flow.work(window);
    let before = all.by_ref().take(first).count();
    let work: Vec<(DrawnTable, usize)> = (all.by_ref().take(most))
        .map(|(kind, row)| (source(kind), row))
        .collect();
    let count = before + work.len() + all.count();
    if count == 0 {
        return OrMissing::missing("No dispatch or transfer with known order starts here.");
    }
    if snapshot.trace.tables.bindings.is_empty() {
        return OrMissing::missing(
            "The trace has no buffer bindings, so what its dispatches read and wrote is not known. \
             They are recorded where the API tells them: Vulkan's descriptor sets and push descriptors.",
        );
    }
    let maker = NodeMaker { snapshot };
    let nodes = work.iter().map(|(source, row)| maker.node(*source, *row));
    let found = Dependencies::without_barriers(nodes.collect(), REASON);
    let mut remarks = vec!["By the ranges that are bound: a kernel may reach less.".to_owned()];
    if before > 0 {
        remarks.push("What these depend on of the work before them is not shown.".to_owned());
    }
    let part = DependenciesPart {
        nodes: 0..work.len(),
        before,
        count,
        place: &|number| {
            let (source, row) = work[number];
            let link = work_link(snapshot, source, row);
            Some(NodePlace {
                table: link.table,
                row,
                track: link.track,
                start_ns: link.start_ns,
            })
        },
        submission: &|number| maker.submission(number),
        remarks,
        found: &found,
    };
    OrMissing::There(part.answer())
}

/// Returns the table of work that is a dispatch or transfer.
fn source(kind: WorkKind) -> DrawnTable {
    match kind {
        WorkKind::Transfer => DrawnTable::Transfer,
        _ => DrawnTable::Dispatch,
    }
}

/// Returns the kind of work of a table of dispatches or transfers.
fn kind(source: DrawnTable) -> WorkKind {
    match source {
        DrawnTable::Transfer => WorkKind::Transfer,
        _ => WorkKind::Dispatch,
    }
}

/// Makes nodes of dependencies from the rows of a trace.
struct NodeMaker<'a> {
    snapshot: &'a Snapshot,
}

impl NodeMaker<'_> {
    /// Makes the node of a dispatch or transfer.
    fn node(&self, source: DrawnTable, row: usize) -> Node {
        let snapshot = self.snapshot;
        let trace = &snapshot.trace;
        let name = crate::lanes::name(source, row, trace, &snapshot.texts);
        let times = source.times(trace, row);
        let mut node = Node {
            name: snapshot.texts.text(name).to_owned(),
            duration_ns: times.and_then(|times| u64::try_from(times.length_ns()).ok()),
            ..Node::default()
        };
        if let Some(work) = source.work(trace) {
            node.queue = work.queue[row].0;
            node.labels = self.labels(work.label.at(row));
            let submission = snapshot.work_place(&work, row).submission;
            node.submission = submission.unwrap_or(NO_SUBMISSION);
        }
        match source {
            DrawnTable::Transfer => self.transfer(row, &mut node),
            _ => self.dispatch(row, &mut node),
        }
        node
    }

    /// Adds an access for each bound range that a dispatch may read or write.
    fn dispatch(&self, row: usize, node: &mut Node) {
        let tables = &self.snapshot.trace.tables;
        node.kind = Some(NodeKind::Dispatch);
        let Some(set) = tables.dispatches.bindings.at(row) else {
            node.beyond = Some("its bindings are not known".to_owned());
            return;
        };
        let rows = &tables.bindings;
        for row in self.snapshot.index().bindings_of(set) {
            let begin = rows.offset_bytes[row];
            let range = begin..begin.saturating_add(rows.bytes[row]);
            for (scope, is) in [
                (Scope::StorageRead, rows.access[row] != Allowed::Write),
                (Scope::StorageWrite, rows.access[row] != Allowed::Read),
            ] {
                if is {
                    let reach = self.reach(rows.buffer[row], Some(range.clone()), scope, BOUND);
                    node.accesses.push(Access {
                        binding: Some((rows.set[row], rows.binding[row], rows.element[row])),
                        ..reach
                    });
                }
            }
        }
    }

    /// Adds the accesses of a transfer to all of its buffers.
    fn transfer(&self, row: usize, node: &mut Node) {
        let table = &self.snapshot.trace.tables.transfers;
        node.kind = Some(match table.kind[row] {
            TransferKind::Fill => NodeKind::Fill,
            TransferKind::Update => NodeKind::Update,
            _ => NodeKind::Copy,
        });
        for (buffer, scope) in [
            (table.source.at(row), Scope::CopyRead),
            (table.destination.at(row), Scope::CopyWrite),
        ] {
            let reach = buffer.map(|buffer| self.reach(buffer, None, scope, SOMEWHERE));
            node.accesses.extend(reach);
        }
        if node.accesses.is_empty() {
            node.beyond = Some("its buffers are not known".to_owned());
        }
    }

    /// Returns the texts of a label and of those around it, the outermost first.
    fn labels(&self, label: Option<LabelId>) -> Vec<String> {
        let labels = &self.snapshot.trace.tables.labels;
        let ids = &self.snapshot.index().labels;
        let row = label.and_then(|label| ids.get(label)).into_iter();
        let rows = row.flat_map(|row| labels.outwards(ids, row));
        let mut texts: Vec<String> = rows.map(|row| labels.text[row].to_string()).collect();
        texts.reverse();
        texts
    }

    /// Returns the description of a submission; the number alone where it is unknown.
    fn submission(&self, row: usize) -> DependencySubmission {
        let table = &self.snapshot.trace.tables.submissions;
        let known = (row < table.len()).then_some(row);
        DependencySubmission {
            number: row,
            name: known.map(|row| table.id[row].number().to_string()),
            queue: known.map(|row| self.snapshot.vocabulary.queue(table.queue[row])),
            called_ns: known.map(|row| table.start_ns[row].to_string()),
            device_ns: None,
        }
    }

    /// Returns an access to a range of a buffer, or to all of it where `range` is `None`. Buffers share memory where
    /// the trace has their place in an allocation; any other buffer is in a memory of its own.
    fn reach(
        &self,
        buffer: BufferId,
        range: Option<Range<u64>>,
        scope: Scope,
        reason: &str,
    ) -> Access {
        let buffers = &self.snapshot.trace.tables.buffers;
        let row = self.snapshot.index().buffers.get(buffer);
        let size = row.map_or(MAX_ADDRESS, |row| buffers.bytes[row].min(MAX_ADDRESS));
        let range = range.unwrap_or(0..size);
        let range = range.start.min(size)..range.end.min(size);
        let placed =
            row.and_then(|row| Some((buffers.allocation.at(row)?, buffers.offset_bytes.at(row)?)));
        let (memory, offset) = match placed {
            Some((allocation, offset)) => (allocation.number(), offset.min(MAX_ADDRESS)),
            None => (OWN_MEMORY | buffer.number(), 0),
        };
        let name = row.map(|row| buffer_name(self.snapshot, row));
        Access {
            memory,
            offset,
            set: Arc::new(ByteSet::from_range(range)),
            scope,
            bound: Some(reason.to_owned()),
            atomic: false,
            buffer: name.unwrap_or_else(|| format!("buffer {buffer}")).into(),
            binding: None,
            map: None,
        }
    }
}
