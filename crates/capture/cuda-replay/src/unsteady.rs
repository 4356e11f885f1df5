//! Says whether launches differ between their own runs, and by how much: runs of one replay go in.

use std::collections::BTreeMap;

use gapscope_replay::Element;
use schemars::JsonSchema;
use serde::Serialize;

use crate::session::Run;

/// The launches of a capture leave other bytes from one of their runs to the next, as with atomic additions of floats.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Unsteady {
    /// Runs whose outputs differ from those of the first run.
    pub differing_runs: u64,
    /// All runs.
    pub runs: u64,
    /// The launches whose outputs differ, by their numbers.
    pub launches: Vec<u64>,
    /// The type of numbers that the spread was computed with.
    pub element: Option<Element>,
    /// The greatest difference between two runs of an element, as a share of the greater value; `None`: not known, as
    /// bytes were not kept, or are no such numbers.
    pub relative_spread: Option<f64>,
    /// The greatest number of floats between the two values of an element, where the elements are floats.
    pub ulps: Option<u64>,
}

/// Compares runs with the first of them; `None` if all are equal, or there is one.
pub fn unsteady(runs: &[Run], element: Option<Element>) -> Option<Unsteady> {
    let (first, others) = runs.split_first()?;
    let mut launches = Vec::new();
    let mut differing_runs = 0;
    for run in others {
        let pairs = first.outputs.iter().zip(&run.outputs);
        let differing: Vec<u64> = pairs
            .filter(|(a, b)| a.2 != b.2)
            .map(|(a, _)| a.0 as u64)
            .collect();
        let strays = |run: &Run| -> Vec<_> {
            let strays = run
                .different
                .iter()
                .filter(|found| found.cell.changed.is_none());
            strays
                .map(|found| (found.stage, found.cell.range, found.here))
                .collect()
        };
        let has_other_strays = strays(first) != strays(run);
        if !differing.is_empty() || has_other_strays {
            differing_runs += 1;
        }
        launches.extend(differing);
        if has_other_strays {
            let all = first.different.iter().chain(&run.different);
            launches.extend(all.map(|found| found.stage as u64));
        }
    }
    if differing_runs == 0 {
        return None;
    }
    launches.sort_unstable();
    launches.dedup();
    let element = element.unwrap_or(Element::F32);
    let spread = spread(runs, element);
    Some(Unsteady {
        differing_runs,
        runs: runs.len() as u64,
        launches,
        element: spread.map(|_| element),
        relative_spread: spread.map(|(share, _)| share),
        ulps: spread.and_then(|(_, ulps)| ulps),
    })
}

/// Returns the greatest difference of an element between the first run and another, over the pieces whose bytes were kept,
/// as a share and in units in the last place. `None` where the bytes are not numbers of this type.
fn spread(runs: &[Run], element: Element) -> Option<(f64, Option<u64>)> {
    let mut first_bytes = BTreeMap::new();
    for found in &runs.first()?.different {
        let range = found.cell.range;
        let bytes = found.bytes.as_deref();
        first_bytes.insert((found.stage, range.memory, range.offset), bytes);
    }
    let mut greatest: Option<(f64, Option<u64>)> = None;
    for found in runs.iter().skip(1).flat_map(|run| &run.different) {
        let range = found.cell.range;
        let key = (found.stage, range.memory, range.offset);
        let (Some(Some(a)), Some(b)) = (first_bytes.get(&key), &found.bytes) else {
            continue;
        };
        let here = between(a, b, element)?;
        greatest = Some(match greatest {
            Some((share, ulps)) => (share.max(here.0), ulps.max(here.1)),
            None => here,
        });
    }
    greatest
}

/// Returns the greatest difference between two arrays as a share of the greater value, and in units in the last place for
/// floats. `None` where a differing element is not finite, or is out of the range of usual numbers.
pub fn between(a: &[u8], b: &[u8], element: Element) -> Option<(f64, Option<u64>)> {
    /// Bytes of another type, read as floats, are mostly beyond these.
    const USUAL: std::ops::Range<f64> = 1e-30..1e30;
    let size = element.bytes() as usize;
    let (mut share, mut ulps) = (0.0_f64, 0);
    for (a, b) in a.chunks_exact(size).zip(b.chunks_exact(size)) {
        if a == b {
            continue;
        }
        let values = [element.value(a), element.value(b)];
        let is_usual = |value: f64| value == 0.0 || USUAL.contains(&value.abs());
        if element.is_float() && !values.iter().all(|value| is_usual(*value)) {
            return None;
        }
        let most = values[0].abs().max(values[1].abs());
        if most > 0.0 {
            share = share.max((values[0] - values[1]).abs() / most);
        }
        ulps = ulps.max(ordered(a).abs_diff(ordered(b)));
    }
    Some((share, element.is_float().then_some(ulps)))
}

/// Maps the bits of a float to an integer such that neighbouring floats are neighbouring integers.
fn ordered(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let sign = 1_i64.wrapping_shl(bytes.len() as u32 * 8 - 1);
    let bits = i64::from_le_bytes(wide);
    let magnitude = bits & sign.wrapping_sub(1);
    match bits & sign {
        0 => magnitude,
        _ => -magnitude,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_floats_is_in_units_in_the_last_place() {
        let bytes = |value: f32| value.to_le_bytes();
        let next = f32::from_bits(1.0_f32.to_bits() + 3);
        let (share, ulps) = between(&bytes(1.0), &bytes(next), Element::F32).unwrap();
        assert_eq!(ulps, Some(3));
        assert!(share > 3e-7 && share < 4e-7);
        let tiny = f32::from_bits(1);
        assert_eq!(ordered(&bytes(tiny)) - ordered(&bytes(-tiny)), 2);
        assert_eq!(ordered(&bytes(0.0)), ordered(&bytes(-0.0)));
        assert_eq!(between(&bytes(1.0), &bytes(f32::NAN), Element::F32), None);
    }
}
