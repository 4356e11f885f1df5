//! Leaves out devices that are none: numbers that hardly any row of a file names, against many rows of another device,
//! and that the file does not describe. Such a number is damage or a default, and a GPU of its own would change the
//! verdict, the busy shares and the headline. Rows of a [`Profile`] go in; those on such a device are dropped and counted as losses.
//!
//! A device is left out where it has at most [`FEW`] of the rows of the device with the most work, or, where the file describes
//! devices and not this one, at most [`FEW_UNDESCRIBED`].
//!
//! [`find`] is the rule for all importers. Those of ggml's logs and of Instruments have one device, and so no other to leave out.

use crate::profile::{CallQueue, DeviceWorkKind, Profile};
use gapscope_model::LossKind;
use gapscope_trace::ids::{DeviceId, QueueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The share of the busiest device's rows up to which a device is left out where the file describes no device.
const FEW: f64 = 0.001;

/// The same where the file describes devices that have work, and not this one.
const FEW_UNDESCRIBED: f64 = 0.02;

/// The reason of the losses.
pub(crate) const STRAY: &str =
    "they name a GPU that the file does not describe, and that hardly any row names";

impl Profile {
    /// Leaves out devices that are none.
    pub(super) fn drop_stray_devices(&mut self) {
        let strays = self.stray_devices();
        if strays.is_empty() {
            return;
        }
        let inventory = &mut self.inventory;
        let is_stray = |queue: QueueId| strays.contains(&inventory.device_of(queue));
        let recorded = &mut self.recorded;
        let (mut dispatches, mut transfers, mut graphs) = (0, 0, 0);
        recorded.work.retain(|(_, _, work)| {
            let stray = is_stray(work.queue);
            if stray {
                match work.kind {
                    DeviceWorkKind::Kernel { .. } => dispatches += 1,
                    DeviceWorkKind::Graph => graphs += 1,
                    DeviceWorkKind::Transfer { .. } | DeviceWorkKind::PageMove { .. } => {
                        transfers += 1;
                    }
                }
            }
            !stray
        });
        for (_, call) in &mut recorded.calls {
            if call.queue.known().is_some_and(is_stray) {
                call.queue = CallQueue::Unknown;
            }
        }
        for events in [&mut recorded.events, &mut recorded.waits] {
            events.retain(|event| !is_stray(event.place.queue));
        }
        self.awaited.retain(|_, queue| !is_stray(*queue));
        let before = self.memory.len();
        self.memory.retain(|row| !strays.contains(&row.device));
        let memory = before.saturating_sub(self.memory.len()) as u64;
        for (kind, count) in [
            (LossKind::Dispatches, dispatches),
            (LossKind::Transfers, transfers),
            (LossKind::GraphLaunches, graphs),
            (LossKind::MemoryEvents, memory),
        ] {
            inventory.lose(kind, count, STRAY);
        }
        inventory.forget_devices(&strays);
    }

    /// Returns the devices that are none.
    fn stray_devices(&self) -> FxHashSet<DeviceId> {
        let inventory = &self.inventory;
        let mut rows: FxHashMap<DeviceId, u64> = FxHashMap::default();
        let waited_for = self
            .recorded
            .calls
            .iter()
            .filter_map(|(_, call)| call.queue.known());
        let waited_for = waited_for.chain(self.awaited.values().copied());
        let without_work = waited_for.map(|queue| inventory.device_of(queue));
        let without_work = without_work.chain(self.memory.iter().map(|row| row.device));
        rows.extend(without_work.map(|device| (device, 0)));
        for (_, _, work) in &self.recorded.work {
            *rows.entry(inventory.device_of(work.queue)).or_default() += 1;
        }
        find(&rows, |device| inventory.is_described(device))
    }
}

/// Returns the devices that are none, of those with so many rows of work.
pub(crate) fn find(
    rows: &FxHashMap<DeviceId, u64>,
    is_described: impl Fn(DeviceId) -> bool,
) -> FxHashSet<DeviceId> {
    let most = rows.values().copied().max().unwrap_or(0);
    let share = match rows.keys().any(|device| is_described(*device)) {
        true => FEW_UNDESCRIBED,
        false => FEW,
    };
    let is_few = |count: u64| most > 0 && count as f64 <= share * most as f64;
    let strays = (rows.iter()).filter(|(device, count)| !is_described(**device) && is_few(**count));
    strays.map(|(device, _)| *device).collect()
}
