//! Writes the index of an exported capture: lines of words that say what memory there is, and what to do, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use gapscope_capture::cuda::{CudaCapture, CudaMemory, Launch, MemoryPlace};
use gapscope_capture::model::{Content, MemoryId, ModuleId};

use super::data::Data;
use super::module_file;
use crate::cells;
use crate::launch::OF_THE_PROGRAM;
use crate::memory::{PAGE_BYTES, span};
use crate::modules::needed_attributes;
use crate::plan::{Plan, Stage};
use crate::spans::{self, MAPPED_STEP, RESERVED_STEP};

/// The index that is being written.
pub struct Index<'a, W> {
    capture: &'a CudaCapture,
    file: W,
    /// Number of the file of each module.
    modules: BTreeMap<ModuleId, usize>,
    /// Number of pieces that launches changed.
    pub outputs: u64,
    /// Number of those whose bytes are in the data.
    pub outputs_kept: u64,
}

impl<'a, W: Write> Index<'a, W> {
    pub fn new(capture: &'a CudaCapture, file: W) -> Index<'a, W> {
        let ids = capture.modules.keys().copied();
        Index {
            capture,
            file,
            modules: ids.enumerate().map(|(number, id)| (id, number)).collect(),
            outputs: 0,
            outputs_kept: 0,
        }
    }

    /// Writes the whole index, and the data that it names.
    pub fn write(&mut self, plan: &Plan<'_>, data: &mut Data<'_, impl Write>) -> io::Result<()> {
        let device = &self.capture.header.device;
        let [major, minor] = device.compute_capability;
        let name = escaped(&device.name);
        writeln!(self.file, "device {major} {minor} {name}")?;
        for number in 0..self.modules.len() {
            writeln!(self.file, "module {}", module_file(number))?;
        }
        self.memory()?;
        self.contents(&plan.first, data)?;
        for stage in &plan.stages {
            self.contents(&stage.contents, data)?;
            self.launch(stage.launch)?;
            self.outcome(stage, data)?;
        }
        writeln!(self.file, "end {}", plan.stages.len())?;
        data.flush()?;
        self.file.flush()
    }

    /// Writes which addresses are reserved and mapped, and the memory at them.
    fn memory(&mut self) -> io::Result<()> {
        let memories = &self.capture.memories;
        let at = |place: &MemoryPlace| -> Vec<&CudaMemory> {
            memories
                .values()
                .filter(|memory| memory.place == *place)
                .collect()
        };
        let mut on_device = at(&MemoryPlace::Device);
        let on_host = at(&MemoryPlace::Host);
        let reserved = spans::joined(on_device.iter().map(|memory| span(memory)), RESERVED_STEP);
        let pages = spans::joined(on_host.iter().map(|memory| span(memory)), PAGE_BYTES);
        // Pages of the host among the reserved addresses are memory of the GPU, as in a replay.
        let (taken, free): (Vec<_>, Vec<_>) = pages
            .into_iter()
            .partition(|pages| reserved.iter().any(|one| spans::overlap(*one, *pages)));
        let is_taken = |memory: &CudaMemory| {
            let own = span(memory);
            taken.iter().any(|pages| spans::overlap(*pages, own))
        };
        on_device.extend(on_host.into_iter().filter(|memory| is_taken(memory)));
        let ranges = || on_device.iter().map(|memory| span(memory));
        let kinds = [
            ("host", free),
            ("reserve", spans::joined(ranges(), RESERVED_STEP)),
            ("map", spans::joined(ranges(), MAPPED_STEP)),
        ];
        for (kind, all) in kinds {
            for (start, end) in all {
                writeln!(self.file, "{kind} {start} {}", end - start)?;
            }
        }
        for memory in memories.values() {
            let CudaMemory {
                id, address, bytes, ..
            } = memory;
            match &memory.place {
                MemoryPlace::Global { module, name } => {
                    let (module, name) = (self.modules[module], escaped(name));
                    writeln!(self.file, "global {id} {module} {address} {bytes} {name}")?;
                }
                MemoryPlace::Host if !is_taken(memory) => {
                    writeln!(self.file, "memory {id} {address} {bytes} host")?;
                }
                MemoryPlace::Host | MemoryPlace::Device => {
                    writeln!(self.file, "memory {id} {address} {bytes} device")?;
                }
            }
        }
        Ok(())
    }

    /// Writes where content is in memory and in the data. Pieces that follow each other in both are one line.
    fn contents(
        &mut self,
        contents: &[&Content],
        data: &mut Data<'_, impl Write>,
    ) -> io::Result<()> {
        for content in contents {
            // Offset, size, and place in the data.
            let mut run: Option<(u64, u64, u64)> = None;
            let mut offset = content.offset;
            for hash in &content.chunks {
                let at = data.place(*hash)?;
                let bytes = self.capture.total_bytes(&[*hash]);
                match &mut run {
                    Some((_, size, from)) if *from + *size == at => *size += bytes,
                    _ => {
                        let last = run.replace((offset, bytes, at));
                        self.content(content.memory, last)?;
                    }
                }
                offset += bytes;
            }
            self.content(content.memory, run)?;
        }
        Ok(())
    }

    fn content(&mut self, memory: MemoryId, run: Option<(u64, u64, u64)>) -> io::Result<()> {
        match run {
            Some((offset, bytes, at)) => {
                writeln!(self.file, "content {memory} {offset} {bytes} {at}")
            }
            None => Ok(()),
        }
    }

    fn launch(&mut self, launch: &Launch) -> io::Result<()> {
        let [[x, y, z], [a, b, c]] = [launch.grid, launch.block];
        let (module, shared) = (self.modules[&launch.module], launch.shared_bytes);
        let parameters = match launch.parameters.as_slice() {
            [] => "-".to_owned(),
            bytes => hex(bytes),
        };
        let name = escaped(&launch.kernel);
        writeln!(
            self.file,
            "launch {module} {x} {y} {z} {a} {b} {c} {shared} {parameters} {name}"
        )?;
        for relocation in &launch.relocations {
            let (at, memory) = (relocation.at, relocation.memory);
            writeln!(self.file, "relocation {at} {memory}")?;
        }
        for (number, value) in needed_attributes(&launch.function, shared) {
            writeln!(self.file, "setting {number} {value}")?;
        }
        let attributes = launch.attributes.iter();
        for attribute in attributes.filter(|attribute| !OF_THE_PROGRAM.contains(&attribute.id)) {
            let value = hex(&attribute.value);
            writeln!(self.file, "attribute {} {value}", attribute.id)?;
        }
        Ok(())
    }

    /// Writes which memory is compared after a launch, and the pieces of it that the launch changes.
    fn outcome(&mut self, stage: &Stage<'_>, data: &mut Data<'_, impl Write>) -> io::Result<()> {
        let of_outcomes = stage.outcomes.iter().map(|outcome| outcome.memory);
        let reached: BTreeSet<_> = (stage.launch.reached.iter().copied())
            .chain(of_outcomes)
            .collect();
        for memory in reached {
            writeln!(self.file, "reach {memory}")?;
        }
        for (memory, offset, bytes, hash) in cells::changed(stage).all() {
            let is_kept = self.capture.chunk_bytes(hash).map(u64::from) == Some(bytes);
            let at = match is_kept {
                true => data.place(hash)?.to_string(),
                false => "-".to_owned(),
            };
            self.outputs += 1;
            self.outputs_kept += u64::from(is_kept);
            writeln!(self.file, "expect {memory} {offset} {bytes} {hash} {at}")?;
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a name as one word of harmless characters: all others are `%` and two hexadecimal digits for each byte.
pub fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'.' => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}
