//! Finds the devices that several processes of a file share. The work of all processes goes in, and devices of one physical
//! GPU get the same identity. The numbers of devices alone do not tell: in a file that was merged of ranks' files, each
//! process may have counted its own GPU as 0.

use super::collect::Collector;
use gapscope_trace::ids::DeviceId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// One part in so many of the shorter busy time may overlap on a shared GPU. A GPU runs the work of one process at a time
/// unless the processes are clients of CUDA's MPS, and profilers round times; GPUs of ranks work at the same time.
const OVERLAPPING_PART: i64 = 20;

/// A time in which a device was busy.
type Busy = (i64, i64, DeviceId);

impl Collector<'_, '_> {
    /// Gives the devices with the same number one identity where their processes took turns.
    pub(super) fn join_shared_devices(&mut self) {
        let inventory = &self.profile.inventory;
        let mut by_number: BTreeMap<u32, Vec<DeviceId>> = BTreeMap::new();
        for (number, device) in inventory.device_numbers() {
            by_number.entry(number).or_default().push(device);
        }
        by_number.retain(|_, devices| devices.len() > 1);
        // Each rank of a program has a GPU of its own.
        let has_ranks = self.metadata.rank.is_some_and(|rank| rank.world_size > 1);
        if by_number.is_empty() || has_ranks {
            return;
        }
        let numbers: FxHashMap<DeviceId, u32> = (by_number.iter())
            .flat_map(|(number, devices)| devices.iter().map(|device| (*device, *number)))
            .collect();
        let mut busy: BTreeMap<u32, Vec<Busy>> = BTreeMap::new();
        for (_, _, work) in &self.profile.recorded.work {
            let device = inventory.device_of(work.queue);
            if let Some((span, number)) = work.span.zip(numbers.get(&device)) {
                let times = (span.start_ns, span.end_ns(), device);
                busy.entry(*number).or_default().push(times);
            }
        }
        for (number, mut busy) in busy {
            let devices = &by_number[&number];
            let inventory = &mut self.profile.inventory;
            let pids = inventory.pids_of(devices);
            let text = match take_turns(&mut busy) {
                true => {
                    let identity = format!("device {number} of the file");
                    inventory.identify(devices, &identity);
                    format!(
                        "Processes {pids} took turns on device {number}: it is taken for one GPU."
                    )
                }
                false => format!(
                    "Processes {pids} used a device {number} at the same time: each is taken for a GPU of its own, as in files of ranks that were merged."
                ),
            };
            inventory.note(text);
        }
    }
}

/// Returns whether work of different devices hardly ever runs at the same time.
fn take_turns(busy: &mut [Busy]) -> bool {
    busy.sort_unstable();
    let mut totals: FxHashMap<DeviceId, i64> = FxHashMap::default();
    // The latest end, with its device, and the latest end of all other devices.
    let mut latest: Option<(i64, DeviceId)> = None;
    let mut of_others = i64::MIN;
    let mut overlapping_ns = 0i64;
    for (start_ns, end_ns, device) in busy.iter().copied() {
        let total = totals.entry(device).or_default();
        *total = total.saturating_add(end_ns.saturating_sub(start_ns));
        let other_end_ns = match latest {
            Some((latest_ns, owner)) if owner != device => latest_ns,
            _ => of_others,
        };
        let both_ns = other_end_ns.min(end_ns).saturating_sub(start_ns);
        overlapping_ns = overlapping_ns.saturating_add(both_ns.max(0));
        match latest {
            Some((latest_ns, owner)) if latest_ns >= end_ns => {
                if owner != device {
                    of_others = of_others.max(end_ns);
                }
            }
            Some((latest_ns, owner)) => {
                if owner != device {
                    of_others = latest_ns;
                }
                latest = Some((end_ns, device));
            }
            None => latest = Some((end_ns, device)),
        }
    }
    let least_ns = totals.values().min().copied().unwrap_or(0);
    totals.len() > 1 && overlapping_ns <= least_ns / OVERLAPPING_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_whose_work_never_runs_at_the_same_time_are_one() {
        let [a, b] = [DeviceId(1), DeviceId(2)];
        for (list, are_one) in [
            (vec![(0, 10, a), (10, 20, b), (20, 30, a)], true),
            (vec![(0, 10, a), (5, 15, b), (15, 30, a)], false),
            // A long piece of work around others.
            (vec![(0, 100, a), (5, 15, b), (20, 30, b)], false),
            (vec![(0, 10, a), (20, 30, a)], false),
        ] {
            assert_eq!(take_turns(&mut list.clone()), are_one, "{list:?}");
        }
    }
}
