//! Measures how fast a Vulkan device copies from one buffer to another, by a command and by a kernel: a device goes
//! in, a [`Bandwidth`] comes out. On GPUs a kernel may be several times as fast as the command, and on a CPU the
//! other way round.

use gapscope_replay::{Bench, BenchWork, DeviceChoice};
use schemars::JsonSchema;
use serde::Serialize;

use super::kernels::{self, Grid};
use crate::error::Error;
use crate::samples::{Effort, repeat};

/// The size of buffers that no cache holds, and that every device binds as storage buffers (`maxStorageBufferRange`).
const LARGE_BYTES: u64 = 128 << 20;

/// The bandwidth of copies from one buffer to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Bandwidth {
    /// The size of each of the two buffers.
    pub buffer_bytes: u64,
    /// Bytes read and written, a second.
    pub bytes_per_s: f64,
    /// What copies.
    pub by: Copier,
}

/// What copies a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Copier {
    /// `vkCmdCopyBuffer`.
    Command,
    /// A kernel that copies sixteen bytes at once.
    Kernel,
}

impl Copier {
    pub(super) fn name(self) -> &'static str {
        match self {
            Copier::Command => "vkCmdCopyBuffer",
            Copier::Kernel => "a kernel",
        }
    }
}

impl Bandwidth {
    /// Computes the bandwidth from the time of a copy.
    pub fn from_time(by: Copier, buffer_bytes: u64, ns: f64) -> Bandwidth {
        Bandwidth {
            buffer_bytes,
            bytes_per_s: 2.0 * buffer_bytes as f64 / ns * 1e9,
            by,
        }
    }
}

/// Measures how fast a device copies between two large buffers, by a command or by a kernel, whichever is faster,
/// each in the shortest of several runs. Without a `choice` it is the device with the name `captured`, else the
/// first. Returns `None` if the device's queue has no timestamps.
///
/// # Errors
/// The device cannot be used.
pub fn copy_bandwidth(
    choice: Option<&DeviceChoice>,
    captured: &str,
) -> Result<Option<Bandwidth>, Error> {
    let mut bench = match Bench::open(choice, captured, LARGE_BYTES) {
        Err(gapscope_replay::Error::NoTimestamps(_)) => return Ok(None),
        bench => bench?,
    };
    let mut fastest: Option<Bandwidth> = None;
    for (by, work) in works(&mut bench)? {
        let timed = bench.record(work, count(&bench))?;
        let samples = repeat(Effort::SHORTEST, || timed.run())?;
        let bandwidth = Bandwidth::from_time(by, bench.buffer_bytes(), samples.least_ns);
        if fastest.is_none_or(|known| known.bytes_per_s < bandwidth.bytes_per_s) {
            fastest = Some(bandwidth);
        }
    }
    Ok(fastest)
}

/// Returns the two ways to copy one buffer to the other, each with its work.
pub(super) fn works(bench: &mut Bench) -> Result<[(Copier, BenchWork); 2], Error> {
    let grid = Grid::new(bench.buffer_bytes()).ok_or(Error::Memory)?;
    let kernel = bench.kernel(&kernels::copy(grid.invocations))?;
    let [from, to] = bench.buffers();
    Ok([
        (Copier::Kernel, BenchWork::Dispatch(kernel, grid.workgroups)),
        (Copier::Command, BenchWork::Copy(from, to)),
    ])
}

/// Returns the number of reads, writes or copies that are timed together.
pub(super) fn count(bench: &Bench) -> u32 {
    if bench.is_software() { 2 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_copies_at_a_plausible_rate() {
        use gapscope_replay::Error::{NoDevice, NoLoader};
        match copy_bandwidth(None, "") {
            Err(Error::Vulkan(NoLoader(_) | NoDevice(_))) => {
                let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|of| of == "1");
                assert!(!required, "there is no Vulkan device");
                eprintln!("skipped: there is no Vulkan device");
            }
            bandwidth => {
                let bandwidth = bandwidth.unwrap().unwrap();
                // Between 0.1 GB/s and 100 TB/s.
                assert!(
                    (1e8..1e14).contains(&bandwidth.bytes_per_s),
                    "{bandwidth:?}"
                );
                assert!(bandwidth.buffer_bytes.is_power_of_two());
            }
        }
    }
}
