//! Gives ids to routes (queue, kind, and the memory from which and to which transfers move data), and writes the
//! definition of each before its first use.

use crate::recorder::Recorder;
use gapscope_spool::event::{CudaEvent, MemoryPlace, TransferKind};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;

/// The ids of routes that have been written, and the last route.
#[derive(Debug, Default)]
pub struct Routes {
    routes: FxHashMap<RouteKey, ids::Route>,
    /// The route of the last transfer, which the next one often has, too.
    last: Option<(RouteKey, ids::Route)>,
}

/// A route: the queue, the kind of transfer, and the memory that transfers read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteKey {
    queue: ids::Queue,
    kind: TransferKind,
    source: MemoryPlace,
    destination: MemoryPlace,
}

impl RouteKey {
    /// Creates a key from a CUpti_ActivityMemcpyKind, and the CUpti_ActivityMemoryKind of the source and the
    /// destination.
    pub fn copy(queue: ids::Queue, [kind, source, destination]: [u8; 3]) -> RouteKey {
        RouteKey {
            queue,
            kind: match kind {
                1 | 3 => TransferKind::HostToDevice,
                2 | 4 => TransferKind::DeviceToHost,
                5..=8 => TransferKind::Copy,
                9 => TransferKind::HostToHost,
                10 => TransferKind::PeerToPeer,
                _ => TransferKind::Unknown,
            },
            source: place(source.into()),
            destination: place(destination.into()),
        }
    }

    /// Creates the key of a fill from the CUpti_ActivityMemoryKind of what is filled.
    pub fn fill(queue: ids::Queue, memory: u16) -> RouteKey {
        RouteKey {
            queue,
            kind: TransferKind::Fill,
            source: MemoryPlace::Unknown,
            destination: place(memory),
        }
    }
}

/// Returns the place of a CUpti_ActivityMemoryKind.
fn place(kind: u16) -> MemoryPlace {
    match kind {
        1 => MemoryPlace::Pageable,
        2 => MemoryPlace::Pinned,
        3 | 6 => MemoryPlace::Device,
        4 => MemoryPlace::Array,
        5 | 7 => MemoryPlace::Managed,
        _ => MemoryPlace::Unknown,
    }
}

impl Routes {
    /// Returns the id of a route, which is written before its first use.
    #[inline]
    pub fn route(&mut self, key: RouteKey, recorder: &Recorder) -> ids::Route {
        if let Some((last, route)) = &self.last
            && *last == key
        {
            return *route;
        }
        let next = ids::Route(self.routes.len() as u32 + 1);
        let route = *self.routes.entry(key).or_insert_with(|| {
            recorder.write(&CudaEvent::Route {
                route: next,
                queue: key.queue,
                kind: key.kind,
                source: key.source,
                destination: key.destination,
            });
            next
        });
        self.last = Some((key, route));
        route
    }
}
