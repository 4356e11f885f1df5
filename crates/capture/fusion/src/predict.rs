//! Predicts the time that merging a chain (dispatches that can be one) saves, from times of its parts alone.
//!
//! The cost of loads and stores is measured by a kernel that only copies, with the size and the workgroups of the
//! chain. A kernel of the chain whose bytes take a large share of its time at that speed waits for memory; the rest
//! of its time adds to that of the bytes. A kernel that takes much longer hides its bytes behind arithmetic, so that
//! merging saves only its launch.

use gapscope_dependencies::Node;
use gapscope_device_peaks::{Bandwidth, Copier};
use schemars::JsonSchema;
use serde::Serialize;

use crate::chain::{Chain, Chains};
use crate::error::FuseError;
use crate::liveness::node_of;
use crate::measure::Probe;
use crate::rewrite::{Form, merged};

/// The costs of a chain, in nanoseconds and bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Costs {
    /// Time of an empty dispatch with the same number of workgroups, and a barrier.
    pub launch_ns: f64,
    /// Time of each dispatch alone, with a barrier.
    pub members_ns: Vec<f64>,
    /// Sum of these times.
    pub apart_ns: f64,
    /// Number of different bytes that each dispatch reads and writes.
    pub members_bytes: Vec<u64>,
    /// Number of different bytes that the merged kernel reads and writes.
    pub merged_bytes: u64,
    /// Time of a kernel that copies the chain's intermediate with the same number of workgroups, and a barrier.
    pub copy_ns: f64,
    /// Bytes that this kernel reads and writes in a second, without its launch.
    pub bytes_per_s: f64,
    /// For each dispatch whether its time is that of its memory.
    pub memory_bound: Vec<bool>,
    /// Prediction for the merged kernel.
    pub predicted_ns: f64,
    /// Time of the merged kernel alone, with a barrier.
    pub merged_ns: Option<f64>,
}

/// A kernel counts as waiting for memory if its bytes take more than this share of its time.
const MEMORY_SHARE: f64 = 1.0 / 3.0;

/// Measures and predicts the costs of a chain, merged with values forwarded in registers where that is possible. The
/// time of a copy by the driver is added to `bandwidth`, one for each size. Returns `None` if the chain cannot be
/// merged or passes no bytes, or if the queue has no timestamps.
pub fn predict(
    probe: &mut Probe<'_>,
    found: &Chains<'_>,
    chain: &Chain<'_>,
    nodes: &[Node],
    bandwidth: &mut Vec<Bandwidth>,
) -> Result<Option<Costs>, FuseError> {
    let capture = probe.capture;
    let sizes = (chain.carried()).map(|region| region.stores[region.writer].bytes());
    let size = sizes.max().unwrap_or(0);
    let form = [Form::Forwarded, Form::Stored];
    let Some(merged) = form
        .into_iter()
        .find_map(|form| merged(capture, found, chain, form, nodes).ok())
    else {
        return Ok(None);
    };
    if size == 0 {
        return Ok(None);
    }
    let mut prepared = vec![
        probe.launch(chain)?,
        probe.copying(chain, size.next_multiple_of(4))?,
        probe.bandwidth(size)?,
        probe.merged(chain, &merged)?,
    ];
    for number in 0..chain.members.len() {
        prepared.push(probe.member(chain, number)?);
    }
    let Some(mut prepared) = prepared.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    probe.run(&mut prepared)?;
    let times = prepared
        .iter()
        .map(|of| of.least_ns)
        .collect::<Option<Vec<f64>>>();
    let Some([launch_ns, copy_ns, buffer_ns, merged_ns, members_ns @ ..]) = times.as_deref() else {
        return Ok(None);
    };
    if !bandwidth.iter().any(|of| of.buffer_bytes == size) {
        bandwidth.push(Bandwidth::from_time(Copier::Command, size, *buffer_ns));
    }
    let bytes = chain.members.iter().map(|member| {
        let (read, written) = nodes[node_of(capture, member.executed)].bytes();
        read + written
    });
    let members_bytes: Vec<u64> = bytes.collect();
    let sum: u64 = members_bytes.iter().sum();
    let merged_bytes = sum.saturating_sub(merged.bytes_not_stored + merged.bytes_not_loaded);
    let copy = (*copy_ns, 2 * size);
    let costs = Costs::new(
        *launch_ns,
        copy,
        members_ns.to_vec(),
        members_bytes,
        merged_bytes,
    );
    Ok(Some(Costs {
        merged_ns: Some(*merged_ns),
        ..costs
    }))
}

impl Costs {
    /// Computes the costs from the measured times.
    fn new(
        launch_ns: f64,
        (copy_ns, copy_bytes): (f64, u64),
        members_ns: Vec<f64>,
        members_bytes: Vec<u64>,
        merged_bytes: u64,
    ) -> Costs {
        // `copy_ns` and `copy_bytes` are of the kernel that only copies; `beside` is a time without that of a launch.
        // A copy that seems to take no longer than an empty dispatch would be infinitely fast.
        let bytes_per_s = copy_bytes as f64 / (copy_ns - launch_ns).max(1.0) * 1e9;
        let memory_ns = |bytes: u64| bytes as f64 / bytes_per_s * 1e9;
        let beside = |ns: &f64| (ns - launch_ns).max(0.0);
        let memory_bound: Vec<bool> = (members_ns.iter().zip(&members_bytes))
            .map(|(ns, bytes)| memory_ns(*bytes) > MEMORY_SHARE * beside(ns))
            .collect();
        // `adding` is time of kernels that wait for memory beyond that of their bytes; `hiding` is the arithmetic of
        // the other kernels. Arithmetic that hides behind bytes is not known, and counts as 0.
        let (mut adding, mut hiding) = (0.0, 0.0);
        for ((ns, bytes), waits) in members_ns.iter().zip(&members_bytes).zip(&memory_bound) {
            match waits {
                true => adding += (beside(ns) - memory_ns(*bytes)).max(0.0),
                false => hiding += beside(ns),
            }
        }
        Costs {
            launch_ns,
            copy_ns,
            apart_ns: members_ns.iter().sum(),
            predicted_ns: launch_ns + adding + memory_ns(merged_bytes).max(hiding),
            members_ns,
            members_bytes,
            merged_bytes,
            bytes_per_s,
            memory_bound,
            merged_ns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(members: &[f64], bytes: &[u64], merged: u64) -> f64 {
        // A launch takes 10 ns, and each byte 1 ns.
        Costs::new(10.0, (110.0, 100), members.to_vec(), bytes.to_vec(), merged).predicted_ns
    }

    #[test]
    fn what_waits_for_memory_saves_its_bytes_and_its_launch() {
        assert_eq!(predicted(&[110.0, 110.0], &[100, 100], 100), 110.0);
    }

    #[test]
    fn what_adds_to_bytes_stays() {
        assert_eq!(predicted(&[130.0, 115.0], &[100, 100], 100), 135.0);
    }

    #[test]
    fn what_computes_saves_its_launch_alone() {
        assert_eq!(predicted(&[1010.0, 510.0], &[100, 100], 100), 1510.0);
    }
}
