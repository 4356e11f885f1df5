//! Groups the devices of a trace's manifest by the physical GPU that they are.
use gapscope_trace::Manifest;
use gapscope_trace::ids::{DeviceId, QueueId};
use std::collections::HashMap;

/// The name of a device that the manifest does not list, or that has none.
pub const UNKNOWN_DEVICE: &str = "unknown device";

/// The physical GPUs of a trace, in the order in which the manifest first lists one of their devices: all devices with
/// one uuid, whatever their processes. A device without a uuid is a GPU of its own.
///
/// A GPU is identified by its index in this order, which is also that of [`Timeline::gpus`](crate::Timeline::gpus) and of the
/// devices in the findings. These have one more, the last, where work is on a queue of an unknown device.
#[derive(Debug, Clone, Default)]
pub struct Gpus {
    gpus: Vec<PhysicalGpu>,
    /// The index of the GPU of each device, as `by_queue` has it of each queue.
    by_device: HashMap<DeviceId, usize>,
    by_queue: HashMap<QueueId, usize>,
}

/// A GPU with its devices, which are interfaces through which processes used it.
#[derive(Debug, Clone)]
struct PhysicalGpu {
    /// The rows of the GPU's devices in the manifest.
    rows: Vec<usize>,
    /// The ids of the GPU's devices, in the order of `rows`.
    ids: Vec<DeviceId>,
    /// The driver's name of the first device; empty where it has none.
    name: String,
    /// The number of the first device in a file of another tool, and the pid of its process.
    number: Option<(u32, u32)>,
}

impl Gpus {
    /// Finds the GPUs of a manifest.
    pub fn new(manifest: &Manifest) -> Gpus {
        let mut result = Gpus::default();
        let mut by_uuid: HashMap<&str, usize> = HashMap::new();
        for (row, device) in manifest.devices.iter().enumerate() {
            let fresh = result.gpus.len();
            let gpu = match device.uuid.as_str() {
                "" => fresh,
                uuid => *by_uuid.entry(uuid).or_insert(fresh),
            };
            if gpu == fresh {
                result.gpus.push(PhysicalGpu {
                    rows: Vec::new(),
                    ids: Vec::new(),
                    name: device.name.clone(),
                    number: device.number.map(|number| {
                        let process = manifest.process(device.process);
                        (number, process.map_or(0, |process| process.pid))
                    }),
                });
            }
            result.gpus[gpu].rows.push(row);
            result.gpus[gpu].ids.push(device.id);
            result.by_device.entry(device.id).or_insert(gpu);
        }
        for queue in &manifest.queues {
            if let Some(gpu) = result.of_device(queue.device) {
                result.by_queue.entry(queue.id).or_insert(gpu);
            }
        }
        result
    }

    /// Returns the number of GPUs.
    pub fn count(&self) -> usize {
        self.gpus.len()
    }

    /// Returns the index of the GPU of a device, or `None` for a device that the manifest does not list.
    pub fn of_device(&self, id: DeviceId) -> Option<usize> {
        self.by_device.get(&id).copied()
    }

    /// Returns the index of the GPU of a queue, or `None` where the manifest lists neither the queue nor its device.
    pub fn of_queue(&self, id: QueueId) -> Option<usize> {
        self.by_queue.get(&id).copied()
    }

    /// Returns the ids of the devices that are the GPU with an index.
    pub fn devices(&self, gpu: usize) -> &[DeviceId] {
        self.gpus.get(gpu).map_or(&[], |gpu| &gpu.ids)
    }

    /// Returns the rows in the manifest of the devices that are the GPU.
    pub fn rows(&self, gpu: usize) -> &[usize] {
        self.gpus.get(gpu).map_or(&[], |gpu| &gpu.rows)
    }

    /// Returns the driver's name of the GPU.
    pub fn name(&self, gpu: usize) -> &str {
        match self.gpus.get(gpu) {
            Some(gpu) if !gpu.name.is_empty() => &gpu.name,
            _ => UNKNOWN_DEVICE,
        }
    }

    /// Returns the name of a GPU, with its number where there are several.
    pub fn distinct_name(&self, gpu: usize) -> String {
        match self.count() {
            1 => self.name(gpu).to_owned(),
            _ => self.title(gpu),
        }
    }

    /// Returns the number and the name of a GPU, `GPU 0: Example`. The number is that of the file that the trace was imported from, else the
    /// index.
    pub fn title(&self, gpu: usize) -> String {
        let label = self.label(gpu).unwrap_or_else(|| format!("GPU {gpu}"));
        format!("{label}: {}", self.name(gpu))
    }

    /// Returns the number by which the file of another tool calls a GPU, as in `GPU 3`, with the process where several have GPUs of that
    /// number. `None` where the file does not number all GPUs, or only has the first one.
    pub fn label(&self, gpu: usize) -> Option<String> {
        let numbers: Option<Vec<(u32, u32)>> = self.gpus.iter().map(|gpu| gpu.number).collect();
        let numbers = numbers.filter(|numbers| !matches!(numbers.as_slice(), [(0, _)]))?;
        let (number, pid) = *numbers.get(gpu)?;
        let same = numbers.iter().filter(|(other, _)| *other == number);
        Some(match (same.count(), pid) {
            (1, _) => format!("GPU {number}"),
            (_, 0) => format!("GPU {number} of an unknown process"),
            (_, pid) => format!("GPU {number} of process {pid}"),
        })
    }
}
