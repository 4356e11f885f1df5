//! Says how the devices of one program share its work: whether one has most of it, or whether they take turns.
//!
//! Idle time of a device that has less to do than another has a cause, but to lower it brings nothing: the run is as long as the device takes
//! that has most to do. Devices that take turns are idle by turns, and what helps is that they work at the same time.
//!
//! Devices that communicate are not judged here: a device that waits in a collective is busy. Nor are those of different processes, which
//! cannot give each other work.

use crate::findings::Findings;
use gapscope_timeline::busy::{BusyShare, DeviceBusy};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{DEVICE_SHARE, FIRST_STEP_SHARE, TURNS_OVERLAP_SHARE};

/// A device with more to do than the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uneven<'a> {
    /// The device that was busy for longest.
    pub most: &'a DeviceBusy,
    /// Its busy share of the time.
    pub most_share: f64,
    /// The number of devices that hold the run, this one included.
    pub holding: usize,
    /// The device that was busy for the shortest time.
    pub least: &'a DeviceBusy,
    /// The mean busy share of all others.
    pub others_share: f64,
    /// The number of the others.
    pub others: usize,
    /// The time that the run would take less if the busy time were split evenly.
    pub saves_ns: i64,
}

/// Devices of which mostly one works at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turns {
    /// The number of the devices.
    pub devices: usize,
    /// The share of the recording, from its first work to its last, in which one of them works.
    pub any_share: f64,
    /// The part of that in which several work, as a share of it.
    pub overlap_share: f64,
    /// The time that the run would take less if the others worked while the busiest device does.
    pub saves_ns: i64,
}

/// Returns the devices that worked, with what they did, where these share the work of a process and do not communicate.
fn sharing(findings: &Findings) -> Option<Vec<(&DeviceBusy, BusyShare)>> {
    let worked: Vec<(&DeviceBusy, BusyShare)> = (findings.devices.iter())
        .filter_map(|device| Some((device, device.analysed?)))
        .collect();
    let (first, _) = worked.first()?;
    let shares = |(device, share): &(&DeviceBusy, BusyShare)| {
        let mut processes = device.process_ids.iter();
        processes.any(|process| first.process_ids.contains(process))
            && share.communication_only_ns == Some(0)
            && share.communication_overlapped_ns == Some(0)
            && share.counted_whole_ns.unwrap_or(0) == 0
    };
    (worked.len() > 1 && worked.iter().all(shares)).then_some(worked)
}

/// Returns the device that has so much more to do than the others that it holds the run.
pub(crate) fn uneven(findings: &Findings) -> Option<Uneven<'_>> {
    let worked = sharing(findings)?;
    // Each device has its own window of work; the run is as long as the window of all of them.
    let window_ns = findings.analysed_window?.length_ns();
    let share = |(_, share): &(&DeviceBusy, BusyShare)| ratio(share.busy_ns, window_ns);
    let most = *(worked.iter()).max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let least = *(worked.iter()).min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let sum: f64 = worked.iter().map(share).sum();
    let most_share = share(&most);
    let saves = most_share - sum / worked.len() as f64;
    if most_share < DEVICE_SHARE || share(&least) >= DEVICE_SHARE || saves < FIRST_STEP_SHARE {
        return None;
    }
    let others = worked.len() - 1;
    Some(Uneven {
        most: most.0,
        most_share,
        holding: (worked.iter().map(share))
            .filter(|share| *share >= DEVICE_SHARE)
            .count(),
        least: least.0,
        others_share: (sum - most_share) / others as f64,
        others,
        saves_ns: (saves * window_ns as f64) as i64,
    })
}

/// Returns that devices take turns, where at nearly all times one of them works and hardly ever two do.
pub(crate) fn turns(findings: &Findings) -> Option<Turns> {
    let worked = sharing(findings)?;
    let any_ns = findings.gpu_busy_ns?;
    let busy = worked.iter().filter_map(|(device, _)| device.busy_ns);
    let (sum_ns, most_ns) = busy.fold((0i64, 0), |(sum, most), ns| {
        (sum.saturating_add(ns), most.max(ns))
    });
    let any_share = ratio(any_ns, findings.work_window?.length_ns());
    let overlap_share = ratio(sum_ns.saturating_sub(any_ns), any_ns);
    let is_shared = ratio(most_ns, any_ns) < DEVICE_SHARE;
    (any_share >= DEVICE_SHARE && overlap_share <= TURNS_OVERLAP_SHARE && is_shared).then(|| {
        Turns {
            devices: worked.len(),
            any_share,
            overlap_share,
            saves_ns: any_ns.saturating_sub(most_ns),
        }
    })
}
