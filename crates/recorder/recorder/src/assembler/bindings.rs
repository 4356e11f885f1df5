//! Computes the buffer ranges that a dispatch may reach: from the descriptor sets (tables of buffers) that are
//! bound, and the bindings that the kernel's code declares, comes the id of a binding set in the trace.

use super::buffers::Buffers;
use super::lru_map::LruMap;
use gapscope_spool::event::{self, BindingAccess};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{BindingSetId, BufferId, KernelId, ProcessId};
use gapscope_trace::tables::{Access, Binding, Table, Tables};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC and VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC
const DYNAMIC: [u32; 2] = [8, 9];

/// The content of a descriptor set, in ids of the trace.
type Content = Arc<[ContentRange]>;

/// A buffer range in the content of a descriptor set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ContentRange {
    /// The number of the binding in its set.
    binding: u32,
    /// The index in a binding that is an array.
    element: u32,
    /// The buffer; `None` for a null descriptor or an unknown buffer.
    buffer: Option<BufferId>,
    /// Whether an offset is added when the set is bound.
    dynamic: bool,
    offset: u64,
    bytes: u64,
    /// The size of the whole buffer.
    buffer_bytes: u64,
}

/// A buffer range that a dispatch may reach: a row of a binding set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ReachedRange {
    /// The index at which its descriptor set is bound.
    set: u32,
    binding: u32,
    element: u32,
    buffer: BufferId,
    /// The start in the buffer, dynamic offset included.
    offset: u64,
    bytes: u64,
    /// Whether the code says that it reads the range; false where the code is unknown.
    reads: bool,
    writes: bool,
}

/// The contents of a process's descriptor sets that were bound recently. Programs that write their sets anew for each
/// command buffer make millions of contents; equal contents are kept once.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Contents {
    /// The index of the kept content of each content id.
    kept_of: LruMap<hook::BindingContent, u32>,
    /// The kept contents by index.
    kept: FxHashMap<u32, Content>,
    /// The index of the next content.
    next: u32,
    /// The indices of kept contents. A content that is missing here is kept twice.
    #[serde(skip)]
    ids: LruMap<Content, u32>,
}

impl Contents {
    /// Keeps a content, and returns how many of its entries name an unknown buffer.
    pub fn add(
        &mut self,
        content: hook::BindingContent,
        entries: &[event::Binding],
        buffer: impl Fn(hook::Buffer) -> Option<BufferId>,
        buffers: &Buffers,
    ) -> u64 {
        let mut unknown = 0;
        let mut ranges: Vec<ContentRange> = Vec::with_capacity(entries.len());
        for entry in entries {
            let known = buffer(entry.buffer).and_then(|id| Some((id, buffers.bytes(id)?)));
            unknown += u64::from(known.is_none() && entry.buffer != hook::Buffer::NONE);
            ranges.push(ContentRange {
                binding: entry.binding,
                element: entry.element,
                buffer: known.map(|(id, _)| id),
                dynamic: DYNAMIC.contains(&entry.kind),
                offset: entry.offset,
                bytes: entry.bytes,
                buffer_bytes: known.map_or(0, |(_, bytes)| bytes),
            });
        }
        ranges.sort_unstable_by_key(|r| (r.binding, r.element));
        let known = self.ids.get(ranges.as_slice()).copied();
        let kept = match known.filter(|kept| self.kept.contains_key(kept)) {
            Some(kept) => kept,
            None => self.keep(ranges.into()),
        };
        if self.kept_of.insert(content, kept) {
            let used: FxHashSet<u32> = self.kept_of.values().copied().collect();
            self.kept.retain(|kept, _| used.contains(kept));
        }
        unknown
    }

    /// Keeps a new content and returns its index.
    fn keep(&mut self, content: Content) -> u32 {
        let kept = self.next;
        self.next += 1;
        self.kept.insert(kept, content.clone());
        self.ids.insert(content, kept);
        kept
    }

    /// Returns true if the content of a set is known.
    pub fn knows(&mut self, content: hook::BindingContent) -> bool {
        self.kept_of(content).is_some()
    }

    /// Returns the index of a kept content; `None` if it is unknown or was forgotten.
    fn kept_of(&mut self, content: hook::BindingContent) -> Option<u32> {
        self.kept_of.get(&content).copied()
    }
}

/// The descriptor sets that are bound at a position of a command recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundSets {
    sets: Vec<BoundSet>,
    /// The last answer and its kernel; `None` after a change.
    last: Option<(KernelId, Option<BindingSetId>)>,
}

/// A descriptor set that is bound at the index `set`, with its dynamic offsets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BoundSet {
    set: u32,
    content: hook::BindingContent,
    dynamic_offsets: Vec<u32>,
}

impl BoundSets {
    /// Binds a set.
    pub fn bind(&mut self, set: u32, content: hook::BindingContent) {
        self.last = None;
        match self.sets.iter_mut().find(|s| s.set == set) {
            Some(bound) => {
                bound.content = content;
                bound.dynamic_offsets.clear();
            }
            None => {
                let dynamic_offsets = Vec::new();
                self.sets.push(BoundSet {
                    set,
                    content,
                    dynamic_offsets,
                });
                self.sets.sort_unstable_by_key(|s| s.set);
            }
        }
    }

