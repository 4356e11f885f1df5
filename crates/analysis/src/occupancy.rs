//! Computes how many workgroups of a kernel a multiprocessor of an NVIDIA GPU can hold at once: its theoretical occupancy.
//!
//! The rules are those of `cuda_occupancy.h` of the CUDA toolkit, and of the table of technical specifications of the CUDA C++
//! programming guide. The occupancy of other GPUs is unknown.

use gapscope_trace::manifest::DeviceProperties;
use gapscope_trace::tables::Kernels;

/// The number of threads in a warp, in whose units threads run and registers are allocated.
const THREADS_PER_WARP: u64 = 32;
/// The number of registers in a unit of allocation to a warp.
const REGISTER_GRANULE: u64 = 256;

/// The maximum number of workgroups that a multiprocessor can hold, and the resource that allows no more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Occupancy {
    pub(crate) groups: u32,
    pub(crate) limited_by: &'static str,
    /// The warps of these workgroups, as a share of the warps that a multiprocessor can hold.
    pub(crate) share: f64,
}

impl Occupancy {
    /// Returns the occupancy of the kernels in `rows`, or `None` where it is unknown or differs between them.
    pub(crate) fn from_rows(
        table: &Kernels,
        rows: impl Iterator<Item = usize>,
        limits: &DeviceProperties,
    ) -> Option<Occupancy> {
        let mut all = rows.map(|row| Occupancy::from_row(table, row, limits));
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }

    /// Returns the occupancy of the kernel in a row of the table.
    pub(crate) fn from_row(
        table: &Kernels,
        row: usize,
        limits: &DeviceProperties,
    ) -> Option<Occupancy> {
        let generation = Generation::new(limits)?;
        let threads = [
            table.local_x.at(row),
            table.local_y.at(row),
            table.local_z.at(row),
        ]
        .into_iter()
        .try_fold(1u64, |all, axis| all.checked_mul(u64::from(axis?)))?;
        let warps = threads.div_ceil(THREADS_PER_WARP);
        let registers = (u64::from(table.registers.at(row)?) * THREADS_PER_WARP)
            .next_multiple_of(REGISTER_GRANULE);
        // Where only the total shared memory of a workgroup is known, it is in the first column.
        let shared = u64::from(table.static_shared_bytes.at(row)?)
            + table.dynamic_shared_bytes.at(row).map_or(0, u64::from);
        let shared =
            (shared + generation.reserved_bytes).next_multiple_of(generation.shared_granule);

        let most_warps = u64::from(limits.threads_per_multiprocessor?) / THREADS_PER_WARP;
        // Each part of a multiprocessor has registers of its own, and whole warps.
        let of_part = u64::from(limits.registers_per_multiprocessor?) / generation.parts;
        let group_limits = [
            ("groups", Some(generation.groups)),
            ("threads", most_warps.checked_div(warps)),
            (
                "registers",
                of_part.checked_div(registers).and_then(|warps_of_part| {
                    (warps_of_part * generation.parts).checked_div(warps)
                }),
            ),
            (
                "shared-memory",
                limits.shared_bytes_per_multiprocessor?.checked_div(shared),
            ),
        ];
        // A resource that it does not need does not limit it.
        let group_limits = group_limits
            .into_iter()
            .filter_map(|(by, groups)| Some((by, groups?)));
        let (limited_by, groups) = group_limits.min_by_key(|(_, groups)| *groups)?;
        let groups = u32::try_from(groups).ok().filter(|groups| *groups > 0)?;
        Some(Occupancy {
            groups,
            limited_by,
            share: (u64::from(groups) * warps) as f64 / most_warps as f64,
        })
    }
}

/// The properties in which generations of multiprocessors differ.
struct Generation {
    /// The number of workgroups that a multiprocessor can hold.
    groups: u64,
    /// The number of parts with registers of their own.
    parts: u64,
    /// The number of bytes in a unit of allocation of shared memory.
    shared_granule: u64,
    /// The number of bytes of each workgroup's shared memory that the system uses.
    reserved_bytes: u64,
}

