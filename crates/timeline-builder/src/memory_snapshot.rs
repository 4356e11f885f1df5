//! Reads snapshots of PyTorch's caching allocator (`torch.cuda.memory._dump_snapshot`): which segments of memory it
//! reserved from the driver, which blocks it gave out of them, when, and in which stack the program asked for each.
//!
//! A snapshot has the history since `_record_memory_history`, whose oldest entries may have been dropped, and the state
//! at its end. What the history frees, or the state holds, without an entry that it was allocated was allocated before
//! the history began.

mod history;
mod pickle;
mod rows;

use history::History;
use pickle::{Id, Values};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The greatest number of a device that is read.
const MAX_DEVICES: usize = 128;

/// What a snapshot says.
#[derive(Debug, Default)]
pub struct MemorySnapshot {
    /// The devices that have memory in it.
    pub devices: Vec<DeviceMemory>,
    /// The frames of stacks, each once.
    frames: Vec<StackFrame>,
    /// The stacks, each once: frames, the innermost first.
    stacks: Vec<Vec<usize>>,
    /// Entries of the history that say no time, or nothing that gapscope knows.
    pub unread_entries: u64,
}

/// The memory of one device. Times are nanoseconds since 1970.
#[derive(Debug, Default)]
pub struct DeviceMemory {
    /// The device's number in the program.
    pub device: u32,
    /// Memory that the allocator reserved from the driver.
    pub segments: Vec<Piece>,
    /// Memory that it gave to the program.
    pub blocks: Vec<Piece>,
    /// The first and the last time of the history; `None` where it has no entries.
    pub span_ns: Option<(i64, i64)>,
    /// How often the allocator had no memory to give.
    pub out_of_memory: u64,
    /// Ranges of the program (`record_function`) that the history has, by begin.
    ranges: Vec<Range>,
}

/// A piece of memory, and how long it lived.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Where it begins.
    pub address: u64,
    /// Its size; of a block, as the program asked for it.
    pub bytes: u64,
    /// When it was allocated; `None` before the history began.
    pub allocated_ns: Option<i64>,
    /// When it was freed; `None` where it lived at the end.
    pub freed_ns: Option<i64>,
    /// The stack in which it was asked for, in `stacks`.
    stack: Option<usize>,
}

/// A range of the program.
#[derive(Debug, Clone, PartialEq)]
struct Range {
    name: Arc<str>,
    begin_ns: i64,
    /// `None` where it was open at the end.
    end_ns: Option<i64>,
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq)]
struct StackFrame {
    function: Option<Arc<str>>,
    file: Option<Arc<str>>,
    line: Option<u32>,
}

impl MemorySnapshot {
    /// Reads a snapshot.
    ///
    /// # Errors
    /// The bytes are not a pickle of plain values, or not one of a snapshot; the text says what they are.
    pub fn read(bytes: &[u8]) -> Result<MemorySnapshot, String> {
        let values = Values::read(bytes)?;
        let top = values.top();
        let [traces, segments] = ["device_traces", "segments"].map(|key| values.get(top, key));
        let (Some(traces), Some(segments)) = (traces, segments) else {
            return Err(
                "it is a pickle of something else: it has no `segments` and `device_traces`"
                    .to_owned(),
            );
        };
        let mut reader = SnapshotReader {
            values: &values,
            texts: FxHashMap::default(),
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
            snapshot: MemorySnapshot::default(),
            visited: 0,
        };
        let mut histories: Vec<History> = Vec::new();
        for entries in values.list(traces).iter().take(MAX_DEVICES) {
            let mut history = History::default();
            for entry in values.list(*entries) {
                reader.visit()?;
                reader.entry(*entry, &mut history);
            }
            histories.push(history);
        }
        for segment in values.list(segments) {
            reader.visit()?;
            let device = values.number_of(*segment, "device").unwrap_or(0);
            let Some(device) = usize::try_from(device)
                .ok()
                .filter(|device| *device < MAX_DEVICES)
            else {
                reader.snapshot.unread_entries += 1;
                continue;
            };
            if histories.len() <= device {
                histories.resize_with(device + 1, History::default);
            }
            reader.segment(*segment, &mut histories[device])?;
        }
        if let Some(annotations) = values.get(top, "external_annotations") {
            for annotation in values.list(annotations) {
                reader.visit()?;
                reader.annotation(*annotation, &mut histories);
            }
        }
        let mut snapshot = reader.snapshot;
        for (device, history) in (0..).zip(histories) {
            snapshot.devices.extend(history.finish(device));
        }
        Ok(snapshot)
    }
}

/// Takes the parts of a snapshot out of its values, each text, frame and stack once.
struct SnapshotReader<'a> {
    values: &'a Values<'a>,
    texts: FxHashMap<Id, Option<Arc<str>>>,
    frames: FxHashMap<Id, usize>,
    stacks: FxHashMap<Id, Option<usize>>,
    snapshot: MemorySnapshot,
    /// The entries and blocks so far.
    visited: usize,
}

