//! Reads conditions of GPUs of AMD (amdgpu) and Intel (i915, xe) from the files of `/sys/class/drm` that the kernel
//! documents: "GPU Power/Thermal Controls and Monitoring" of amdgpu, the ABI of `sysfs-driver-intel-i915-hwmon` and
//! `sysfs-driver-intel-xe-hwmon`, and "Xe GT Frequency Management". This has not run on such a GPU: tests plant the
//! files.

use super::{ConditionSubject, ConditionUpdate, Gpu, Reading, Vendor};
use gapscope_trace::tables::Condition;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The GPUs whose files are read.
pub struct DrmCards {
    root: PathBuf,
    cards: Vec<FollowedCard>,
}

/// The card of a GPU, with the sensors that are read.
struct FollowedCard {
    /// The GPU's UUID, as the manifest writes it.
    uuid: Arc<str>,
    sensors: Vec<Sensor>,
}

/// A condition of a card, with the files from which it is read.
struct Sensor {
    condition: Condition,
    kind: SensorKind,
    source: Arc<str>,
}

/// The way in which a sensor's files give its value.
enum SensorKind {
    /// A file with a number, and the number of the condition's units in one of the file's.
    Level(PathBuf, f64),
    /// A file with the energy so far in microjoules, and the time and value of the last reading.
    Energy(PathBuf, Option<(i64, f64)>),
    /// Files of which one says 1 while the condition holds.
    Any(Vec<PathBuf>),
}

/// The reason why the card of a GPU is not known.
#[derive(Debug, thiserror::Error)]
enum CardError {
    #[error("the drivers of NVIDIA's, AMD's and Intel's GPUs are asked for them, and no others")]
    OtherVendor,
    #[error("{} cannot be read: {source}", folder.display())]
    Unreadable {
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("no card below {} is of its vendor", folder.display())]
    NoCard { folder: PathBuf },
    #[error("{count} cards below {} are of its vendor, and it is not known which of them it is", folder.display())]
    SeveralCards { count: usize, folder: PathBuf },
}

impl DrmCards {
    /// Creates a reader of files below `root`, the folder with `sys`.
    pub fn new(root: PathBuf) -> DrmCards {
        DrmCards {
            root,
            cards: Vec::new(),
        }
    }

    /// Reads the files of a GPU from now on; reports why, when there are none.
    pub fn add(&mut self, gpu: &Gpu, updates: &mut Vec<ConditionUpdate>) {
        match self.card(gpu) {
            Ok(card) => {
                let sensors = sensors(&card);
                if sensors.is_empty() {
                    let reason = format!("its driver has no such files below {}", card.display());
                    updates.push(ConditionUpdate::of_gpu(&gpu.name, reason));
                }
                let uuid = gpu.uuid.clone();
                self.cards.push(FollowedCard { uuid, sensors });
            }
            Err(reason) => updates.push(ConditionUpdate::of_gpu(&gpu.name, reason)),
        }
    }

    /// Finds the folder of a GPU's card. Vulkan does not tell it, so the GPU is only known when it is the only card
    /// of its vendor.
    fn card(&self, gpu: &Gpu) -> Result<PathBuf, CardError> {
        let id = gpu.vendor.pci_vendor_id().ok_or(CardError::OtherVendor)?;
        let folder = self.root.join("sys/class/drm");
        let cards = match std::fs::read_dir(&folder) {
            Ok(cards) => cards,
            Err(source) => return Err(CardError::Unreadable { folder, source }),
        };
        let is_card = |name: &str| {
            (name.strip_prefix("card")).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        let of_vendor: Vec<PathBuf> = cards
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(is_card))
            .map(|entry| entry.path())
            .filter(|card| text(&card.join("device/vendor")).as_deref() == Some(id))
            .collect();
        match of_vendor.as_slice() {
            [card] => Ok(card.clone()),
            [] => Err(CardError::NoCard { folder }),
            several => Err(CardError::SeveralCards {
                count: several.len(),
                folder,
            }),
        }
    }

