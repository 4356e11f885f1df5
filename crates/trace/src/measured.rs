//! Keeps the measured peaks of devices (how much they compute and move in a second at most) in the user's folder
//! between recordings: one JSON file for each device and driver version.

use crate::manifest::{self, DeviceProperties, Manifest, MeasuredPeaks};
use gapscope_model::Api;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files that are larger were not written by gapscope.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The most characters of a UUID, and the characters of the driver's version that a file name has.
const MAX_DRIVER_LETTERS: usize = 100;

/// A device with its measured peaks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
#[serde(default)]
pub struct MeasuredDevice {
    /// Name of the device.
    pub name: String,
    /// Identifies the physical device, as hexadecimal, like the UUID in traces.
    pub uuid: String,
    /// The interface that was measured: `cuda` or `vulkan`.
    #[schemars(with = "String")]
    pub api: Api,
    /// The measured peaks.
    #[serde(flatten)]
    pub limits: MeasuredPeaks,
    /// Spread of the repetitions of each figure: the distance of the quartiles of their times as a share of the
    /// median. The key is that of the figure, such as `matrix_flops.bf16` for one of several.
    pub spread: BTreeMap<String, f64>,
    /// The operation that was timed for each figure, by the same keys.
    pub source: BTreeMap<String, String>,
    /// Caveats about the figures, as sentences.
    pub notes: Vec<String>,
}

/// The folder of the measurements.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// The measurements in a folder.
#[derive(Debug, Default)]
pub struct StoredMeasurements {
    /// The devices, with their files.
    pub devices: Vec<(PathBuf, MeasuredDevice)>,
    /// Files that cannot be read, as sentences without their full stop.
    pub damaged: Vec<String>,
}

impl Store {
    /// Returns the user's store: `gapscope/devices` in `$XDG_DATA_HOME`, else in `~/.local/share`; `None` without
    /// either variable.
    pub fn for_user() -> Option<Store> {
        let set = |name| std::env::var_os(name).map(PathBuf::from);
        let data = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
        let home = set("HOME").filter(|folder| folder.is_absolute());
        let data = data.or_else(|| Some(home?.join(".local/share")))?;
        Some(Store::new(&data.join("gapscope/devices")))
    }

    /// Returns the store in a folder, which may not exist yet.
    pub fn new(folder: &Path) -> Store {
        Store {
            folder: folder.to_owned(),
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a measurement atomically and replaces an earlier one of the same driver. Returns its file.
    ///
    /// # Errors
    /// The file cannot be written, or the device has no UUID.
    pub fn save(&self, device: &MeasuredDevice) -> io::Result<PathBuf> {
        let file = file_name(device).ok_or_else(|| {
            io::Error::other(format!("{} has no UUID to keep it by", device.name))
        })?;
        let path = self.folder.join(file);
        let text = serde_json::to_string_pretty(device)? + "\n";
        fs::create_dir_all(&self.folder)?;
        let beside = path.with_extension(format!("new.{}", std::process::id()));
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.map(|()| path)
    }

    /// Lists all measurements, sorted by file. A missing folder has none.
    pub fn list(&self) -> StoredMeasurements {
        let mut listed = StoredMeasurements::default();
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return listed,
            Err(error) => {
                let folder = self.folder.display();
                listed
                    .damaged
                    .push(format!("{folder} cannot be read: {error}"));
                return listed;
            }
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        });
        paths.sort();
        for path in paths {
            match read(&path) {
                Ok(kept) => listed.devices.push((path, kept)),
                Err(error) => {
                    (listed.damaged).push(format!("{} cannot be read: {error}", path.display()))
                }
            }
        }
        listed
    }

    /// Adds the stored measurements to the devices of a manifest, and to its notes a sentence where one cannot be
    /// read or is of another driver.
    pub fn add_to(&self, manifest: &mut Manifest) {
        if manifest.devices.is_empty() {
            return;
        }
        let listed = self.list();
        let mut notes: Vec<String> = (listed.damaged.iter())
            .map(|sentence| format!("What a device was measured to do is unknown: {sentence}."))
            .collect();
        for device in &mut manifest.devices {
            let kept = || {
                listed
                    .devices
                    .iter()
                    .map(|(_, kept)| kept)
                    .filter(|kept| kept.matches(device))
            };
            if let Some(kept) = kept().find(|kept| kept.limits.driver == device.driver) {
                let limits = device.limits.get_or_insert_with(DeviceProperties::default);
                limits.measured = Some(kept.limits.clone());
            } else if let Some(kept) = kept().max_by_key(|kept| kept.limits.measured_unix_s) {
                notes.push(format!(
                    "What {} was measured to do is not used: it was measured with the driver {}, and {} is there now; `gapscope bench device` measures it again.",
                    device.name, kept.limits.driver, device.driver
                ));
            }
        }
        // A manifest lists a device once for each process that used it.
        for note in notes {
            if !manifest.notes.contains(&note) {
                manifest.notes.push(note);
            }
        }
    }
}

