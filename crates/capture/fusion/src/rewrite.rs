//! Writes a capture (recorded GPU work that can run again) in which each chain (consecutive dispatches that can be
//! merged) is one dispatch of a merged kernel: a capture and its chains go in, a new capture comes out.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use gapscope_capture::model::*;
use gapscope_capture::{Capture, Step};
use gapscope_dependencies::{ByteSet, Node};
use serde::Serialize;

use crate::chain::{Chain, Chains};
use crate::draft::{Draft, DraftError, NewKernel};
use crate::liveness;
use crate::merge::{Intermediate, MergePlan, Slot, merge};
use crate::refusal::Refusal;

/// The way in which chains are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Values that kernels of the chain pass on (intermediates) go through memory: results are equal bit for bit.
    Stored,
    /// Values are forwarded in registers, and values that are not read elsewhere are not stored.
    Forwarded,
}

/// The kernel and the dispatch that a chain is merged into.
#[derive(Debug, Clone)]
pub struct Merged {
    /// SPIR-V with the entry point `main`.
    pub words: Vec<u32>,
    /// The dispatch that replaces the chain. Its pipeline id is that of the first member until the merged kernel is
    /// added.
    pub dispatch: Dispatch,
    /// Bytes that are no longer stored, each counted as often as it was stored.
    pub bytes_not_stored: u64,
    /// Bytes that are no longer loaded.
    pub bytes_not_loaded: u64,
    /// Memory that differs from the program's until it is written again.
    pub not_written: Vec<(MemoryId, ByteSet)>,
}

/// A capture in which chains are merged.
#[derive(Debug)]
pub struct Rewritten {
    /// The capture with merged chains.
    pub capture: Capture,
    /// For each chain why it was not merged in this form; `None` if it was.
    pub refused: Vec<Option<Refusal>>,
    /// Pieces of outcomes that cannot be compared, as their bytes are no longer stored.
    pub outputs_left_out: u64,
}

/// The size of push constants that every device supports; a chain that needs more is refused.
const PUSH_CONSTANTS: u32 = 128;

/// Merges the kernels of a chain, and makes the dispatch that replaces it. `nodes` are the capture's commands with
/// the bytes that they reach.
pub fn merged(
    capture: &Capture,
    found: &Chains<'_>,
    chain: &Chain<'_>,
    form: Form,
    nodes: &[Node],
) -> Result<Merged, Refusal> {
    let forwarded = form == Form::Forwarded;
    let carried: Vec<_> = chain.carried().collect();
    let not_forwarded = (carried.iter()).find_map(|region| region.not_forwarded.clone());
    if let Some(refusal) = not_forwarded.filter(|_| forwarded) {
        return Err(refusal);
    }
    let mut bindings: Vec<(BufferRange, u32)> = Vec::new();
    let mut users: Vec<u32> = vec![0; chain.regions.len()];
    let region_of = |range: BufferRange| {
        let (memory, at) = capture.place(range);
        (chain.regions.iter())
            .position(|of| of.memory == memory && of.range.start <= at && at < of.range.end)
    };
    let mut slots: Vec<BTreeMap<(u32, u32), Slot>> = Vec::new();
    for member in &chain.members {
        let mut of_member = BTreeMap::new();
        for binding in &member.dispatch.bindings {
            let Some(range) = binding.range else { continue };
            // Of `VkDescriptorType`, 8 and 9 are uniform and storage buffers with dynamic offsets.
            // Dynamic offsets are in the range already.
            let kind = match binding.descriptor_type {
                8 => 6,
                9 => 7,
                kind => kind,
            };
            let known = bindings.iter().position(|known| *known == (range, kind));
            let number = known.unwrap_or_else(|| {
                bindings.push((range, kind));
                bindings.len() - 1
            });
            let region = region_of(range);
            if let Some(region) = region {
                users[region] += 1;
            }
            let intermediate = region.and_then(|region| {
                let of = &chain.regions[region];
                carried
                    .iter()
                    .position(|known| known.range == of.range && known.memory == of.memory)
            });
            of_member.insert(
                (binding.set, binding.binding),
                Slot {
                    number: number as u32,
                    aliased: region.is_some(),
                    intermediate,
                },
            );
        }
        slots.push(of_member);
    }
    let (push_constants, offsets) = push_constants(chain)?;
    let last = chain.members.last().map_or(0, |member| member.executed);
    let (mut bytes_not_stored, mut bytes_not_loaded) = (0, 0);
    let mut not_written = Vec::new();
    let intermediates = carried.iter().map(|region| {
        let last_writer = region
            .stores
            .iter()
            .rposition(|set| !set.is_empty())
            .unwrap_or(0);
        // The last kernel stores the result of the chain, which the host may read.
        let is_result = last_writer + 1 == chain.members.len();
        let is_dead =
            forwarded && !is_result && liveness::is_dead(nodes, capture, last, region, last_writer);
        let stored = (0..chain.members.len()).map(|kernel| {
            let reads_itself = kernel == region.writer && region.loads[kernel];
            let is_needed = match kernel == last_writer {
                true => !is_dead,
                false => !region.is_overwritten[kernel],
            };
            let is_stored = !forwarded || is_needed || reads_itself;
            if !is_stored {
                bytes_not_stored += region.stores[kernel].bytes();
            }
            is_stored
        });
        let stored: Vec<bool> = stored.collect();
        if forwarded {
            bytes_not_loaded +=
                region.carried_into.len() as u64 * region.stores[region.writer].bytes();
        }
        if !stored.iter().any(|stored| *stored) {
            let ranges = region
                .stores
                .iter()
                .flat_map(|set| set.ranges().iter().cloned());
            not_written.push((region.memory, ByteSet::from_unsorted(ranges.collect())));
        }
        Intermediate {
            writer: region.writer,
            stored,
        }
    });
    let intermediates = intermediates.collect();
    let plan = MergePlan {
        local_size: chain.members[0].trail.local_size,
        slots,
        push_constants: offsets,
        intermediates,
        forwarded,
    };
    let kernels =
        chain
            .members
            .iter()
            .map(|member| match &found.kernels[&member.dispatch.pipeline] {
                Ok(kernel) => Ok(kernel.clone()),
                Err(refusal) => Err(refusal.clone()),
            });
    let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    let words = merge(&kernels, &plan)?;
    let first = chain.members[0].dispatch;
    let bindings = (0..)
        .zip(bindings)
        .map(|(binding, (range, descriptor_type))| Binding {
            binding,
            descriptor_type,
            range: Some(range),
            read_only: descriptor_type == 6,
            ..Binding::default()
        });
    Ok(Merged {
        words,
        dispatch: Dispatch {
            pipeline: first.pipeline,
            groups: first.groups,
            base: first.base,
            push_constants,
            bindings: bindings.collect(),
        },
        bytes_not_stored,
        bytes_not_loaded,
        not_written,
    })
}

