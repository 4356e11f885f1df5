//! Checks for every invocation that one invocation may run several kernels one after the other, as several dispatches
//! did: dispatches and the bytes that each invocation reaches (trails) go in, the [`Region`]s through which the
//! kernels pass values come out, or a [`Refusal`].
//!
//! In all memory that one kernel writes and another reaches, each element must be reached by only one invocation,
//! which is the same in all kernels. Then no order between invocations matters, and the order within an invocation is
//! that of the program.

use std::ops::Range;

use gapscope_capture::Capture;
use gapscope_capture::model::{BufferRange, Dispatch, MemoryId};
use gapscope_dependencies::{ByteSet, Run, Trail};

use crate::refusal::Refusal;

/// The most elements of a region, and the most invocations; beyond them merging is refused.
const MAX_ELEMENTS: u64 = 1 << 28;

/// Memory that a kernel of a chain writes and another one reaches.
#[derive(Debug, Clone)]
pub struct Region {
    /// Id of the allocation.
    pub memory: MemoryId,
    /// The bound range of the allocation.
    pub range: Range<u64>,
    /// Index of the first kernel that writes the memory.
    pub writer: usize,
    /// Indices of the kernels that load what an earlier kernel stored.
    pub carried_into: Vec<usize>,
    /// For each kernel whether it loads from the memory.
    pub loads: Vec<bool>,
    /// For each kernel the bytes that it stores, by their offset in the allocation.
    pub stores: Vec<ByteSet>,
    /// For each kernel whether the last kernel that stores here overwrites all bytes that the kernel stored.
    pub is_overwritten: Vec<bool>,
    /// Why values cannot be forwarded in registers; `None` if they can.
    pub not_forwarded: Option<Refusal>,
}

/// The bytes of one bound range that the invocations of one kernel reach, as runs: equal accesses of consecutive
/// invocations at a constant step. `unknown` says why they are not known.
struct Reach<'a> {
    /// Index of the kernel in the chain.
    kernel: usize,
    memory: MemoryId,
    range: Range<u64>,
    reads: &'a [Run],
    writes: &'a [Run],
    unknown: Option<Refusal>,
}

/// Finds the memory through which kernels pass values, and checks that merging them changes nothing. Ranges that
/// overlap are examined together; memory of one kernel only, or that no kernel writes, is left out.
pub fn prove(capture: &Capture, members: &[(&Dispatch, &Trail)]) -> Result<Vec<Region>, Refusal> {
    let mut reaches = Vec::new();
    for (kernel, (dispatch, trail)) in members.iter().enumerate() {
        if let Some(reason) = &trail.beyond {
            return Err(Refusal::Unknown(reason.to_string()));
        }
        let bound: Vec<BufferRange> = dispatch.bindings.iter().filter_map(|of| of.range).collect();
        for (of, range) in trail.bindings.iter().zip(bound) {
            let (memory, at) = capture.place(range);
            let unknown = match (&of.unknown, of.atomic) {
                (_, true) => Some(Refusal::Atomics),
                (Some(reason), _) => Some(Refusal::Unknown(reason.to_string())),
                _ => None,
            };
            reaches.push(Reach {
                kernel,
                memory,
                range: at..at + range.bytes,
                reads: &of.reads,
                writes: &of.writes,
                unknown,
            });
        }
    }
    reaches.sort_by_key(|reach| (reach.memory, reach.range.start));
    let mut groups: Vec<Vec<Reach<'_>>> = Vec::new();
    let mut end = 0;
    for reach in reaches {
        let joins = groups
            .last()
            .is_some_and(|group| group[0].memory == reach.memory && reach.range.start < end);
        end = if joins {
            end.max(reach.range.end)
        } else {
            reach.range.end
        };
        match groups.last_mut() {
            Some(group) if joins => group.push(reach),
            _ => groups.push(vec![reach]),
        }
    }
    let mut regions = Vec::new();
    for group in groups {
        // A binding that is not followed may be written.
        let written = |reach: &Reach<'_>| !reach.writes.is_empty() || reach.unknown.is_some();
        let first = group[0].kernel;
        if group.iter().all(|reach| reach.kernel == first) {
            continue;
        }
        if !group.iter().any(written) {
            continue;
        }
        if !group.iter().any(|reach| !reach.writes.is_empty())
            && group.iter().all(|reach| {
                let (dispatch, _) = members[reach.kernel];
                is_read_only(capture, dispatch, reach)
            })
        {
            continue;
        }
        if let Some(reason) = group.iter().find_map(|reach| reach.unknown.clone()) {
            return Err(reason);
        }
        regions.push(scan(&group, members)?);
    }
    Ok(regions)
}

/// Returns whether every binding of this memory can only be read.
fn is_read_only(capture: &Capture, dispatch: &Dispatch, reach: &Reach<'_>) -> bool {
    let mut bindings = dispatch.bindings.iter().filter(|binding| {
        binding.range.is_some_and(|range| {
            let (memory, at) = capture.place(range);
            memory == reach.memory && at == reach.range.start
        })
    });
    bindings.all(|binding| !binding.is_writable())
}