impl SnapshotReader<'_> {
    /// Counts what is taken: a pickle may refer to one list of a million entries a million times.
    fn visit(&mut self) -> Result<(), String> {
        self.visited += 1;
        match self.visited > self.values.count() {
            true => Err("it names the same entries again and again".to_owned()),
            false => Ok(()),
        }
    }

    fn text(&mut self, id: Option<Id>) -> Option<Arc<str>> {
        let id = id?;
        let values = self.values;
        let known = self.texts.entry(id);
        known
            .or_insert_with(|| values.text(id).map(Arc::from))
            .clone()
    }

    fn frame(&mut self, id: Id) -> usize {
        if let Some(known) = self.frames.get(&id) {
            return *known;
        }
        let told = |text: &Arc<str>| !["", "??"].contains(&&**text);
        let line = self.values.number_of(id, "line");
        let frame = StackFrame {
            function: self.text(self.values.get(id, "name")).filter(told),
            file: self.text(self.values.get(id, "filename")).filter(told),
            line: line
                .and_then(|line| u32::try_from(line).ok())
                .filter(|line| *line > 0),
        };
        let place = self.snapshot.frames.len();
        self.snapshot.frames.push(frame);
        self.frames.insert(id, place);
        place
    }

    /// Returns the stack of an entry or a block.
    fn stack(&mut self, of: Id) -> Option<usize> {
        let frames = self.values.get(of, "frames")?;
        if let Some(known) = self.stacks.get(&frames) {
            return *known;
        }
        let values = self.values;
        let list: Vec<usize> = values
            .list(frames)
            .iter()
            .map(|frame| self.frame(*frame))
            .collect();
        let stack = (!list.is_empty()).then_some(self.snapshot.stacks.len());
        self.snapshot.stacks.extend(stack.map(|_| list));
        self.stacks.insert(frames, stack);
        stack
    }

    fn time_ns(&self, of: Id) -> Option<i64> {
        let time_us = self.values.number_of(of, "time_us")?;
        time_us.checked_mul(1000).filter(|ns| *ns > 0)
    }

    /// Takes an entry of the history.
    fn entry(&mut self, entry: Id, history: &mut History) {
        let values = self.values;
        let number = |key| {
            let number = values.number_of(entry, key)?;
            u64::try_from(number).ok()
        };
        let action = values.text_of(entry, "action").unwrap_or_default();
        let (address, bytes) = (number("addr"), number("size"));
        // An entry of old versions, or of one that is out of memory, may have no address.
        let (at_ns, place) = (self.time_ns(entry), address.zip(bytes));
        match (action, at_ns, place) {
            ("oom", ..) => history.out_of_memory += 1,
            ("alloc", Some(at_ns), Some(place)) => {
                let stack = self.stack(entry);
                history.allocated(at_ns, place, stack);
            }
            ("free_completed" | "free", Some(at_ns), Some(place)) => history.freed(at_ns, place),
            ("segment_alloc" | "segment_map", Some(at_ns), Some(place)) => {
                let stack = self.stack(entry);
                history.reserved(at_ns, place, stack);
            }
            ("segment_free" | "segment_unmap", Some(at_ns), Some(place)) => {
                history.returned(at_ns, place);
            }
            // A block that other streams use is free when they are done.
            ("free_requested" | "snapshot", ..) => {}
            _ => self.snapshot.unread_entries += 1,
        }
    }

    /// Takes a segment of the state at the end, and its blocks.
    fn segment(&mut self, segment: Id, history: &mut History) -> Result<(), String> {
        let values = self.values;
        let number = |of, key| {
            let number = values.number_of(of, key)?;
            u64::try_from(number).ok()
        };
        let (Some(address), Some(bytes)) =
            (number(segment, "address"), number(segment, "total_size"))
        else {
            self.snapshot.unread_entries += 1;
            return Ok(());
        };
        history.holds_segment((address, bytes));
        let mut next = Some(address);
        let blocks = values.get(segment, "blocks");
        for block in blocks.map_or(&[][..], |blocks| values.list(blocks)) {
            self.visit()?;
            let size = number(*block, "size");
            let at = number(*block, "address").or(next);
            next = at.zip(size).and_then(|(at, size)| at.checked_add(size));
            let state = values.text_of(*block, "state").unwrap_or_default();
            let bytes = number(*block, "requested_size").or(size);
            if let Some(place) = at.zip(bytes).filter(|_| state.starts_with("active")) {
                let stack = self.stack(*block);
                history.holds_block(place, stack);
            }
        }
        Ok(())
    }

    /// Takes the begin or the end of a range of the program.
    fn annotation(&mut self, annotation: Id, histories: &mut [History]) {
        let device = self.values.number_of(annotation, "device").unwrap_or(0);
        let history = usize::try_from(device)
            .ok()
            .and_then(|device| histories.get_mut(device));
        let name = self.text(self.values.get(annotation, "name"));
        let stage = self.values.text_of(annotation, "stage").unwrap_or_default();
        match (history, name, self.time_ns(annotation), stage) {
            (Some(history), Some(name), Some(at_ns), "START") => history.begins(at_ns, name),
            (Some(history), Some(name), Some(at_ns), "END") => history.ends(at_ns, &name),
            _ => self.snapshot.unread_entries += 1,
        }
    }
}
