//! How many workgroups of a kernel a multiprocessor can hold at once.

use gapscope_trace::manifest::DeviceLimits;
use gapscope_trace::tables::Kernels;

/// Threads run, and registers are given out, in warps.
const THREADS_OF_WARP: u64 = 32;
/// Registers are given out by so many.
const REGISTERS: u64 = 256;

/// Workgroups that a multiprocessor can hold, at most, and what allows no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occupancy {
    pub(super) groups: u32,
    pub(super) limited_by: &'static str,
}

impl Occupancy {
    /// Of the kernels of this name; `None` where that is unknown, or differs between them.
    pub(super) fn of(table: &Kernels, name: &str, limits: &DeviceLimits) -> Option<Occupancy> {
        let rows = (0..table.name.len()).filter(|row| &*table.name[*row] == name);
        let mut all = rows.map(|row| Occupancy::of_row(table, row, limits));
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }

    fn of_row(table: &Kernels, row: usize, limits: &DeviceLimits) -> Option<Occupancy> {
        let threads = [table.local_x[row], table.local_y[row], table.local_z[row]]
            .into_iter()
            .try_fold(1u64, |all, axis| all.checked_mul(u64::from(axis?)))?;
        let warps = threads.div_ceil(THREADS_OF_WARP);
        let registers = (u64::from(table.registers[row]?) * THREADS_OF_WARP)
            .next_multiple_of(REGISTERS)
            .saturating_mul(warps);
        let shared = [
            table.static_shared_bytes[row],
            table.dynamic_shared_bytes[row],
        ];
        let shared = shared
            .into_iter()
            .map(|bytes| bytes.map(u64::from))
            .sum::<Option<u64>>()?;

        let groups = u64::from(limits.groups_per_multiprocessor?);
        let threads = u64::from(limits.threads_per_multiprocessor?);
        let held = [
            ("groups", Some(groups)),
            (
                "threads",
                threads.checked_div(warps.saturating_mul(THREADS_OF_WARP)),
            ),
            (
                "registers",
                u64::from(limits.registers_per_multiprocessor?).checked_div(registers),
            ),
            (
                "shared-memory",
                limits.shared_bytes_per_multiprocessor?.checked_div(shared),
            ),
        ];
        // What it needs nothing of does not limit it.
        let held = held
            .into_iter()
            .filter_map(|(by, groups)| Some((by, groups?)));
        held.min_by_key(|(_, groups)| *groups)
            .map(|(limited_by, groups)| Occupancy {
                groups: groups.min(u64::from(u32::MAX)) as u32,
                limited_by,
            })
    }
}
