//! Describes the machines, GPUs and commands of recorded runs, for people who find a baseline later.

use crate::failure::Failure;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::{rank_folders, read_manifest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Where, with what and how runs were recorded. The fields are sets because runs and ranks may differ; they are empty
/// where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// The machines.
    pub hosts: BTreeSet<Host>,
    /// The GPUs.
    pub gpus: BTreeSet<Gpu>,
    /// The commands.
    pub commands: BTreeSet<Vec<String>>,
    /// The sampling modes.
    pub sampling: BTreeSet<String>,
    /// The versions of gapscope that recorded.
    pub recorded_by: BTreeSet<String>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The operating system and its version.
    pub system: String,
    /// The name of the processor.
    pub processor: String,
    /// The number of logical cores.
    pub cores: Option<u32>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// The GPU's name.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// The UUID, which distinguishes physical devices; empty where it is not known.
    pub uuid: String,
    /// The greatest clock in kHz.
    pub core_clock_khz: Option<u32>,
}

impl Fingerprint {
    /// Returns the fingerprint of traces, each of one process or of several ranks, from their manifests.
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

    /// Adds the machine, GPUs and command of one trace.
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

    /// Returns a sentence if the GPUs of `after` are other devices of the same model.
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

    /// Returns the GPUs with their drivers, and the processors.
    pub fn sentence(&self) -> String {
        let gpus: BTreeSet<String> = (self.gpus.iter())
            .map(|gpu| format!("{} ({})", gpu.name, gpu.driver))
            .collect();
        let hosts = self.hosts.iter().map(|host| host.processor.clone());
        let all: Vec<String> = gpus.into_iter().chain(hosts).collect();
        all.join("; ")
    }
}
