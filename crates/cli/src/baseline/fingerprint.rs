//! What runs were recorded on, for people who find a baseline later.

use crate::failure::Failure;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::{rank_folders, read_manifest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Where, with what and how runs were recorded: sets, since runs and ranks may differ. Empty where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// Hosts.
    pub hosts: BTreeSet<Host>,
    /// GPUs.
    pub gpus: BTreeSet<Gpu>,
    /// Commands.
    pub commands: BTreeSet<Vec<String>>,
    /// Sampling modes.
    pub sampling: BTreeSet<String>,
    /// Versions of gapscope that recorded.
    pub recorded_by: BTreeSet<String>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Operating system and version.
    pub system: String,
    /// Processor.
    pub processor: String,
    /// Logical cores.
    pub cores: Option<u32>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Name.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// Distinguishes physical devices; empty where it is not known.
    pub uuid: String,
    /// Greatest clock, kHz.
    pub core_clock_khz: Option<u32>,
}

impl Fingerprint {
    /// That of these traces.
    pub fn read(traces: &[PathBuf]) -> Result<Fingerprint, Failure> {
        let mut all = Fingerprint::default();
        for trace in traces {
            let ranks = rank_folders(trace);
            if ranks.is_empty() {
                all.add(&read_manifest(trace)?);
            }
            for (_, rank) in &ranks {
                all.add(&read_manifest(rank)?);
            }
        }
        Ok(all)
    }

    fn add(&mut self, manifest: &Manifest) {
        self.hosts.insert(Host {
            system: manifest.host.system.clone(),
            processor: manifest.host.processor.clone(),
            cores: manifest.host.cores,
        });
        self.gpus.extend(manifest.devices.iter().map(|device| Gpu {
            name: device.name.clone(),
            driver: device.driver.clone(),
            uuid: device.uuid.clone(),
            core_clock_khz: device.limits.as_ref().and_then(|of| of.core_clock_khz),
        }));
        self.commands.insert(manifest.command.clone());
        self.sampling
            .insert(manifest.sampling_mode.as_str().to_owned());
        self.recorded_by.insert(manifest.gapscope_version.clone());
    }

    /// Says that the GPUs are others of one model.
    pub fn other_gpus(&self, after: &Fingerprint) -> Option<String> {
        let uuids = |of: &Fingerprint| -> BTreeSet<String> {
            let known = of.gpus.iter().map(|gpu| gpu.uuid.clone());
            known.filter(|uuid| !uuid.is_empty()).collect()
        };
        let names = |of: &Fingerprint| -> BTreeSet<String> {
            of.gpus.iter().map(|gpu| gpu.name.clone()).collect()
        };
        let (first, second) = (uuids(self), uuids(after));
        let known = !first.is_empty() && !second.is_empty();
        (known && first != second && names(self) == names(after)).then(|| {
            "The GPUs are not the same ones, though of one model: cards of one model differ by some per cent.".to_owned()
        })
    }

    /// GPUs with their drivers, and hosts.
    pub fn sentence(&self) -> String {
        let gpus: BTreeSet<String> = (self.gpus.iter())
            .map(|gpu| format!("{} ({})", gpu.name, gpu.driver))
            .collect();
        let hosts = self.hosts.iter().map(|host| host.processor.clone());
        let all: Vec<String> = gpus.into_iter().chain(hosts).collect();
        all.join("; ")
    }
}