    /// Sets a dynamic offset of a bound set.
    pub fn dynamic_offset(&mut self, set: u32, index: u32, offset: u32) {
        /// The maximum number of dynamic buffers in a set on any device.
        const MAX_DYNAMIC_BUFFERS: usize = 1 << 12;
        self.last = None;
        let index = index as usize;
        if let Some(bound) = self.sets.iter_mut().find(|s| s.set == set)
            && index < MAX_DYNAMIC_BUFFERS
        {
            if bound.dynamic_offsets.len() <= index {
                bound.dynamic_offsets.resize(index + 1, 0);
            }
            bound.dynamic_offsets[index] = offset;
        }
    }

    /// Unbinds all sets, as the execution of a secondary recording does.
    pub fn clear(&mut self) {
        self.sets.clear();
        self.last = None;
    }
}

/// The binding sets of the trace, each with one id.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct BindingSets {
    /// The id of the next set.
    next: u32,
    /// The ids of binding sets. A set that was forgotten here gets a second id, and its rows are in the trace twice.
    #[serde(skip)]
    ids: LruMap<Box<[ReachedRange]>, BindingSetId>,
    /// Answers by kernel, sets, contents and dynamic offsets, so that a repeated dispatch costs one look-up.
    #[serde(skip)]
    answers: LruMap<Box<[u32]>, Option<BindingSetId>>,
    /// The key of the current look-up; its memory is used again.
    #[serde(skip)]
    key: Vec<u32>,
    /// The ranges of the current set; their memory is used again.
    #[serde(skip)]
    reached_ranges: Vec<ReachedRange>,
}

impl BindingSets {
    /// Returns the id of the binding set that `kernel` reaches through the bound sets; `None` if it reaches no known
    /// buffer. `accesses` are the bindings that the kernel's code declares; they are empty if unknown.
    pub fn reached(
        &mut self,
        process: ProcessId,
        kernel: KernelId,
        accesses: &[BindingAccess],
        bound: &mut BoundSets,
        contents: &mut Contents,
        tables: &mut Tables,
    ) -> Option<BindingSetId> {
        if let Some((last, id)) = bound.last
            && last == kernel
        {
            return id;
        }
        self.key.clear();
        self.key.extend([process.0, kernel.0]);
        for set in &bound.sets {
            let kept = contents.kept_of(set.content);
            let offsets = set.dynamic_offsets.len() as u32;
            self.key
                .extend([set.set, kept.unwrap_or(u32::MAX), offsets]);
            self.key.extend_from_slice(&set.dynamic_offsets);
        }
        let id = match self.answers.get(self.key.as_slice()) {
            Some(id) => *id,
            None => {
                let id = self.resolve(accesses, bound, contents, tables);
                self.answers.insert(self.key.as_slice().into(), id);
                id
            }
        };
        bound.last = Some((kernel, id));
        id
    }

    /// Computes the answer of [`Self::reached`], and writes the rows of a set that is new.
    fn resolve(
        &mut self,
        accesses: &[BindingAccess],
        bound: &BoundSets,
        contents: &mut Contents,
        tables: &mut Tables,
    ) -> Option<BindingSetId> {
        self.reached_ranges.clear();
        for set in &bound.sets {
            let kept = contents.kept_of(set.content);
            let Some(content) = kept.and_then(|kept| contents.kept.get(&kept)) else {
                continue;
            };
            let mut dynamic = set.dynamic_offsets.iter();
            for range in content.iter() {
                let moved = if range.dynamic {
                    dynamic.next().copied().unwrap_or(0)
                } else {
                    0
                };
                let Some(buffer) = range.buffer else {
                    continue;
                };
                let access = accesses
                    .iter()
                    .find(|a| a.set == set.set && a.binding == range.binding);
                if access.is_none() && !accesses.is_empty() {
                    continue;
                }
                let offset = range.offset.saturating_add(u64::from(moved));
                self.reached_ranges.push(ReachedRange {
                    set: set.set,
                    binding: range.binding,
                    element: range.element,
                    buffer,
                    offset,
                    bytes: range.bytes.min(range.buffer_bytes.saturating_sub(offset)),
                    reads: access.is_some_and(|a| a.reads),
                    writes: access.is_some_and(|a| a.writes),
                });
            }
        }
        if self.reached_ranges.is_empty() {
            return None;
        }
        if let Some(id) = self.ids.get(self.reached_ranges.as_slice()) {
            return Some(*id);
        }
        let id = BindingSetId(self.next);
        self.next += 1;
        for reach in &self.reached_ranges {
            tables.bindings.push(Binding {
                id,
                set: reach.set,
                binding: reach.binding,
                element: reach.element,
                buffer: reach.buffer,
                offset_bytes: reach.offset,
                bytes: reach.bytes,
                access: match (reach.reads, reach.writes) {
                    (true, false) => Access::Read,
                    (false, true) => Access::Write,
                    (true, true) => Access::ReadWrite,
                    (false, false) => Access::Unknown,
                },
            });
        }
        self.ids.insert(self.reached_ranges.as_slice().into(), id);
        Some(id)
    }
}
