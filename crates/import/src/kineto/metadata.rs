//! Reads the members of the document beside its events: the devices of the machine, the rank, and the moment from
//! which times count.

use super::json::{self, bare, elements, members};
use super::log::Log;
use super::number::whole;
use gapscope_trace::manifest::{DeviceProperties, Rank};

/// A device as the profiler describes it.
#[derive(Debug, Default, Clone)]
pub(super) struct ProfiledDevice {
    pub(super) id: Option<u32>,
    pub(super) name: String,
    pub(super) memory_bytes: Option<u64>,
    /// The peak rates and sizes of the device.
    pub(super) limits: DeviceProperties,
}

/// The facts of those members.
#[derive(Debug, Default, Clone)]
pub(super) struct Metadata {
    /// True if PyTorch's profiler wrote the file.
    pub(super) is_kineto: bool,
    pub(super) devices: Vec<ProfiledDevice>,
    pub(super) rank: Option<Rank>,
    /// The moment from which times count, in nanoseconds since 1970; `None` if the file does not say.
    pub(super) base_ns: Option<i64>,
    pub(super) host_name: Option<String>,
    /// The version of CUDA's driver, such as `CUDA 12.9`.
    pub(super) driver: Option<String>,
    /// The profiler's log.
    pub(super) log: Log,
}

impl Metadata {
    /// Reads a member of the object around the events.
    pub(super) fn member(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"schemaVersion" => self.is_kineto = true,
            b"deviceProperties" => {
                self.is_kineto = true;
                self.devices.extend(elements(value).map(device));
            }
            b"distributedInfo" => self.rank = rank(value),
            b"baseTimeNanoseconds" => self.base_ns = whole(value),
            b"host_name" => self.host_name = Some(text(value)),
            b"cuda_driver_version" => self.driver = whole(value).and_then(|n| version("CUDA", n)),
            b"hip_driver_version" => self.driver = Some(format!("HIP {}", text(value))),
            b"INFO" | b"WARNING" | b"ERROR" => self.log.read(value),
            _ => {}
        }
    }
}

/// Returns a string, or any other value as it is written.
fn text(value: &[u8]) -> String {
    json::text(bare(value)).into_owned()
}

/// Formats a version in CUDA's encoding, in which 12040 is 12.4.
fn version(of: &str, number: i64) -> Option<String> {
    (number > 0).then(|| format!("{of} {}.{}", number / 1000, number % 1000 / 10))
}

/// Reads an element of `deviceProperties`.
fn device(value: &[u8]) -> ProfiledDevice {
    let mut device = ProfiledDevice::default();
    let (mut major, mut minor) = (None, None);
    for (key, value) in members(value) {
        let number = whole(value).and_then(|n| u64::try_from(n).ok());
        let small = number.and_then(|n| u32::try_from(n).ok());
        let limits = &mut device.limits;
        match key {
            b"id" => device.id = small,
            b"name" => device.name = text(value),
            b"totalGlobalMem" => device.memory_bytes = number,
            b"computeMajor" => major = number,
            b"computeMinor" => minor = number,
            b"maxThreadsPerMultiprocessor" => limits.threads_per_multiprocessor = small,
            b"regsPerMultiprocessor" => limits.registers_per_multiprocessor = small,
            b"sharedMemPerMultiprocessor" => limits.shared_bytes_per_multiprocessor = number,
            b"numSms" => limits.multiprocessors = small,
            _ => {}
        }
    }
    device.limits.compute_capability = (major.zip(minor)).map(|(a, b)| format!("{a}.{b}"));
    device
}

/// Reads `distributedInfo`; `None` if it lacks the rank or the number of ranks.
fn rank(value: &[u8]) -> Option<Rank> {
    let number = |name: &[u8]| {
        let (_, value) = members(value).find(|(key, _)| *key == name)?;
        whole(value).and_then(|n| u32::try_from(n).ok())
    };
    Some(Rank {
        rank: number(b"rank")?,
        local_rank: None,
        world_size: number(b"world_size")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_ranks_and_epochs_are_read() {
        let mut metadata = Metadata::default();
        metadata.member(
            b"deviceProperties",
            br#"[{"id": 1, "name": "H100", "totalGlobalMem": 85018279936, "computeMajor": 9, "computeMinor": 0, "numSms": 132}]"#,
        );
        metadata.member(
            b"distributedInfo",
            br#"{"backend": "nccl", "rank": 3, "world_size": 8}"#,
        );
        metadata.member(b"baseTimeNanoseconds", b"1751410836000000000");
        metadata.member(b"cuda_driver_version", b"12090");
        let device = &metadata.devices[0];
        assert_eq!((device.id, &*device.name), (Some(1), "H100"));
        assert_eq!(device.limits.compute_capability.as_deref(), Some("9.0"));
        assert_eq!(metadata.rank.map(|r| (r.rank, r.world_size)), Some((3, 8)));
        assert_eq!(metadata.base_ns, Some(1_751_410_836_000_000_000));
        assert_eq!(metadata.driver.as_deref(), Some("CUDA 12.9"));
    }
}