impl MeasuredDevice {
    /// Returns true where the measurement is of this device, whatever its driver.
    fn matches(&self, device: &manifest::Device) -> bool {
        self.uuid == device.uuid && self.api == device.api
    }
}

/// Why a stored measurement cannot be used.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("it has {bytes} bytes, and {MAX_FILE_BYTES} at most are read")]
    TooLarge { bytes: u64 },
    #[error("it is not of the device and driver that its name says")]
    OtherDevice,
}

/// Reads a measurement, which must be of the device and driver in its file name.
fn read(path: &Path) -> Result<MeasuredDevice, ReadError> {
    let bytes = fs::metadata(path)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge { bytes });
    }
    let device: MeasuredDevice = serde_json::from_str(&fs::read_to_string(path)?)?;
    match file_name(&device).is_some_and(|name| path.ends_with(name)) {
        true => Ok(device),
        false => Err(ReadError::OtherDevice),
    }
}

/// Returns the file name of a measurement; `None` for a device without a UUID.
fn file_name(device: &MeasuredDevice) -> Option<String> {
    let is_uuid = !device.uuid.is_empty()
        && device.uuid.len() <= MAX_DRIVER_LETTERS
        && device.uuid.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    let driver: String = device
        .limits
        .driver
        .chars()
        .map(fits)
        .take(MAX_DRIVER_LETTERS)
        .collect();
    is_uuid.then(|| format!("{}-{}-{driver}.json", device.api, device.uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a measurement with a driver, and with a speed of copying in bytes per second.
    fn kept(driver: &str, copy: u64) -> MeasuredDevice {
        MeasuredDevice {
            name: "A GPU".to_owned(),
            uuid: "0a1b".to_owned(),
            api: Api::Cuda,
            limits: MeasuredPeaks {
                driver: driver.to_owned(),
                copy_bytes_per_s: Some(copy),
                ..MeasuredPeaks::default()
            },
            ..MeasuredDevice::default()
        }
    }

    /// Returns the manifest of a recording with that device and driver.
    fn recorded(driver: &str) -> Manifest {
        let device = manifest::Device {
            name: "A GPU".to_owned(),
            uuid: "0a1b".to_owned(),
            api: Api::Cuda,
            driver: driver.to_owned(),
            ..manifest::Device::default()
        };
        Manifest {
            devices: vec![device.clone(), device],
            ..Manifest::default()
        }
    }

    #[test]
    fn a_device_with_the_same_driver_gets_what_was_measured_last() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(&folder.path().join("deep/er"));
        store.save(&kept("one 1.0", 1)).unwrap();
        store.save(&kept("one 1.0", 2)).unwrap();
        store.save(&kept("two", 3)).unwrap();
        let mut manifest = recorded("one 1.0");
        store.add_to(&mut manifest);
        for device in &manifest.devices {
            let measured = device.limits.as_ref().unwrap().measured.as_ref().unwrap();
            assert_eq!(measured.copy_bytes_per_s, Some(2));
        }
        assert!(manifest.notes.is_empty());
        assert_eq!(store.list().devices.len(), 2);
    }

    #[test]
    fn what_another_driver_did_is_not_used_and_that_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        store.save(&kept("old", 1)).unwrap();
        let mut manifest = recorded("new");
        store.add_to(&mut manifest);
        assert!(
            manifest
                .devices
                .iter()
                .all(|device| device.limits.is_none())
        );
        let [note] = manifest.notes.as_slice() else {
            panic!("{:?}", manifest.notes)
        };
        assert!(
            note.contains("the driver old, and new is there now"),
            "{note}"
        );
    }

    #[test]
    fn a_damaged_file_is_said_and_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let path = store.save(&kept("one", 1)).unwrap();
        for text in [
            "",
            "{",
            "[]",
            "{\"uuid\": 3}",
            "{\"uuid\": \"0a1c\"}",
            "\u{0}",
        ] {
            fs::write(folder.path().join("cuda-0a1b-z.json"), text).unwrap();
            let mut manifest = recorded("one");
            store.add_to(&mut manifest);
            assert!(manifest.devices[0].limits.is_some(), "{text}");
            assert_eq!(manifest.notes.len(), 1, "{text}");
        }
        // The file is renamed to that of another device.
        fs::rename(path, folder.path().join("cuda-0a1b-z.json")).unwrap();
        let listed = store.list();
        assert_eq!((listed.devices.len(), listed.damaged.len()), (0, 1));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        for uuid in ["", "../x", "0a/1b"] {
            let wrong = MeasuredDevice {
                uuid: uuid.to_owned(),
                ..kept("one", 1)
            };
            assert!(store.save(&wrong).is_err(), "{uuid}");
        }
        let path = store.save(&kept("../../NVIDIA 1.2, CUDA 13", 1)).unwrap();
        assert_eq!(path.parent(), Some(folder.path()));
    }
}
