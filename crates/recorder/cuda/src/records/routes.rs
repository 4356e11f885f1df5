//! Between which places data moves.

use crate::hash::FastMap;
use crate::recorder::Recorder;
use gapscope_spool::Event;
use gapscope_spool::event::{MemoryPlace, TransferKind};

#[derive(Debug, Default)]
pub struct Routes {
    routes: FastMap<Key, u32>,
    last: Option<(Key, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    queue: u32,
    kind: TransferKind,
    source: MemoryPlace,
    destination: MemoryPlace,
    devices: Option<(u32, u32)>,
}

impl Key {
    /// From CUpti_ActivityMemcpyKind and two CUpti_ActivityMemoryKind; with the devices, where they are two.
    pub fn copy(
        queue: u32,
        [kind, source, destination]: [u8; 3],
        devices: Option<(u32, u32)>,
    ) -> Key {
        Key {
            queue,
            kind: match kind {
                1 | 3 => TransferKind::HostToDevice,
                2 | 4 => TransferKind::DeviceToHost,
                5..=8 => TransferKind::DeviceToDevice,
                9 => TransferKind::HostToHost,
                10 => TransferKind::PeerToPeer,
                _ => TransferKind::Unknown,
            },
            source: place(source.into()),
            destination: place(destination.into()),
            devices,
        }
    }

    pub fn fill(queue: u32, memory: u16) -> Key {
        Key {
            queue,
            kind: TransferKind::Fill,
            source: MemoryPlace::Unknown,
            destination: place(memory),
            devices: None,
        }
    }
}

/// CUpti_ActivityMemoryKind
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
    #[inline]
    pub fn route(&mut self, key: Key, recorder: &Recorder) -> u32 {
        if let Some((last, route)) = &self.last
            && *last == key
        {
            return *route;
        }
        let next = self.routes.len() as u32 + 1;
        let route = *self.routes.entry(key).or_insert_with(|| {
            recorder.write(&Event::Route {
                route: next,
                queue: key.queue,
                kind: key.kind,
                source: key.source,
                destination: key.destination,
                devices: key.devices,
            });
            next
        });
        self.last = Some((key, route));
        route
    }
}
