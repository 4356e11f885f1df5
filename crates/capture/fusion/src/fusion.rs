//! Runs a capture as it is and with its chains (dispatches that use each other's results) merged, and reports times
//! and differences in outputs. A form is a way to run the window: as captured, with intermediates stored to memory by
//! merged kernels, or with values forwarded in registers. An intermediate is memory by which a chain passes values.

use gapscope_capture::Capture;
use gapscope_capture::Step;
use gapscope_capture::model::MemoryId;
use gapscope_dependencies::{Dependencies, Limits, Node};
use gapscope_device_peaks::{Bandwidth, copy_bandwidth};
use gapscope_replay::{DeviceChoice, Options, Replay, outputs, replay, spread};
use schemars::JsonSchema;
use serde::Serialize;

use crate::chain::{Chain, Chains, Refused, find};
use crate::difference::Difference;
use crate::error::FuseError;
use crate::measure::Probe;
use crate::predict::{Costs, predict};
use crate::refusal::Refusal;
use crate::rewrite::{Form, Rewritten, merged, rewrite};

/// Options of the runs of a capture in all its forms.
#[derive(Debug, Clone, Default)]
pub struct FuseOptions {
    /// The device; `None` for the device with the captured device's name, else the first.
    pub device: Option<DeviceChoice>,
    /// Whether to keep accesses within the bounds of their buffers, if the device can.
    pub robust: bool,
    /// Number of rounds; in each round every form (as captured, stored, forwarded) runs once.
    pub repeat: u32,
}

/// The results of fusion.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Fusion {
    /// The device that everything ran on.
    pub device: String,
    /// The device's driver.
    pub driver: String,
    /// Chains that were found.
    pub chains: Vec<ChainReport>,
    /// Neighbours that do not form a chain.
    pub refused: Vec<Refused>,
    /// Runs of the window as captured.
    pub captured: FormReport,
    /// Runs with intermediates stored and loaded; none: there is no chain.
    pub stored: Option<FormReport>,
    /// Runs with values forwarded in registers.
    pub forwarded: Option<FormReport>,
    /// Median of the runs as captured, in nanoseconds.
    pub captured_ns: Option<u64>,
    /// Median of the runs with intermediates stored.
    pub stored_ns: Option<u64>,
    /// Median of the runs with values forwarded.
    pub forwarded_ns: Option<u64>,
    /// Prediction for the shortest run with values forwarded, which rests on shortest runs.
    pub predicted_ns: Option<u64>,
    /// How fast the device copies buffers.
    pub bandwidth: Vec<Bandwidth>,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// The report of a chain.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChainReport {
    /// Numbers of the chain's dispatches in the window.
    pub dispatches: Vec<u64>,
    /// Names of the dispatches' kernels.
    pub kernels: Vec<String>,
    /// Bytes of the chain's intermediates, each counted once.
    pub intermediate_bytes: u64,
    /// Bytes that are no longer stored when values are forwarded.
    pub bytes_not_stored: u64,
    /// Bytes that are no longer loaded when values are forwarded.
    pub bytes_not_loaded: u64,
    /// Why the chain is not merged; none: it is.
    pub not_stored: Option<Refusal>,
    /// Why values are not forwarded; none: they are.
    pub not_forwarded: Option<Refusal>,
    /// Times of the chain's parts alone, and the prediction for them together.
    pub costs: Option<Costs>,
}

/// The runs of a form.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct FormReport {
    /// Device time of each run in nanoseconds.
    pub runs_ns: Vec<u64>,
    /// Median of the runs.
    pub median_ns: Option<u64>,
    /// The shortest run.
    pub least_ns: Option<u64>,
    /// The longest run.
    pub most_ns: Option<u64>,
    /// Pieces of outputs that were compared with the program's.
    pub outputs_compared: u64,
    /// Pieces that are equal.
    pub outputs_equal: u64,
    /// Pieces that cannot be compared, as they are intermediates that are no longer stored.
    pub outputs_left_out: u64,
    /// Difference between outputs at the end of the window and those of the window as captured, both on this device.
    pub difference: Option<Difference>,
}

