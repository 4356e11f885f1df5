//! Digests as they are kept in files: of the figures of a run, and not of its trace.

use super::digest::{Evaluations, KernelDigest, Machine, Reading, RunDigest};
use super::metric::Metric;
use super::samples::{Blocks, Lengths};
use gapscope_trace::manifest::SamplingMode;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Serialize, Deserialize)]
struct Run {
    name: String,
    started_unix_ns: Option<i64>,
    machine: KeptMachine,
    flaws: Vec<String>,
    figures: BTreeMap<String, Figure>,
    kernels: Vec<Kernel>,
    evaluations: Vec<Evaluated>,
    idle_known: bool,
}

#[derive(Serialize, Deserialize)]
struct KeptMachine {
    host: BTreeSet<String>,
    devices: Vec<String>,
    drivers: BTreeSet<String>,
    sampling: BTreeSet<String>,
    versions: BTreeSet<String>,
    clocks: BTreeSet<u32>,
    ranks: usize,
}

#[derive(Serialize, Deserialize)]
struct Figure {
    value: Option<f64>,
    blocks: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Evaluated {
    path: String,
    count: u64,
}

#[derive(Serialize, Deserialize)]
struct Kernel {
    name: String,
    path: String,
    count: u64,
    timed: u64,
    total_ns: i64,
    blocks: Blocks,
    lengths: Lengths,
}

impl Serialize for RunDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = self.clone();
        let machine = run.machine;
        let figures = run.figures.into_iter();
        let kernels = run.kernels.into_iter();
        let evaluations = run.evaluations.into_iter();
        Run {
            name: run.name,
            started_unix_ns: run.started_unix_ns,
            machine: KeptMachine {
                host: machine.host,
                devices: machine.devices,
                drivers: machine.drivers,
                sampling: machine.sampling.iter().map(|&of| of.to_owned()).collect(),
                versions: machine.versions,
                clocks: machine.clocks,
                ranks: machine.ranks,
            },
            flaws: run.flaws,
            figures: figures
                .map(|(metric, Reading { value, blocks })| (metric.key(), Figure { value, blocks }))
                .collect(),
            kernels: kernels
                .map(|of| Kernel {
                    name: of.name,
                    path: of.path,
                    count: of.count,
                    timed: of.timed,
                    total_ns: of.total_ns,
                    blocks: of.blocks,
                    lengths: of.lengths,
                })
                .collect(),
            evaluations: evaluations
                .map(|Evaluations { path, count }| Evaluated { path, count })
                .collect(),
            idle_known: run.idle_known,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunDigest, D::Error> {
        let run = Run::deserialize(deserializer)?;
        let machine = run.machine;
        let figures = run
            .figures
            .into_iter()
            .map(|(key, Figure { value, blocks })| {
                let metric = Metric::of_key(&key);
                let metric =
                    metric.ok_or_else(|| D::Error::custom(format!("no figure is called {key}")))?;
                Ok((metric, Reading { value, blocks }))
            });
        let sampling = machine.sampling.iter().map(|mode| {
            sampling(mode)
                .ok_or_else(|| D::Error::custom(format!("no sampling mode is called {mode}")))
        });
        let kernels = run.kernels.into_iter();
        let evaluations = run.evaluations.into_iter();
        Ok(RunDigest {
            name: run.name,
            started_unix_ns: run.started_unix_ns,
            machine: Machine {
                host: machine.host,
                devices: machine.devices,
                drivers: machine.drivers,
                sampling: sampling.collect::<Result<_, D::Error>>()?,
                versions: machine.versions,
                clocks: machine.clocks,
                ranks: machine.ranks,
            },
            flaws: run.flaws,
            figures: figures.collect::<Result<_, D::Error>>()?,
            kernels: kernels
                .map(|of| KernelDigest {
                    name: of.name,
                    path: of.path,
                    count: of.count,
                    timed: of.timed,
                    total_ns: of.total_ns,
                    blocks: of.blocks,
                    lengths: of.lengths,
                })
                .collect(),
            evaluations: evaluations
                .map(|Evaluated { path, count }| Evaluations { path, count })
                .collect(),
            idle_known: run.idle_known,
        })
    }
}

fn sampling(word: &str) -> Option<&'static str> {
    [
        SamplingMode::CommandBuffer,
        SamplingMode::Pass,
        SamplingMode::Dispatch,
        SamplingMode::DispatchSerialised,
    ]
    .into_iter()
    .map(SamplingMode::as_str)
    .find(|known| *known == word)
}