/// Concatenates the push constants of the kernels, each aligned to 16 bytes, and returns them with the offsets where
/// those of each kernel begin.
fn push_constants(chain: &Chain<'_>) -> Result<(Vec<u8>, Vec<u32>), Refusal> {
    let mut all: Vec<u8> = Vec::new();
    let mut offsets = Vec::new();
    for member in &chain.members {
        let bytes = &member.dispatch.push_constants;
        if !bytes.is_empty() {
            all.resize(all.len().next_multiple_of(16), 0);
        }
        offsets.push(all.len() as u32);
        all.extend(bytes);
    }
    let bytes = all.len() as u32;
    match bytes > PUSH_CONSTANTS && chain.members.len() > 1 {
        true => Err(Refusal::PushConstants(bytes)),
        false => Ok((all, offsets)),
    }
}

/// A merged dispatch that replaces a chain.
struct Replacement {
    /// Index of the chain's last member.
    last: usize,
    dispatch: Dispatch,
    not_written: Vec<(MemoryId, ByteSet)>,
}

/// Writes a capture in which chains are merged, into a folder that does not exist. A chain whose values cannot be
/// forwarded is merged with stores to memory instead; a chain that cannot be merged at all keeps its dispatches.
pub fn rewrite(
    capture: &Capture,
    found: &Chains<'_>,
    form: Form,
    nodes: &[Node],
    folder: &Path,
) -> Result<Rewritten, DraftError> {
    let mut draft = Draft::new(capture, folder)?;
    let mut pipelines: HashMap<(Vec<u32>, Vec<u32>), PipelineId> = HashMap::new();
    let mut refused = Vec::new();
    // The replacements, by the index of a chain's first member.
    let mut replaced: BTreeMap<usize, Replacement> = BTreeMap::new();
    for chain in &found.chains {
        let mut result = merged(capture, found, chain, form, nodes);
        refused.push(result.as_ref().err().cloned());
        if result.is_err() && form == Form::Forwarded {
            result = merged(capture, found, chain, Form::Stored, nodes);
        }
        let Ok(merged) = result else { continue };
        let kinds: Vec<u32> = merged
            .dispatch
            .bindings
            .iter()
            .map(|binding| binding.descriptor_type)
            .collect();
        let key = (merged.words.clone(), kinds.clone());
        let pipeline = match pipelines.get(&key) {
            Some(id) => *id,
            None => {
                let names = chain
                    .members
                    .iter()
                    .map(|of| capture.pipelines[&of.dispatch.pipeline].name.as_str());
                let id = draft.kernel(&NewKernel {
                    name: names.collect::<Vec<_>>().join("+"),
                    words: &merged.words,
                    descriptors: &kinds,
                    push_constants: merged.dispatch.push_constants.len() as u32,
                    like: Some(&capture.pipelines[&chain.members[0].dispatch.pipeline]),
                })?;
                pipelines.insert(key, id);
                id
            }
        };
        let dispatch = Dispatch {
            pipeline,
            ..merged.dispatch
        };
        let members = &chain.members;
        let last = members[members.len() - 1].executed;
        let chain = Replacement {
            last,
            dispatch,
            not_written: merged.not_written,
        };
        replaced.insert(members[0].executed, chain);
    }
    let mut executed = 0;
    let mut node = 0;
    let mut outputs_left_out = 0;
    // The bytes that now differ from the program's, and are not compared until a command writes them.
    let mut undefined: HashMap<MemoryId, ByteSet> = HashMap::new();
    for step in &capture.steps {
        match step {
            Step::Content(content) => draft.content(content)?,
            Step::Outcome(outcome) => {
                let unknown = undefined.get(&outcome.memory);
                let keeps = |at: u64, bytes: u64| {
                    unknown.is_none_or(|unknown| !unknown.overlaps(&(at..at + bytes)))
                };
                outputs_left_out += draft.outcome(outcome, &keeps)?;
            }
            Step::Submission(submission) => {
                let mut submission = submission.clone();
                for batch in &mut submission.batches {
                    for id in &mut batch.commands {
                        let commands = &capture.commands[id];
                        let range = executed..executed + commands.len();
                        executed = range.end;
                        *id = match replaced.range(range.clone()).next() {
                            None => draft.same_commands(*id)?,
                            Some(_) => draft.commands(replace(commands, &range, &replaced))?,
                        };
                        for (place, command) in range.zip(commands) {
                            if command.is_work() {
                                liveness::written(&nodes[node], &mut undefined);
                                node += 1;
                            }
                            let ended = replaced.values().filter(|chain| chain.last == place);
                            for (memory, bytes) in ended.flat_map(|chain| &chain.not_written) {
                                undefined.entry(*memory).or_default().add(bytes);
                            }
                        }
                    }
                }
                draft.submission(submission)?;
            }
        }
    }
    Ok(Rewritten {
        capture: draft.end(folder)?,
        refused,
        outputs_left_out,
    })
}

