//! What merging a chain is predicted to save.
//!
//! What loads and stores cost is measured by a kernel that does nothing else, of the size and the workgroups of the chain: on a GPU that is
//! its memory, on a CPU mostly the instructions for it. A kernel that takes little more than its bytes at that speed waits for them, and
//! what it takes beside them adds to them; one that takes far more hides them behind its arithmetic, and saves nothing but its launch.

use gapscope_dependencies::Node;
use gapscope_device_peaks::{Bandwidth, Copier};
use schemars::JsonSchema;
use serde::Serialize;

use crate::chain::{Chain, Found};
use crate::fusion::{FuseError, node_of};
use crate::measure::Probe;
use crate::rewrite::{Form, merged};

/// What a chain costs, in nanoseconds and bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Costs {
    /// An empty dispatch with as many workgroups, and a barrier.
    pub launch_ns: f64,
    /// Each dispatch alone, with a barrier.
    pub members_ns: Vec<f64>,
    /// Their sum.
    pub apart_ns: f64,
    /// Different bytes that each reads and writes.
    pub members_bytes: Vec<u64>,
    /// Those of the merged kernel.
    pub merged_bytes: u64,
    /// A kernel that copies the chain's intermediate, with as many workgroups, and a barrier.
    pub copy_ns: f64,
    /// Bytes that it reads and writes, a second, without its launch.
    pub bytes_per_s: f64,
    /// Of each dispatch: its time is that of its memory.
    pub memory_bound: Vec<bool>,
    /// What the merged kernel is predicted to take.
    pub predicted_ns: f64,
    /// What it took, alone and with a barrier.
    pub merged_ns: Option<f64>,
}

/// A kernel whose bytes take more than this share of its time is taken to wait for memory.
const MEMORY_SHARE: f64 = 1.0 / 3.0;

/// Measures a chain's parts. None: the queue has no timestamps.
pub fn predict(
    probe: &mut Probe<'_>,
    found: &Found<'_>,
    chain: &Chain<'_>,
    nodes: &[Node],
    bandwidth: &mut Vec<Bandwidth>,
) -> Result<Option<Costs>, FuseError> {
    let capture = probe.capture;
    let carried = chain
        .regions
        .iter()
        .filter(|region| !region.carried_into.is_empty());
    let size = carried
        .map(|region| region.stores[region.writer].bytes())
        .max()
        .unwrap_or(0);
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
    let costs = Costs::of(
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
    /// From what was measured.
    fn of(
        launch_ns: f64,
        (copy_ns, copy_bytes): (f64, u64),
        members_ns: Vec<f64>,
        members_bytes: Vec<u64>,
        merged_bytes: u64,
    ) -> Costs {
        // A copy that takes no longer than nothing at all would be infinitely fast.
        let bytes_per_s = copy_bytes as f64 / (copy_ns - launch_ns).max(1.0) * 1e9;
        let memory_ns = |bytes: u64| bytes as f64 / bytes_per_s * 1e9;
        let beside = |ns: &f64| (ns - launch_ns).max(0.0);
        let memory_bound: Vec<bool> = (members_ns.iter().zip(&members_bytes))
            .map(|(ns, bytes)| memory_ns(*bytes) > MEMORY_SHARE * beside(ns))
            .collect();
        // What adds to the bytes of a kernel that waits for them, and the arithmetic of one that hides them. What hides behind bytes is not
        // known, and taken to be 0.
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
        // A launch takes 10 ns, and a byte 1 ns.
        Costs::of(10.0, (110.0, 100), members.to_vec(), bytes.to_vec(), merged).predicted_ns
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
