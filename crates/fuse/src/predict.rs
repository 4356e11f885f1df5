//! What merging a chain is predicted to save.
//!
//! A kernel alone takes its launch and, beside that, the greater of what its arithmetic and its memory take. Which of the two it was is
//! told by its bytes and the device's bandwidth. Merged, launches but one are gone; memory takes the bytes that are left; arithmetic
//! takes what it took, and the greater of both counts.

use gapscope_dependencies::Node;
use serde::Serialize;

use crate::chain::{Chain, Found};
use crate::fusion::{FuseError, node_of};
use crate::measure::{Bandwidth, Probe};
use crate::rewrite::{Form, merged};

/// What a chain costs, in nanoseconds and bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Of copies of the size of the chain's intermediate.
    pub bytes_per_s: f64,
    /// Of each dispatch: its time is that of its memory.
    pub memory_bound: Vec<bool>,
    /// What the merged kernel is predicted to take.
    pub predicted_ns: f64,
    /// What it took, alone and with a barrier.
    pub merged_ns: Option<f64>,
}

/// A kernel whose bytes take more than this share of its time is taken to wait for memory.
const MEMORY_SHARE: f64 = 0.5;

/// Measures a chain's parts. None: the queue has no timestamps.
pub fn predict(
    probe: &mut Probe<'_>,
    found: &Found<'_>,
    chain: &Chain<'_>,
    nodes: &[Node],
    bandwidth: &mut Vec<Bandwidth>,
) -> Result<Option<Costs>, FuseError> {
    let capture = probe.capture;
    let carried = chain.regions.iter().filter(|region| !region.carried_into.is_empty());
    let size = carried.map(|region| region.stores[region.writer].bytes()).max().unwrap_or(0);
    let known = bandwidth.iter().find(|of| of.buffer_bytes == size).copied();
    let measured = match known {
        Some(known) => Some(known),
        None if size == 0 => None,
        None => probe.bandwidth(size)?,
    };
    if known.is_none() {
        bandwidth.extend(measured);
    }
    let (Some(launch_ns), Some(measured)) = (probe.launch(chain)?, measured) else {
        return Ok(None);
    };
    let mut members_ns = Vec::new();
    for number in 0..chain.members.len() {
        let Some(ns) = probe.member(chain, number)? else { return Ok(None) };
        members_ns.push(ns);
    }
    let bytes = chain.members.iter().map(|member| {
        let (read, written) = nodes[node_of(capture, member.executed)].bytes();
        read + written
    });
    let members_bytes: Vec<u64> = bytes.collect();
    let form = [Form::Forwarded, Form::Stored];
    let Some(merged) =
        form.into_iter().find_map(|form| merged(capture, found, chain, form, nodes).ok())
    else {
        return Ok(None);
    };
    let merged_ns = probe.merged(chain, &merged)?;
    let sum: u64 = members_bytes.iter().sum();
    let merged_bytes = sum.saturating_sub(merged.bytes_not_stored + merged.bytes_not_loaded);
    let bytes_per_s = measured.bytes_per_s;
    let costs = Costs::of(launch_ns, members_ns, members_bytes, merged_bytes, bytes_per_s);
    Ok(Some(Costs { merged_ns, ..costs }))
}

impl Costs {
    /// From what was measured.
    fn of(
        launch_ns: f64,
        members_ns: Vec<f64>,
        members_bytes: Vec<u64>,
        merged_bytes: u64,
        bytes_per_s: f64,
    ) -> Costs {
        let memory_ns = |bytes: u64| bytes as f64 / bytes_per_s * 1e9;
        let beside = |ns: &f64| (ns - launch_ns).max(0.0);
        let memory_bound: Vec<bool> = (members_ns.iter().zip(&members_bytes))
            .map(|(ns, bytes)| memory_ns(*bytes) > MEMORY_SHARE * beside(ns))
            .collect();
        // What is left of a kernel's time without its bytes; arithmetic that hid behind memory is not known, and taken to be 0.
        let arithmetic = members_ns.iter().zip(&members_bytes).zip(&memory_bound);
        let arithmetic = arithmetic.map(|((ns, bytes), waits)| match waits {
            true => (beside(ns) - memory_ns(*bytes)).max(0.0),
            false => beside(ns),
        });
        let arithmetic: f64 = arithmetic.sum();
        Costs {
            launch_ns,
            apart_ns: members_ns.iter().sum(),
            predicted_ns: launch_ns + arithmetic.max(memory_ns(merged_bytes)),
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
        Costs::of(10.0, members.to_vec(), bytes.to_vec(), merged, 1e9).predicted_ns
    }

    #[test]
    fn what_waits_for_memory_saves_its_bytes_and_its_launch() {
        assert_eq!(predicted(&[110.0, 110.0], &[100, 100], 100), 110.0);
    }

    #[test]
    fn what_computes_saves_its_launch_alone() {
        assert_eq!(predicted(&[1010.0, 510.0], &[100, 100], 100), 1510.0);
    }
}