/// Puts merged dispatches in the places of chains. Barriers between members are put before and after the merged
/// dispatch, so that all commands that they ordered are still ordered.
fn replace(
    commands: &[Command],
    range: &Range<usize>,
    replaced: &BTreeMap<usize, Replacement>,
) -> Vec<Command> {
    let mut changed: Vec<Command> = Vec::new();
    let mut at = 0;
    while at < commands.len() {
        let Some(chain) = replaced.get(&(range.start + at)) else {
            changed.push(commands[at].clone());
            at += 1;
            continue;
        };
        let last = chain.last - range.start;
        let between = &commands[at + 1..last];
        let (mut labels, mut after) = (Vec::new(), Vec::new());
        for command in between {
            match command {
                Command::Barrier(barrier) => {
                    join_barrier(&mut changed, barrier);
                    join_barrier(&mut after, barrier);
                }
                Command::Label(_) => labels.push(command.clone()),
                _ => {}
            }
        }
        changed.append(&mut labels);
        changed.push(Command::Dispatch(chain.dispatch.clone()));
        at = last + 1;
        // The barrier is joined with the one that follows.
        if let Some(Command::Barrier(next)) = commands.get(at) {
            join_barrier(&mut after, next);
            at += 1;
        }
        changed.append(&mut after);
    }
    changed
}

/// Adds dependencies to the last command if that is a barrier with the same flags, else appends a barrier.
fn join_barrier(commands: &mut Vec<Command>, more: &Barrier) {
    match commands.last_mut() {
        Some(Command::Barrier(last)) if last.flags == more.flags => {
            let new = more.memory.iter().filter(|of| !last.memory.contains(of));
            let new: Vec<_> = new.copied().collect();
            last.memory.extend(new);
            let new = more.buffers.iter().filter(|of| !last.buffers.contains(of));
            let new: Vec<_> = new.copied().collect();
            last.buffers.extend(new);
        }
        _ => commands.push(Command::Barrier(more.clone())),
    }
}
