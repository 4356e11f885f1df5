//! Finds the best throughput of a GPU's memory, as measured on the machine or from the data sheet.

use gapscope_timeline::Timeline;
use gapscope_timeline::quantity::rate;
use gapscope_timeline::vocabulary::Gpus;
use gapscope_trace::manifest::DeviceProperties;
use schemars::JsonSchema;
use serde::Serialize;

/// The best memory throughput of a device, to which that of kernels is related.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ceiling {
    /// Index in the findings of the device.
    pub device: u32,
    /// Its name.
    pub name: String,
    /// The source of the figures.
    pub source: CeilingSource,
    /// Bytes a second of a kernel that only reads.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes a second of a copy, read plus written.
    pub copy_bytes_per_s: Option<u64>,
    /// Bytes a second of a kernel that only writes.
    pub write_bytes_per_s: Option<u64>,
    /// Bytes a second that the device can read over PCIe.
    pub pcie_read_bytes_per_s: Option<u64>,
    /// Bytes a second that the device can write over PCIe.
    pub pcie_write_bytes_per_s: Option<u64>,
    /// Bytes a second that the device can receive over NVLink.
    pub nvlink_received_bytes_per_s: Option<u64>,
    /// Bytes a second that the device can send over NVLink.
    pub nvlink_sent_bytes_per_s: Option<u64>,
    /// The driver with which it was measured, where that is not the driver of the recording.
    pub other_driver: Option<String>,
}

/// The source of a ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CeilingSource {
    /// Measured on this device (`gapscope bench device`).
    Measured,
    /// The data sheet's bandwidth, which no kernel reaches.
    DataSheet,
    /// Not known.
    #[default]
    Unknown,
}

/// Returns the ceilings of the GPUs with these indices.
pub(crate) fn ceilings(timeline: &Timeline, gpus: impl Iterator<Item = usize>) -> Vec<Ceiling> {
    let named = Gpus::new(&timeline.trace.manifest);
    let devices = &timeline.trace.manifest.devices;
    let ceiling = |gpu: usize| {
        let rows = &timeline.gpus[gpu].devices;
        let known = |row: &&usize| {
            let limits = devices[**row].limits.as_ref();
            limits.is_some_and(|of| of.measured.is_some() || of.memory_bytes_per_s.is_some())
        };
        let row = rows.iter().find(known).map(|row| &devices[*row]);
        let limits = row.and_then(|device| device.limits.as_ref());
        let driver = row.map_or("", |device| device.driver.as_str());
        Ceiling {
            device: gpu as u32,
            name: named.name(gpu).to_owned(),
            ..Ceiling::new(limits, driver)
        }
    };
    gpus.map(ceiling).collect()
}

impl Ceiling {
    /// Takes the measured rates where there are some, otherwise the data sheet's. `driver` is that of the recording.
    fn new(limits: Option<&DeviceProperties>, driver: &str) -> Ceiling {
        let Some(limits) = limits else {
            return Ceiling::default();
        };
        let some = |value: Option<u64>| value.filter(|value| *value > 0);
        if let Some(measured) = &limits.measured {
            let ceiling = Ceiling {
                source: CeilingSource::Measured,
                read_bytes_per_s: some(measured.read_bytes_per_s),
                copy_bytes_per_s: some(measured.copy_bytes_per_s),
                write_bytes_per_s: some(measured.write_bytes_per_s),
                pcie_read_bytes_per_s: some(measured.host_read_bytes_per_s),
                pcie_write_bytes_per_s: some(measured.host_write_bytes_per_s),
                nvlink_received_bytes_per_s: some(measured.nvlink_received_bytes_per_s),
                nvlink_sent_bytes_per_s: some(measured.nvlink_sent_bytes_per_s),
                other_driver: Some(&measured.driver)
                    .filter(|other| !other.is_empty() && !driver.contains(other.as_str()))
                    .cloned(),
                ..Ceiling::default()
            };
            if ceiling.bytes_per_s(0.5).is_some() {
                return ceiling;
            }
        }
        // The data sheet describes the whole device, not a partition.
        let sheet = some(limits.memory_bytes_per_s).filter(|_| !limits.partition);
        Ceiling {
            source: match sheet {
                Some(_) => CeilingSource::DataSheet,
                None => CeilingSource::Unknown,
            },
            read_bytes_per_s: sheet,
            copy_bytes_per_s: sheet,
            write_bytes_per_s: sheet,
            ..Ceiling::default()
        }
    }

    /// Returns the bytes a second that a kernel can move if it reads `read_share` of its bytes: as measured for 0, half and 1,
    /// interpolated in between. Where one of the three was not measured, the nearest that was is taken.
    pub fn bytes_per_s(&self, read_share: f64) -> Option<f64> {
        let points = [
            (0.0, self.write_bytes_per_s),
            (0.5, self.copy_bytes_per_s),
            (1.0, self.read_bytes_per_s),
        ];
        let known = points.into_iter();
        let known: Vec<(f64, f64)> = known
            .filter_map(|(at, rate)| Some((at, rate? as f64)))
            .collect();
        let after = known.iter().position(|(at, _)| *at >= read_share);
        let (from, to) = match after {
            None => (known.last()?, known.last()?),
            Some(0) => (&known[0], &known[0]),
            Some(to) => (&known[to - 1], &known[to]),
        };
        match to.0 > from.0 {
            true => Some(from.1 + (to.1 - from.1) * (read_share - from.0) / (to.0 - from.0)),
            false => Some(to.1),
        }
    }

    /// Describes the ceiling in a sentence. `named` is true to name the device.
    pub(super) fn sentence(&self, named: bool) -> String {
        let of = match named {
            true => format!(" of {}", self.name),
            false => String::new(),
        };
        let each_second = |value: Option<u64>| rate(value?, 1_000_000_000);
        match self.source {
            CeilingSource::Measured => {
                let rates = [
                    ("reading", self.read_bytes_per_s),
                    ("copying", self.copy_bytes_per_s),
                    ("writing", self.write_bytes_per_s),
                ];
                let said: Vec<String> = (rates.into_iter())
                    .filter_map(|(what, value)| Some(format!("{} {what}", each_second(value)?)))
                    .collect();
                let driver = self.other_driver.as_ref();
                let driver =
                    driver.map_or(String::new(), |of| format!(", with another driver ({of})"));
                format!(
                    "The limit of memory{of} is the measured one: {}{driver}.",
                    said.join(", ")
                )
            }
            CeilingSource::DataSheet => format!(
                "The limit of memory{of} is {} by the data sheet, which no kernel reaches: `gapscope bench device` measures it.",
                each_second(self.copy_bytes_per_s).unwrap_or_default()
            ),
            CeilingSource::Unknown => {
                format!("The limit of memory{of} is unknown: `gapscope bench device` measures it.")
            }
        }
    }
}
