//! Reads the work of devices (kernels, copies, graphs) and the waits that order it from CUPTI's tables into the
//! profile (calls, work and labels in memory). Columns are read by their index in the list that the scan asks for.

use super::import::{Import, span};
use crate::Error;
use crate::inventory::KernelFacts;
use crate::profile::{
    Correlation, DeviceWork, DeviceWorkKind, GraphNodeId, HostEventWait, StreamEvent, StreamPlace,
};
use crate::sqlite::Row;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{ProcessId, QueueId};
use gapscope_trace::tables::{MemoryPlace, TransferKind};
use rustc_hash::FxHashMap;

/// The columns with which all tables of work begin, and then those of one table.
macro_rules! columns {
    ($($more:literal),* $(,)?) => {
        ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", $($more),*]
    };
}
/// The index of the first column that differs between tables.
const OWN: usize = 7;
/// CUPTI's value for the absence of a stream.
const NO_STREAM: i64 = u32::MAX as i64;

/// The numbers that `ENUM_CUDA_MEMCPY_OPER` gives moves of managed memory's pages: from the host, to the host, and
/// between devices.
const PAGES_TO_DEVICE: i64 = 11;
const PAGES_TO_HOST: i64 = 12;
const PAGES_BETWEEN_DEVICES: i64 = 13;

/// The numbers that `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION` gives kinds of waits.
const WAIT_FOR_EVENT: i64 = 1;
const STREAM_WAITS_FOR_EVENT: i64 = 2;
const WAIT_FOR_STREAM: i64 = 3;

impl Import {
    /// Reads kernels, copies, fills and launches of whole graphs.
    pub(super) fn read_device_work(&mut self) -> Result<(), Error> {
        self.read_kernels()?;
        let columns = columns!["graphNodeId", "bytes", "copyKind", "srcKind", "dstKind"];
        self.scan("CUPTI_ACTIVITY_KIND_MEMCPY", &columns, |import, row| {
            let (kind, host_end) = transfer_kind(row.integer(OWN + 2));
            let bytes = row
                .integer(OWN + 1)
                .and_then(|bytes| u64::try_from(bytes).ok());
            if matches!(
                row.integer(OWN + 2),
                Some(PAGES_TO_DEVICE..=PAGES_BETWEEN_DEVICES)
            ) {
                return import.add_page_move(row, DeviceWorkKind::PageMove { kind, bytes });
            }
            let host_end = host_end.and_then(|end| row.integer(OWN + end));
            let work = DeviceWorkKind::Transfer {
                kind,
                bytes,
                host_memory: host_end.and_then(memory_place),
            };
            import.add_work(row, row.integer(OWN), work);
        })?;
        let columns = columns!["graphNodeId", "bytes"];
        self.scan("CUPTI_ACTIVITY_KIND_MEMSET", &columns, |import, row| {
            let work = DeviceWorkKind::Transfer {
                kind: TransferKind::Fill,
                bytes: row.small(OWN + 1),
                host_memory: None,
            };
            import.add_work(row, row.integer(OWN), work);
        })?;
        self.scan(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            &columns![],
            |import, row| {
                import.add_work(row, Some(1), DeviceWorkKind::Graph);
            },
        )?;
        self.read_order()
    }

