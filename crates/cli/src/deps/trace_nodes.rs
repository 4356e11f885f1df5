//! Returns the dispatches and transfers of a trace as nodes of the dependency graph, with the memory ranges bound
//! to them.

use gapscope_dependencies::{Access, ByteSet, Node, NodeKind, Scope};
use gapscope_trace::ids::{BindingSetId, BufferId, CommandBufferId, Id, KernelId, LabelId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{
    Access as Allowed, Bindings, Buffers, CommandBuffers, Dispatches, Kernels, Labels, Table,
    TransferKind, Transfers,
};
use gapscope_trace::{Selection, Trace};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Returns the tables of a trace that must be read.
pub fn selection() -> Selection {
    Selection::manifest()
        .with::<Dispatches>()
        .with::<Transfers>()
        .with::<CommandBuffers>()
        .with::<Bindings>()
        .with::<Buffers>()
        .with::<Kernels>()
        .with::<Labels>()
}

/// A bit of the id of memory that stands for a buffer whose allocation is unknown. Each such buffer has its own
/// memory.
const OWN_MEMORY_BIT: u64 = 1 << 32;

/// The maximum number of commands that are read; later commands are left out.
pub const MAX_COMMANDS: usize = 100_000;

/// Returns the dispatches and transfers in the order in which they, or their command buffers, began, and then by
/// position. Returns at most [`MAX_COMMANDS`], and true if these are all.
pub fn nodes(trace: &Trace) -> (Vec<Node>, bool) {
    let tables = &trace.tables;
    let work = TraceWork::new(trace);
    let mut all = Vec::new();
    macro_rules! add {
        ($table:ident, $is_transfer:literal) => {
            let table = &tables.$table;
            for row in 0..table.len() {
                let (start, buffer) = (table.start_ns.at(row), table.command_buffer.at(row));
                let order_key = work.order_key(start, buffer, table.position[row]);
                all.push((order_key, $is_transfer, row));
            }
        };
    }
    add!(dispatches, false);
    add!(transfers, true);
    all.sort_unstable();
    let is_all = all.len() <= MAX_COMMANDS;
    let nodes =
        (all.into_iter().take(MAX_COMMANDS)).map(|(_, is_transfer, row)| match is_transfer {
            true => work.transfer(row),
            false => work.dispatch(row),
        });
    (nodes.collect(), is_all)
}

/// The reasons why ranges are only upper bounds of what commands access: facts that a trace lacks.
const BOUND_ONLY: &str = "a trace has only what is bound";
const UNKNOWN_RANGE: &str = "a trace does not say where in its buffers a transfer goes";

/// A trace with the indices that finding the memory ranges of its commands needs.
struct TraceWork<'a> {
    trace: &'a Trace,
    buffers: IdIndex<BufferId>,
    kernels: IdIndex<KernelId>,
    command_buffers: IdIndex<CommandBufferId>,
    /// For each set, its places in `bindings`.
    sets: HashMap<BindingSetId, Range<usize>>,
    /// The rows of the table of bindings, ordered by set.
    bindings: Vec<usize>,
}

/// The order of commands: the start of the command or of its command buffer, the command buffer's row, and the
/// position in the command buffer.
type OrderKey = (i64, Option<usize>, u32);