impl Generation {
    /// Returns the generation by the device's compute capability, or `None` where that is not known or not NVIDIA's.
    fn new(limits: &DeviceProperties) -> Option<Generation> {
        let (major, minor) = limits.compute_capability.as_deref()?.split_once('.')?;
        let capability: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        let groups = match capability {
            (7, 5) | (8, 6 | 7) => 16,
            (8, 9) | (12, _) => 24,
            (5..=10, _) => 32,
            _ => return None,
        };
        let recent = capability.0 >= 8;
        Some(Generation {
            groups: limits.groups_per_multiprocessor.map_or(groups, u64::from),
            parts: if capability == (6, 0) { 2 } else { 4 },
            shared_granule: if recent { 128 } else { 256 },
            reserved_bytes: if recent { 1024 } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::tables::{Kernel, Table as _};

    /// A launch: threads, registers, shared memory, and occupancy in per cent.
    type Launched = (u32, u32, u32, u32);
    /// Launches on a V100, an A100 and an H100.
    const REAL: [(&str, u64, &[Launched]); 3] = [
        (
            "7.0",
            98_304,
            &[
                (64, 84, 3328, 31),
                (64, 126, 8704, 25),
                (128, 42, 24, 63),
                (128, 50, 1536, 56),
                (128, 64, 12_304, 44),
                (128, 86, 16_384, 31),
                (128, 160, 32_768, 19),
                (256, 64, 24_704, 38),
                (256, 94, 34_880, 25),
                (512, 18, 0, 100),
            ],
        ),
        (
            "8.0",
            167_936,
            &[
                (64, 126, 8448, 25),
                (128, 44, 2560, 63),
                (128, 46, 12_304, 63),
                (256, 118, 16_896, 25),
                (384, 56, 31_744, 56),
                (512, 48, 4096, 50),
                (1024, 42, 32_768, 50),
            ],
        ),
        (
            "9.0",
            233_472,
            &[
                (128, 34, 24, 75),
                (128, 252, 32_768, 13),
                (256, 36, 2112, 75),
                (256, 236, 49_152, 13),
                (1024, 32, 128, 100),
            ],
        ),
    ];

    fn device(capability: &str, shared_bytes: u64) -> DeviceProperties {
        DeviceProperties {
            compute_capability: Some(capability.to_owned()),
            threads_per_multiprocessor: Some(2048),
            registers_per_multiprocessor: Some(65_536),
            shared_bytes_per_multiprocessor: Some(shared_bytes),
            ..DeviceProperties::default()
        }
    }

    fn held(
        limits: &DeviceProperties,
        threads: u32,
        registers: u32,
        shared: u32,
    ) -> Option<Occupancy> {
        let mut table = Kernels::default();
        table.push(Kernel {
            local_x: Some(threads),
            local_y: Some(1),
            local_z: Some(1),
            registers: Some(registers),
            static_shared_bytes: Some(shared),
            ..Kernel::default()
        });
        Occupancy::from_row(&table, 0, limits)
    }

    /// The occupancies are those that PyTorch got from `cuda_occupancy.h` for launches of more workgroups than fit, in the real
    /// traces of `tests/rivals`.
    #[test]
    fn real_kernels_have_the_occupancy_that_cuda_says() {
        for (capability, shared_bytes, kernels) in REAL {
            let limits = device(capability, shared_bytes);
            for (threads, registers, shared, percent) in kernels {
                let held = held(&limits, *threads, *registers, *shared).unwrap();
                let said = (held.share * 100.0).round() as u32;
                assert_eq!(
                    said, *percent,
                    "{capability}: {threads} {registers} {shared}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_known_has_no_occupancy() {
        assert_eq!(held(&DeviceProperties::default(), 128, 32, 0), None);
        // This is an AMD GPU.
        assert_eq!(held(&device("gfx90a", 65_536), 256, 32, 0), None);
        assert_eq!(held(&device("9.0", 233_472), 128, 32, 300_000), None);
    }
}
