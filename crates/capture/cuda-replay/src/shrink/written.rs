//! Writes a capture in which spare pages are zero, with the outcomes that its launches have then.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use gapscope_capture::cuda::{CudaCapture, CudaRecord, CudaStep, Launch};
use gapscope_capture::model::{Content, MemoryId, Outcome};
use gapscope_capture::{Hash, Writer};

use super::Fill;
use super::trial::Trial;
use crate::error::Error;
use crate::transfer::Range;

impl Trial<'_> {
    /// Writes the capture to a folder that does not exist, with spare pages that are zero. Nothing is left where that fails.
    ///
    /// # Errors
    /// The launches do not compute the same, or the folder cannot be written.
    pub fn write(&mut self, folder: &Path, spare: &[std::ops::Range<u64>]) -> Result<(), Error> {
        let ranges = self.pages().ranges(spare);
        self.forget();
        self.set_memory(Fill::Zeros, spare)?;
        let keeps_outputs = keeps_outputs(self.capture());
        let mut outcomes = Vec::new();
        let is_same = self.run(None, |changed| {
            outcomes.push(Left::new(changed, keeps_outputs));
        })?;
        if !is_same {
            return Err(Error::Unsupported(
                "the launches no longer compute the same without the pages that they seemed not to need: they differ from themselves"
                    .to_owned(),
            ));
        }
        let capture = self.capture();
        let written = Copy::begin(capture, folder).and_then(|copy| copy.write(&ranges, &outcomes));
        written.map_err(|error| {
            // A folder that existed before is not ours.
            if error.kind() != io::ErrorKind::AlreadyExists {
                let _ = std::fs::remove_dir_all(folder);
            }
            Error::File {
                path: folder.display().to_string(),
                error,
            }
        })
    }
}

/// Returns whether a capture has the bytes of its outcomes, and not their hashes alone.
fn keeps_outputs(capture: &CudaCapture) -> bool {
    capture.steps.iter().any(|step| match step {
        CudaStep::Outcome(outcome) => {
            let mut hashes = outcome.hashes.iter();
            hashes.all(|hash| capture.chunk_bytes(*hash).is_some())
        }
        _ => false,
    })
}

/// What a launch left in memory.
struct Left {
    /// The changed pieces, joined where they follow each other.
    outcomes: Vec<Outcome>,
    /// Their bytes, if they are kept.
    bytes: Vec<Vec<u8>>,
}

impl Left {
    fn new(changed: &[(Range, Vec<u8>)], keeps_bytes: bool) -> Left {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (range, bytes) in changed {
            let hash = Hash::new(bytes);
            match outcomes.last_mut() {
                Some(last)
                    if last.memory == range.memory && last.offset + last.bytes == range.offset =>
                {
                    last.bytes += range.bytes;
                    last.hashes.push(hash);
                }
                _ => outcomes.push(Outcome {
                    memory: range.memory,
                    offset: range.offset,
                    bytes: range.bytes,
                    hashes: vec![hash],
                }),
            }
        }
        let bytes = changed.iter().filter(|_| keeps_bytes);
        Left {
            outcomes,
            bytes: bytes.map(|(_, bytes)| bytes.clone()).collect(),
        }
    }
}

/// A capture that is being written from another one.
struct Copy<'a> {
    from: &'a CudaCapture,
    to: Writer,
    /// The memory whose record was written.
    memories: BTreeSet<MemoryId>,
}

impl<'a> Copy<'a> {
    fn begin(from: &'a CudaCapture, folder: &Path) -> io::Result<Copy<'a>> {
        let mut copy = Copy {
            from,
            to: Writer::create(folder, from.header.clone())?,
            memories: BTreeSet::new(),
        };
        for module in from.modules.values() {
            copy.chunks(&module.code)?;
            copy.to.record(&CudaRecord::CudaModule(module.clone()))?;
        }
        Ok(copy)
    }

    /// Writes all steps, with what each launch left.
    fn write(mut self, spare: &[Range], outcomes: &[Left]) -> io::Result<()> {
        let mut outcomes = outcomes.iter();
        let mut reached: BTreeSet<MemoryId> = self.from.replaced().map(|(_, new)| new).collect();
        for step in &self.from.steps {
            match step {
                CudaStep::Content(content) => {
                    self.memory(content.memory)?;
                    // Content that comes later is not on the pages that were looked at.
                    let is_first = !reached.contains(&content.memory);
                    let content = match is_first {
                        true => self.content(content, spare)?,
                        false => {
                            self.chunks(&content.chunks)?;
                            content.clone()
                        }
                    };
                    self.to.record(&CudaRecord::Content(content))?;
                }
                CudaStep::Launch(launch) => {
                    self.memories_of(launch)?;
                    reached.extend(&launch.reached);
                    self.to.record(&CudaRecord::Launch(launch.clone()))?;
                    let Some(left) = outcomes.next() else {
                        continue;
                    };
                    for bytes in &left.bytes {
                        self.to.chunk(bytes)?;
                    }
                    for outcome in &left.outcomes {
                        reached.insert(outcome.memory);
                        self.memory(outcome.memory)?;
                        self.to.record(&CudaRecord::Outcome(outcome.clone()))?;
                    }
                }
                CudaStep::Outcome(outcome) => {
                    reached.insert(outcome.memory);
                }
            }
        }
        match &self.from.end {
            Some(end) => self.to.record(&CudaRecord::End(end.clone())),
            None => Ok(()),
        }
    }

    /// Writes content with spare pages that are zero, and returns its record.
    fn content(&mut self, content: &Content, spare: &[Range]) -> io::Result<Content> {
        let mut chunks = Vec::with_capacity(content.chunks.len());
        let mut offset = content.offset;
        for hash in &content.chunks {
            let mut bytes = self.from.chunk(*hash)?;
            let end = offset + bytes.len() as u64;
            for range in spare {
                let (from, to) = (
                    range.offset.max(offset),
                    (range.offset + range.bytes).min(end),
                );
                if range.memory == content.memory && from < to {
                    Fill::Zeros.put(&mut bytes[(from - offset) as usize..(to - offset) as usize]);
                }
            }
            chunks.push(self.to.chunk(&bytes)?);
            offset = end;
        }
        Ok(Content {
            chunks,
            ..content.clone()
        })
    }

    /// Writes pieces as they are.
    fn chunks(&mut self, hashes: &[Hash]) -> io::Result<()> {
        for hash in hashes {
            if !self.to.has(*hash) {
                self.to.chunk(&self.from.chunk(*hash)?)?;
            }
        }
        Ok(())
    }

    /// Writes the records of the memory that a launch names.
    fn memories_of(&mut self, launch: &Launch) -> io::Result<()> {
        let relocated = launch
            .relocations
            .iter()
            .map(|relocation| relocation.memory);
        for memory in launch.reached.iter().copied().chain(relocated) {
            self.memory(memory)?;
        }
        Ok(())
    }

    /// Writes the record of a memory before the first step that names it: an allocation ends where one that overlaps it is added.
    fn memory(&mut self, id: MemoryId) -> io::Result<()> {
        match self.from.memories.get(&id) {
            Some(memory) if self.memories.insert(id) => {
                self.to.record(&CudaRecord::CudaMemory(memory.clone()))
            }
            _ => Ok(()),
        }
    }
}