    /// Reads kernels with their launch shapes. A kernel's name is the demangled one, or else the short or the mangled
    /// one.
    fn read_kernels(&mut self) -> Result<(), Error> {
        let columns = columns![
            "graphNodeId",
            "demangledName",
            "shortName",
            "mangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "localMemoryPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ];
        let mut texts: FxHashMap<i64, Option<TextId>> = FxHashMap::default();
        self.scan("CUPTI_ACTIVITY_KIND_KERNEL", &columns, |import, row| {
            let Some(process) = import.process(row.integer(2)) else {
                return;
            };
            let mut text = |at: usize| {
                let id = row.integer(OWN + at)?;
                *texts.entry(id).or_insert_with(|| {
                    let text = import.strings.get(id).filter(|text| !text.is_empty())?;
                    Some(import.profile.text(&text))
                })
            };
            let mangled = text(3);
            let name = text(1).or_else(|| text(2)).or(mangled);
            let name = name.unwrap_or_else(|| {
                // The number of its text tells a kernel apart from others.
                let id = row.integer(OWN + 1).or_else(|| row.integer(OWN + 2));
                import.unnamed.kernels += u64::from(id.is_some());
                import.profile.text(&match id {
                    Some(id) => format!("unknown kernel {id}"),
                    None => "unknown kernel".to_owned(),
                })
            });
            let kernel = import.profile.inventory.kernel(KernelFacts {
                entry_point: mangled.or(Some(name)),
                local: std::array::from_fn(|at| row.small(OWN + 7 + at)),
                registers: row.small(OWN + 10),
                local_bytes: row.small(OWN + 11),
                static_shared_bytes: row.small(OWN + 12),
                dynamic_shared_bytes: row.small(OWN + 13),
                ..KernelFacts::new(process, name)
            });
            let groups = std::array::from_fn(|at| row.small(OWN + 4 + at));
            import.add_work(
                row,
                row.integer(OWN),
                DeviceWorkKind::Kernel { kernel, groups },
            );
        })?;
        Ok(())
    }

    /// Adds a piece of work. A `graph_node` other than 0 means that it is part of a graph.
    fn add_work(&mut self, row: &Row, graph_node: Option<i64>, kind: DeviceWorkKind) {
        let Some((process, queue)) = self.place(row) else {
            return;
        };
        let node = graph_node.and_then(GraphNodeId::from_file);
        let work = DeviceWork {
            queue,
            span: span(row),
            of_graph: graph_node.is_some_and(|node| node != 0),
            graph: node.map(GraphNodeId::graph),
            graph_node: node,
            label: None,
            kind,
        };
        let work = (process, correlation(row), work);
        self.profile.recorded.work.push(work);
    }

    /// Adds a move of pages of managed memory. No stream and no call has it, whatever its row says of them.
    fn add_page_move(&mut self, row: &Row, kind: DeviceWorkKind) {
        let Some(process) = self.process(row.integer(2)) else {
            return;
        };
        let device = self.profile.device(process, row.small(3));
        let work = DeviceWork {
            queue: self.profile.inventory.page_moves(device),
            span: span(row),
            of_graph: false,
            graph: None,
            graph_node: None,
            label: None,
            kind,
        };
        self.profile.recorded.work.push((process, None, work));
    }

    /// Returns the process and the queue of a row of work; `None` if the process is not wanted.
    fn place(&mut self, row: &Row) -> Option<(ProcessId, QueueId)> {
        let process = self.process(row.integer(2))?;
        let device = self.profile.device(process, row.small(3));
        let inventory = &mut self.profile.inventory;
        let queue = inventory.stream(device, row.small(4), row.small(5));
        Some((process, queue))
    }

    /// Returns the process and the queue of a row without work. Its device is unreliable, because it may be 0 in a
    /// process that uses another one. The device is therefore that of the process's known stream that is nearest: of
    /// the same context and number, then of the same context, then any; only without one is it the row's own.
    fn known_place(&mut self, row: &Row) -> Option<(ProcessId, QueueId)> {
        let process = self.process(row.integer(2))?;
        let (context, stream) = (row.small(4)?, row.small(5)?);
        let key = (process, context, stream);
        if let Some(queue) = self.queues.get(&key) {
            return Some((process, *queue));
        }
        let streams = self.profile.inventory.streams();
        let streams = streams.filter(|(other, _)| *other == process);
        let by_nearness = streams.map(|(_, queue)| {
            let (is_other_context, is_other) = (queue.family != context, queue.index != stream);
            (is_other_context, is_other, queue.id, queue.device)
        });
        let device = match by_nearness.min() {
            Some((.., device)) => device,
            None => self.profile.device(process, row.small(3)),
        };
        let inventory = &mut self.profile.inventory;
        let queue = inventory.stream(device, Some(context), Some(stream));
        self.queues.insert(key, queue);
        Some((process, queue))
    }