impl<'a> TraceWork<'a> {
    fn new(trace: &'a Trace) -> TraceWork<'a> {
        let tables = &trace.tables;
        let ids = &tables.bindings.id;
        let mut bindings: Vec<usize> = (0..ids.len()).collect();
        bindings.sort_by_key(|row| ids[*row]);
        let mut sets = HashMap::new();
        let mut at = 0;
        for set in bindings.chunk_by(|a, b| ids[*a] == ids[*b]) {
            sets.insert(ids[set[0]], at..at + set.len());
            at += set.len();
        }
        TraceWork {
            trace,
            buffers: IdIndex::new(&tables.buffers.id),
            kernels: IdIndex::new(&tables.kernels.id),
            command_buffers: IdIndex::new(&tables.command_buffers.id),
            sets,
            bindings,
        }
    }

    /// Returns the key by which commands are sorted; commands without any known start come last.
    fn order_key(
        &self,
        start: Option<i64>,
        of: Option<CommandBufferId>,
        position: u32,
    ) -> OrderKey {
        let row = of.and_then(|id| self.command_buffers.get(id));
        let outer = row.and_then(|row| self.trace.tables.command_buffers.start_ns.at(row));
        (start.or(outer).unwrap_or(i64::MAX), row, position)
    }

    /// Returns a node without accesses.
    fn node(&self, kind: NodeKind, name: String, label: Option<LabelId>) -> Node {
        let labels = &self.trace.tables.labels;
        let row = label.and_then(|id| labels.id.iter().position(|of| *of == id));
        Node {
            kind: Some(kind),
            name,
            labels: row
                .map(|row| labels.text[row].to_string())
                .into_iter()
                .collect(),
            ..Node::default()
        }
    }

    /// Returns a dispatch with an access for each range that is bound to it, as far as its bindings are known.
    fn dispatch(&self, row: usize) -> Node {
        let tables = &self.trace.tables;
        let table = &tables.dispatches;
        let kernel = self.kernels.get(table.kernel[row]);
        let name = kernel.map_or("unknown kernel", |row| &tables.kernels.name[row]);
        let mut node = self.node(NodeKind::Dispatch, name.to_owned(), table.label.at(row));
        node.queue = table.queue[row].0;
        node.duration_ns = table
            .duration_ns
            .at(row)
            .and_then(|ns| u64::try_from(ns).ok());
        let Some(set) = table.bindings.at(row).and_then(|id| self.sets.get(&id)) else {
            node.beyond = Some("its bindings are not known".to_owned());
            return node;
        };
        let rows = &tables.bindings;
        for row in &self.bindings[set.clone()] {
            let row = *row;
            let binding = (rows.set[row], rows.binding[row], rows.element[row]);
            let range =
                rows.offset_bytes[row]..rows.offset_bytes[row].saturating_add(rows.bytes[row]);
            let access = rows.access[row];
            for (scope, is) in [
                (Scope::StorageRead, access != Allowed::Write),
                (Scope::StorageWrite, access != Allowed::Read),
            ] {
                if is {
                    let reach =
                        self.reach(rows.buffer[row], Some(range.clone()), scope, BOUND_ONLY);
                    node.accesses.push(Access {
                        binding: Some(binding),
                        ..reach
                    });
                }
            }
        }
        node
    }

    /// Returns a transfer, which accesses all of its buffers, since its ranges are not recorded.
    fn transfer(&self, row: usize) -> Node {
        let table = &self.trace.tables.transfers;
        let kind = match table.kind[row] {
            TransferKind::Fill => NodeKind::Fill,
            TransferKind::Update => NodeKind::Update,
            _ => NodeKind::Copy,
        };
        let mut node = self.node(
            kind,
            table.kind[row].as_str().to_owned(),
            table.label.at(row),
        );
        node.queue = table.queue[row].0;
        node.duration_ns = table
            .duration_ns
            .at(row)
            .and_then(|ns| u64::try_from(ns).ok());
        let ends = [
            (table.source.at(row), Scope::CopyRead),
            (table.destination.at(row), Scope::CopyWrite),
        ];
        for (buffer, scope) in ends {
            if let Some(buffer) = buffer {
                node.accesses
                    .push(self.reach(buffer, None, scope, UNKNOWN_RANGE));
            }
        }
        if node.accesses.is_empty() {
            node.beyond = Some("its buffers are not known".to_owned());
        }
        node
    }

    /// Returns the access to a range of a buffer, or to all of it. `reason` says why the range is only a bound.
    fn reach(
        &self,
        buffer: BufferId,
        range: Option<Range<u64>>,
        scope: Scope,
        reason: &str,
    ) -> Access {
        let buffers = &self.trace.tables.buffers;
        let row = self.buffers.get(buffer);
        let size = row.map_or(u64::MAX >> 1, |row| buffers.bytes[row].min(u64::MAX >> 1));
        let range = range.unwrap_or(0..size);
        let range = range.start.min(size)..range.end.min(size);
        let placed =
            row.and_then(|row| Some((buffers.allocation.at(row)?, buffers.offset_bytes.at(row)?)));
        let (memory, offset) = match placed {
            Some((allocation, offset)) => (allocation.number(), offset.min(u64::MAX >> 1)),
            None => (OWN_MEMORY_BIT | buffer.number(), 0),
        };
        let name = row.and_then(|row| buffers.name[row].clone());
        Access {
            memory,
            offset,
            set: Arc::new(ByteSet::from_range(range)),
            scope,
            bound: Some(reason.to_owned()),
            atomic: false,
            map: None,
            buffer: name.unwrap_or_else(|| format!("buffer {buffer}").into()),
            binding: None,
        }
    }
}
