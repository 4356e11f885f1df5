//! Keeps the facts that CUPTI tells of each GPU, and writes a device as an event when work first names it, so that
//! idle devices are not part of the trace.

use crate::cupti::fields::{self, Record};
use crate::driver;
use crate::recorder::Recorder;
use gapscope_spool::event::{Api, ClockSource, CommonEvent, CudaEvent, DeviceProperties};
use gapscope_spool::ids;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// The devices by CUPTI's numbers.
#[derive(Debug, Default)]
pub struct Devices(FxHashMap<u32, Device>);

/// A device: its facts, once CUPTI has told them, and whether it is used by work and written.
#[derive(Debug, Default)]
struct Device {
    facts: Option<DeviceFacts>,
    /// Whether work named it, so that it belongs to the trace.
    used: bool,
    /// Whether its event was written.
    written: bool,
}

/// The facts of a device that its event holds.
#[derive(Debug)]
struct DeviceFacts {
    name: String,
    uuid: [u8; 16],
    memory_bytes: u64,
    limits: DeviceProperties,
}

impl Devices {
    /// Keeps the facts that a record tells of a device.
    ///
    /// # Safety
    /// The record is a device's.
    pub unsafe fn describe(&mut self, record: &Record<'_>, recorder: &Recorder) {
        use fields::device::*;
        // SAFETY: as the caller promises; the name is NUL-terminated or null.
        unsafe {
            let number = record.get(ID);
            let name = record.get(NAME) as *const c_char;
            let name = if name.is_null() {
                String::new()
            } else {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            };
            let is_partition = record.get(PARTITION) != 0;
            let (name, uuid) = if is_partition {
                let partition = Partition {
                    gpu_instance: record.get(GPU_INSTANCE),
                    compute_instance: record.get(COMPUTE_INSTANCE),
                    uuid: record.get(PARTITION_UUID),
                };
                (partition.name(name), partition.uuid(record.get(UUID)))
            } else {
                (name, record.get(UUID))
            };
            let device = self.0.entry(number).or_default();
            device.facts = Some(DeviceFacts {
                name,
                uuid,
                memory_bytes: record.get(MEMORY),
                limits: DeviceProperties {
                    capability: (record.get(MAJOR), record.get(MINOR)),
                    multiprocessors: record.get(MULTIPROCESSORS),
                    core_clock_khz: record.get(CLOCK),
                    // CUPTI's unit is kBytes a second.
                    memory_bytes_per_s: record.get(BANDWIDTH).saturating_mul(1000),
                    l2_bytes: u64::from(record.get(L2)),
                    threads_per_multiprocessor: record.get(WARPS).saturating_mul(record.get(WARP)),
                    registers_per_multiprocessor: record.get(REGISTERS),
                    shared_bytes_per_multiprocessor: u64::from(record.get(SHARED)),
                    groups_per_multiprocessor: record.get(BLOCKS),
                    partition: is_partition,
                },
            });
            if device.used {
                device.write(number, recorder);
            }
        }
    }

    /// Returns the id of a device, which is part of the trace from now on.
    pub fn id(&mut self, number: u32, recorder: &Recorder) -> ids::Device {
        let device = self.0.entry(number).or_default();
        device.used = true;
        if device.facts.is_some() {
            device.write(number, recorder);
        }
        driver::device_id(number)
    }

    /// Writes the devices that were used but never described by CUPTI.
    pub fn close(&mut self, recorder: &Recorder) {
        for (number, device) in &mut self.0 {
            if device.used {
                device.write(*number, recorder);
            }
        }
    }
}

impl Device {
    /// Writes the device, and its limits where they are known; does nothing the second time.
    fn write(&mut self, number: u32, recorder: &Recorder) {
        if std::mem::replace(&mut self.written, true) {
            return;
        }
        let facts = self.facts.as_ref();
        recorder.write(&CommonEvent::Device {
            device: driver::device_id(number),
            api: Api::Cuda,
            name: facts.map_or_else(
                || Cow::Owned(format!("CUDA device {number}")),
                |f| Cow::Owned(f.name.clone()),
            ),
            driver: Cow::Owned(driver_versions()),
            uuid: facts.map_or([0; 16], |f| f.uuid),
            nanoseconds_per_tick: 1.0,
            clock: ClockSource::Host,
            heaps: facts.map_or(Vec::new(), |f| vec![f.memory_bytes]),
        });
        if let Some(facts) = facts {
            recorder.write(&CudaEvent::DeviceProperties {
                device: driver::device_id(number),
                limits: facts.limits,
            });
        }
    }
}

/// A part of a GPU that works as a device of its own (MIG), at the same time as the GPU's other parts.
struct Partition {
    gpu_instance: u32,
    compute_instance: u32,
    /// The UUID; 0 where the driver does not tell it.
    uuid: [u8; 16],
}

impl Partition {
    /// Returns the GPU's name with the instances. The driver's own names contain the profile: `NVIDIA A100-SXM4-40GB
    /// MIG 1g.5gb`.
    fn name(&self, gpu: String) -> String {
        let profile = if gpu.contains("MIG") { "" } else { " MIG" };
        let (of_gpu, of_compute) = (self.gpu_instance, self.compute_instance);
        format!("{gpu}{profile} {of_gpu}/{of_compute}")
    }

    /// Returns the part's own UUID, or the GPU's combined with the numbers of the instances.
    fn uuid(&self, gpu: [u8; 16]) -> [u8; 16] {
        if self.uuid != [0; 16] {
            return self.uuid;
        }
        let mut uuid = gpu;
        let instances = [self.gpu_instance, self.compute_instance].map(u32::to_le_bytes);
        for (byte, number) in uuid.iter_mut().zip(instances.as_flattened()) {
            *byte ^= number;
        }
        uuid
    }
}

/// The text with the version of the kernel's module. It is empty where there is none.
static MODULE: OnceLock<String> = OnceLock::new();

/// Reads the version of the kernel's module when the library is loaded: the program may filter its system calls later.
pub fn read_module_version() {
    MODULE
        .get_or_init(|| std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default());
}

/// Returns the driver's version with the CUDA version that it supports: `NVIDIA 580.159.04, CUDA 13.0`.
fn driver_versions() -> String {
    let module = MODULE.get().map_or("", String::as_str);
    gapscope_spool::model::cuda::driver_versions(module, driver::version())
}