    /// Reads which queues calls waited for, and which queues waited for which events.
    fn read_order(&mut self) -> Result<(), Error> {
        let on_stream = |row: &Row| row.integer(5).is_some_and(|stream| stream != NO_STREAM);
        let columns = columns!["syncType", "eventId"];
        self.scan(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            &columns,
            |import, row| {
                let kind = row.integer(OWN);
                if let (Some(WAIT_FOR_EVENT), Some(correlation), Some(event), Some(process)) = (
                    kind,
                    correlation(row),
                    row.small(OWN + 1),
                    import.process(row.integer(2)),
                ) {
                    return import.profile.recorded.host_waits.push(HostEventWait {
                        process,
                        correlation,
                        event,
                    });
                }
                let (Some(correlation), true) = (correlation(row), on_stream(row)) else {
                    return;
                };
                if ![Some(STREAM_WAITS_FOR_EVENT), Some(WAIT_FOR_STREAM)].contains(&kind) {
                    return;
                }
                let Some((process, queue)) = import.known_place(row) else {
                    return;
                };
                let profile = &mut import.profile;
                match (kind, row.small(OWN + 1)) {
                    (Some(WAIT_FOR_STREAM), _) => {
                        profile.awaited.insert((process, correlation), queue);
                    }
                    (_, Some(event)) => profile.recorded.waits.push(StreamEvent {
                        process,
                        place: StreamPlace { queue, correlation },
                        event,
                    }),
                    _ => {}
                }
            },
        )?;
        let columns = columns!["eventId"];
        self.scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &columns, |import, row| {
            let (Some(correlation), Some(event), true) =
                (correlation(row), row.small(OWN), on_stream(row))
            else {
                return;
            };
            if let Some((process, queue)) = import.known_place(row) {
                import.profile.recorded.events.push(StreamEvent {
                    process,
                    place: StreamPlace { queue, correlation },
                    event,
                });
            }
        })?;
        let recorded = &self.profile.recorded;
        if recorded.events.is_empty()
            && !(recorded.waits.is_empty() && recorded.host_waits.is_empty())
        {
            self.profile.inventory.note(
                "Streams or the host waited for events, and the file does not say for which work. nsys records it with \
                 --cuda-event-trace=true.",
            );
        }
        Ok(())
    }
}

/// Returns the correlation of a row (the number that joins a call with its work); 0 means none.
fn correlation(row: &Row) -> Option<Correlation> {
    row.small(6)
        .filter(|correlation| *correlation != 0)
        .map(Correlation)
}

/// Returns the kind of a copy, and the column of the memory of its host end, counted from the first column that
/// differs between tables.
fn transfer_kind(kind: Option<i64>) -> (TransferKind, Option<usize>) {
    match kind {
        Some(1 | 3 | PAGES_TO_DEVICE) => (TransferKind::HostToDevice, Some(3)),
        Some(2 | 4 | PAGES_TO_HOST) => (TransferKind::DeviceToHost, Some(4)),
        Some(5..=8) => (TransferKind::Copy, None),
        Some(9) => (TransferKind::HostToHost, Some(3)),
        Some(10 | PAGES_BETWEEN_DEVICES) => (TransferKind::PeerToPeer, None),
        _ => (TransferKind::Unknown, None),
    }
}

/// Returns the kind of memory for a value of `ENUM_CUDA_MEM_KIND`.
fn memory_place(kind: i64) -> Option<MemoryPlace> {
    match kind {
        0 => Some(MemoryPlace::Pageable),
        1 => Some(MemoryPlace::Pinned),
        2 | 5 => Some(MemoryPlace::Device),
        3 => Some(MemoryPlace::Array),
        4 | 6 => Some(MemoryPlace::Managed),
        _ => None,
    }
}