    /// Reads all sensors of all GPUs and adds a reading of each to `updates`. An energy gives the mean power since
    /// the last reading, so that its first reading gives none.
    pub fn read(&mut self, now_ns: impl Fn() -> i64, updates: &mut Vec<ConditionUpdate>) {
        for card in &mut self.cards {
            for sensor in &mut card.sensors {
                let seen_ns = now_ns();
                let (from_ns, value) = match &mut sensor.kind {
                    SensorKind::Level(path, unit) => {
                        (seen_ns, number(path).map(|value| value * *unit))
                    }
                    SensorKind::Any(paths) => {
                        let readings = paths.iter().filter_map(|path| number(path));
                        let most = readings.reduce(f64::max);
                        (
                            seen_ns,
                            most.map(|most| if most > 0.0 { 100.0 } else { 0.0 }),
                        )
                    }
                    SensorKind::Energy(path, last) => {
                        let energy = number(path);
                        let before =
                            std::mem::replace(last, energy.map(|energy| (seen_ns, energy)));
                        match (before, energy) {
                            // The first reading has no predecessor, and a count that fell has begun anew.
                            (None, Some(_)) => continue,
                            (Some((at_ns, before)), Some(energy))
                                if energy >= before && seen_ns > at_ns =>
                            {
                                let joules = (energy - before) / 1e6;
                                (at_ns, Some(joules / ((seen_ns - at_ns) as f64 / 1e9)))
                            }
                            _ => (seen_ns, None),
                        }
                    }
                };
                // Only changes are kept, and these values change by fractions all the time.
                let value = match sensor.condition {
                    Condition::Power | Condition::Temperature => value.map(f64::round),
                    _ => value,
                };
                updates.push(ConditionUpdate::Reading(Reading {
                    of: ConditionSubject::Gpu(card.uuid.clone()),
                    condition: sensor.condition,
                    from_ns,
                    seen_ns,
                    value,
                    source: sensor.source.clone(),
                }));
            }
        }
    }
}

impl Vendor {
    /// Returns the vendor's number as the kernel writes it.
    fn pci_vendor_id(self) -> Option<&'static str> {
        match self {
            Vendor::Amd => Some("0x1002"),
            Vendor::Intel => Some("0x8086"),
            Vendor::Nvidia | Vendor::Other => None,
        }
    }
}

/// Returns the sensors of a card for which its driver has files.
fn sensors(card: &Path) -> Vec<Sensor> {
    let mut sensors = Vec::new();
    let mut add = |condition, kind: SensorKind| {
        let first = match &kind {
            SensorKind::Level(path, _) | SensorKind::Energy(path, _) => Some(path),
            SensorKind::Any(paths) => paths.first(),
        };
        if let Some(file) = first.filter(|path| path.exists()) {
            let file = file.strip_prefix(card).unwrap_or(file);
            let source = format!("/sys/class/drm: {}", file.display()).into();
            sensors.push(Sensor {
                condition,
                kind,
                source,
            });
        }
    };
    let monitors = std::fs::read_dir(card.join("device/hwmon"));
    for monitor in monitors.into_iter().flatten().flatten() {
        let file = |name: &str| monitor.path().join(name);
        match text(&file("name")).as_deref() {
            Some("amdgpu") => {
                // Before Linux 6.5 or so there was only the file called average, which few cards have since.
                let power = ["power1_average", "power1_input"].map(file);
                let power = power.into_iter().find(|path| path.exists());
                if let Some(power) = power {
                    add(Condition::Power, SensorKind::Level(power, 1e-6));
                }
                add(
                    Condition::Temperature,
                    SensorKind::Level(file("temp1_input"), 1e-3),
                );
                add(
                    Condition::SmClock,
                    SensorKind::Level(file("freq1_input"), 1.0),
                );
                add(
                    Condition::MemoryClock,
                    SensorKind::Level(file("freq2_input"), 1.0),
                );
            }
            Some(driver @ ("i915" | "xe")) => {
                add(
                    Condition::Power,
                    SensorKind::Energy(file("energy1_input"), None),
                );
                // This is the package's temperature.
                let temperature = file(if driver == "xe" {
                    "temp2_input"
                } else {
                    "temp1_input"
                });
                add(Condition::Temperature, SensorKind::Level(temperature, 1e-3));
            }
            _ => {}
        }
    }
    let memory = card.join("device/mem_info_vram_used");
    add(Condition::MemoryUsed, SensorKind::Level(memory, 1.0));
    // Only amdgpu has these files.
    for (condition, file) in [
        (Condition::GpuBusy, "gpu_busy_percent"),
        (Condition::MemoryBusy, "mem_busy_percent"),
    ] {
        add(
            condition,
            SensorKind::Level(card.join("device").join(file), 1.0),
        );
    }
    // The first pair is of i915, the second of xe.
    for (clock, reason) in [
        ("gt/gt0/rps_act_freq_mhz", "gt/gt0/throttle_reason_"),
        (
            "device/tile0/gt0/freq0/act_freq",
            "device/tile0/gt0/freq0/throttle/reason_",
        ),
    ] {
        let reasons = |names: &[&str]| {
            let paths = names
                .iter()
                .map(|name| card.join(format!("{reason}{name}")));
            SensorKind::Any(paths.collect())
        };
        add(Condition::SmClock, SensorKind::Level(card.join(clock), 1e6));
        add(Condition::ClockPowerCap, reasons(&["pl1", "pl2", "pl4"]));
        add(
            Condition::ClockHeatSoftware,
            reasons(&["thermal", "prochot", "ratl", "vr_thermalert"]),
        );
    }
    sensors
}

/// Returns a file's text without the space around it; `None` when it cannot be read.
fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn number(path: &Path) -> Option<f64> {
    let number = text(path)?.parse::<f64>().ok()?;
    number.is_finite().then_some(number)
}