/// Examines overlapping ranges as one region, in elements of the greatest power of two (up to 16 bytes) that divides
/// all places and sizes of accesses; refuses it if two invocations reach the same element.
fn scan(group: &[Reach<'_>], members: &[(&Dispatch, &Trail)]) -> Result<Region, Refusal> {
    let start = group
        .iter()
        .map(|reach| reach.range.start)
        .min()
        .unwrap_or(0);
    let end = group.iter().map(|reach| reach.range.end).max().unwrap_or(0);
    let runs = || {
        group.iter().flat_map(|reach| {
            let reads = reach.reads.iter().map(|run| (false, run));
            let both = reads.chain(reach.writes.iter().map(|run| (true, run)));
            both.map(move |(writes, run)| (reach, writes, *run))
        })
    };
    // The logarithm of an element's size.
    let scale = runs().map(|(reach, _, run)| {
        let place = reach.range.start - start + run.offset;
        (place | run.step | u64::from(run.bytes)).trailing_zeros()
    });
    let scale = scale.min().unwrap_or(0).min(4);
    let elements = (end - start).div_ceil(1 << scale);
    let invocations = members[0].1.invocations;
    if elements > MAX_ELEMENTS || invocations > MAX_ELEMENTS {
        return Err(Refusal::Limit("268,435,456 elements"));
    }
    let sizes: Vec<u32> = runs().map(|(_, _, run)| run.bytes).collect();
    // Whether an invocation reaches several elements, or accesses have several sizes.
    let mut several = sizes.iter().any(|bytes| *bytes != sizes[0]);
    let mut owners = vec![0_u32; elements as usize];
    // For each invocation the element that it reaches, counted from 1; 0 if it reaches none.
    let mut places = vec![0_u32; invocations as usize];
    for (reach, _, run) in runs() {
        for (invocation, offset) in run.each() {
            let from = (reach.range.start - start + offset) >> scale;
            let to = from + u64::from(run.bytes >> scale);
            let number = invocation as u32 + 1;
            for element in from..to {
                let owner = &mut owners[element as usize];
                match *owner {
                    0 => *owner = number,
                    known if known == number => {}
                    known => {
                        return Err(Refusal::IndexMap {
                            memory: reach.memory.0,
                            byte: start + (element << scale),
                            one: u64::from(known) - 1,
                            other: invocation,
                        });
                    }
                }
            }
            let place = &mut places[invocation as usize];
            several |= *place != 0 && *place != from as u32 + 1;
            *place = from as u32 + 1;
        }
    }
    drop(places);
    let count = members.len();
    // The invocations that have stored, a bit each, by kernel.
    let mut stored: Vec<Vec<u64>> = vec![Vec::new(); count];
    let (mut carried_into, mut loads) = (Vec::new(), vec![false; count]);
    let mut stores = vec![ByteSet::default(); count];
    let mut writer = None;
    // Whether each load follows a store by the same invocation, apart from loads before the first kernel that stores.
    let mut is_stored = true;
    let has = |bits: &Vec<u64>, at: u64| {
        bits.get((at / 64) as usize)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    };
    for kernel in 0..count {
        let of = |writes: bool| runs().filter(move |(r, w, _)| r.kernel == kernel && *w == writes);
        for (_, _, run) in of(false) {
            loads[kernel] = true;
            for (invocation, _) in run.each() {
                let known = stored[..kernel].iter().any(|bits| has(bits, invocation));
                is_stored &= known || writer.is_none();
                if known && carried_into.last() != Some(&kernel) {
                    carried_into.push(kernel);
                }
            }
        }
        let mut ranges = Vec::new();
        for (reach, _, run) in of(true) {
            writer.get_or_insert(kernel);
            stored[kernel].resize(invocations.div_ceil(64) as usize, 0);
            let whole = run.step == u64::from(run.bytes);
            let at = reach.range.start + run.offset;
            if whole {
                ranges.push(at..at + run.step * run.count);
            }
            for (invocation, offset) in run.each() {
                stored[kernel][(invocation / 64) as usize] |= 1 << (invocation % 64);
                if !whole {
                    let at = reach.range.start + offset;
                    ranges.push(at..at + u64::from(run.bytes));
                }
            }
        }
        stores[kernel] = ByteSet::from_unsorted(ranges);
    }
    let last = stored
        .iter()
        .rposition(|bits| !bits.is_empty())
        .unwrap_or(0);
    let is_overwritten = (0..count).map(|kernel| {
        kernel < last
            && !several
            && (stored[kernel].iter().zip(&stored[last]))
                .all(|(earlier, later)| earlier & !later == 0)
    });
    Ok(Region {
        memory: group[0].memory,
        range: start..end,
        writer: writer.unwrap_or(0),
        carried_into,
        loads,
        is_overwritten: is_overwritten.collect(),
        not_forwarded: match (several, is_stored) {
            (true, _) => Some(Refusal::SeveralPlaces),
            (_, false) => Some(Refusal::NotStored),
            _ => None,
        },
        stores,
    })
}