/// Runs a capture in all forms in turn, compares their outputs, times the parts of each chain alone, and returns the
/// report. `progress` is called with a text before each part.
///
/// # Errors
/// The capture cannot be run, or changed captures cannot be made.
pub fn fuse(
    capture: &Capture,
    options: &FuseOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Fusion, FuseError> {
    progress("following invocations");
    let found = find(capture, Limits::default());
    let nodes = match found.chains.is_empty() {
        true => Vec::new(),
        false => {
            Dependencies::from_capture(capture, Limits::default(), &mut |_| ())
                .graph
                .nodes
        }
    };
    let folder = tempfile::tempdir()?;
    let mut forms: Vec<(Form, Rewritten)> = Vec::new();
    if !found.chains.is_empty() {
        progress("merging kernels");
        for (form, name) in [(Form::Stored, "stored"), (Form::Forwarded, "forwarded")] {
            let changed = rewrite(capture, &found, form, &nodes, &folder.path().join(name))?;
            forms.push((form, changed));
        }
    }
    let mut reports: Vec<FormReport> = vec![FormReport::default(); forms.len() + 1];
    let mut last: Option<Replay> = None;
    for round in 0..options.repeat.max(1) {
        progress(&format!("round {} of {}", round + 1, options.repeat.max(1)));
        let changed = forms.iter().map(|(_, of)| &of.capture);
        for (report, capture) in reports
            .iter_mut()
            .zip(std::iter::once(capture).chain(changed))
        {
            let run = Options {
                device: options.device.clone(),
                robust: options.robust,
                repeat: 1,
                // The warm-up compiles the kernels.
                warm_up: 1,
                ..Options::default()
            };
            let result = replay(capture, &run)?;
            report.runs_ns.extend(result.median_ns);
            report.outputs_compared += result.outputs_compared;
            report.outputs_equal += result.outputs_equal;
            last = Some(result);
        }
    }
    for report in &mut reports {
        report.summarise();
    }
    if !forms.is_empty() {
        progress("comparing outputs");
        let ranges = ends(capture);
        let base = outputs(capture, options.device.as_ref(), options.robust, &ranges)?;
        for (report, (_, changed)) in reports[1..].iter_mut().zip(&forms) {
            report.outputs_left_out = changed.outputs_left_out;
            let kept = ends(&changed.capture);
            let held = outputs(
                &changed.capture,
                options.device.as_ref(),
                options.robust,
                &kept,
            )?;
            report.difference = Some(compare(&ranges, &base, &kept, &held));
        }
    }
    let mut probe = Probe {
        capture,
        device: options.device.as_ref(),
        folder: folder.path(),
        made: 0,
    };
    let mut bandwidth = Vec::new();
    let mut chains: Vec<ChainReport> = Vec::new();
    for (number, chain) in found.chains.iter().enumerate() {
        progress(&format!(
            "measuring chain {} of {}",
            number + 1,
            found.chains.len()
        ));
        let mut report = describe(capture, &found, chain, &nodes);
        report.not_stored = forms.first().and_then(|(_, of)| of.refused[number].clone());
        report.not_forwarded = forms.get(1).and_then(|(_, of)| of.refused[number].clone());
        let same = chains.iter().find(|known| {
            known.kernels == report.kernels
                && known.bytes_not_stored == report.bytes_not_stored
                && known.intermediate_bytes == report.intermediate_bytes
        });
        report.costs = match same {
            Some(known) => known.costs.clone(),
            None => predict(&mut probe, &found, chain, &nodes, &mut bandwidth)?,
        };
        chains.push(report);
    }
    if !chains.is_empty() {
        let captured = &capture.header.device.name;
        bandwidth.extend(copy_bandwidth(options.device.as_ref(), captured)?);
    }
    let captured_ns = reports[0].median_ns;
    let predicted_ns = predicted(&reports[0], &chains);
    let mut reports = reports.into_iter();
    let captured = reports.next().unwrap_or_default();
    let (stored, forwarded) = (reports.next(), reports.next());
    let facts = last.map(|replay| (replay.device, replay.driver, replay.notes));
    let (device, driver, notes) = facts.unwrap_or_default();
    Ok(Fusion {
        device,
        driver,
        chains,
        refused: found.refused,
        captured_ns,
        stored_ns: stored.as_ref().and_then(|of| of.median_ns),
        forwarded_ns: forwarded.as_ref().and_then(|of| of.median_ns),
        predicted_ns,
        bandwidth,
        notes,
        captured,
        stored,
        forwarded,
    })
}

impl FormReport {
    fn summarise(&mut self) {
        [self.least_ns, self.median_ns, self.most_ns] = spread(&self.runs_ns);
    }
}

impl Fusion {
    /// Returns whether outputs were compared, and all are equal in the captured and the stored form.
    pub fn is_exact(&self) -> bool {
        let equal = |of: &FormReport| of.outputs_compared == of.outputs_equal;
        let same = |of: &FormReport| equal(of) && of.difference.is_none_or(|of| of.different == 0);
        self.captured.outputs_compared > 0
            && equal(&self.captured)
            && self.stored.as_ref().is_none_or(same)
    }
}

/// Predicts the time of the window with values forwarded. The times of the parts and of the whole are those of
/// shortest runs. It is `None` if a merged chain was not timed.
fn predicted(captured: &FormReport, chains: &[ChainReport]) -> Option<u64> {
    let captured = captured.least_ns.filter(|_| !chains.is_empty())? as f64;
    let merged = chains.iter().filter(|chain| chain.not_stored.is_none());
    let costs = merged
        .map(|chain| chain.costs.as_ref())
        .collect::<Option<Vec<_>>>()?;
    let apart: f64 = costs.iter().map(|costs| costs.apart_ns).sum();
    let together: f64 = costs.iter().map(|costs| costs.predicted_ns).sum();
    // If the parts alone took longer than the whole, the machine was slower then, so that only their share counts.
    let scale = (captured / apart.max(1.0)).min(1.0);
    Some((captured - (apart - together) * scale).max(0.0) as u64)
}

/// Describes a chain, without its refusals and costs.
fn describe(
    capture: &Capture,
    found: &Chains<'_>,
    chain: &Chain<'_>,
    nodes: &[Node],
) -> ChainReport {
    let name =
        |of: &crate::chain::Member<'_>| capture.pipelines[&of.dispatch.pipeline].name.clone();
    let forwarded = merged(capture, found, chain, Form::Forwarded, nodes);
    let saved = forwarded
        .as_ref()
        .map_or((0, 0), |of| (of.bytes_not_stored, of.bytes_not_loaded));
    ChainReport {
        dispatches: chain.members.iter().map(|member| member.number).collect(),
        kernels: chain.members.iter().map(name).collect(),
        intermediate_bytes: chain
            .carried()
            .map(|region| region.stores[region.writer].bytes())
            .sum(),
        bytes_not_stored: saved.0,
        bytes_not_loaded: saved.1,
        not_stored: None,
        not_forwarded: None,
        costs: None,
    }
}

/// Returns the memory ranges that the outcomes of the window cover, each once, as allocation, offset and size.
fn ends(capture: &Capture) -> Vec<(MemoryId, u64, u64)> {
    let mut after: Vec<(MemoryId, u64, u64)> = Vec::new();
    for step in &capture.steps {
        if let Step::Outcome(of) = step {
            let range = (of.memory, of.offset, of.bytes);
            if !after.contains(&range) {
                after.push(range);
            }
        }
    }
    after
}

/// Compares the bytes that both forms have. Each form is given as ranges, and the bytes of each.
fn compare(
    one: &[(MemoryId, u64, u64)],
    of_one: &[Vec<u8>],
    other: &[(MemoryId, u64, u64)],
    of_other: &[Vec<u8>],
) -> Difference {
    let mut difference = Difference::default();
    for ((memory, offset, bytes), held) in other.iter().zip(of_other) {
        for ((known, at, size), base) in one.iter().zip(of_one) {
            let (from, to) = (*offset.max(at), (offset + bytes).min(at + size));
            if memory == known && from < to {
                difference.add(
                    &base[(from - at) as usize..(to - at) as usize],
                    &held[(from - offset) as usize..(to - offset) as usize],
                );
            }
        }
    }
    difference
}
