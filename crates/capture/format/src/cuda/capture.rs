//! Defines [`CudaCapture`], all records of a capture of CUDA in memory.

use std::collections::BTreeMap;
use std::io;

use super::model::{CudaDevice, CudaMemory, CudaModule, Launch, MemoryPlace};
use crate::content::Hash;
use crate::contents::Contents;
use crate::model::{Content, End, Header, MemoryId, ModuleId, Outcome};

/// The records of a capture by their ids. Every object that a record names is in the capture, and every range is in
/// bounds.
#[derive(Debug)]
pub struct CudaCapture {
    /// The program, the GPU and the window.
    pub header: Header<CudaDevice>,
    /// Loaded code by id.
    pub modules: BTreeMap<ModuleId, CudaModule>,
    /// Allocations and globals by id. An allocation ends where one that overlaps it is added.
    pub memories: BTreeMap<MemoryId, CudaMemory>,
    /// Content, launches and outcomes in order.
    pub steps: Vec<CudaStep>,
    /// The end of the window; `None` if the capture was cut off.
    pub end: Option<End>,
    /// The pieces of content.
    pub(crate) contents: Contents,
    /// The allocations that have not ended, by their address: the end, and the id.
    pub(super) allocations: BTreeMap<u64, (u64, MemoryId)>,
    /// The allocations that have ended, each with the one that ended it.
    pub(super) replaced: BTreeMap<MemoryId, MemoryId>,
    /// The number of steps before the last check.
    pub(super) checked_steps: usize,
}

/// A step of a window.
#[derive(Debug, Clone, PartialEq)]
pub enum CudaStep {
    /// Bytes that memory holds before the next launch.
    Content(Content),
    /// A kernel runs.
    Launch(Launch),
    /// Hashes of the bytes that the last launch changed. Memory that the launch reached and no outcome names is as it
    /// was before.
    Outcome(Outcome),
}

impl CudaCapture {
    pub(crate) fn new(header: Header<CudaDevice>, contents: Contents) -> CudaCapture {
        CudaCapture {
            header,
            modules: BTreeMap::new(),
            memories: BTreeMap::new(),
            steps: Vec::new(),
            end: None,
            contents,
            allocations: BTreeMap::new(),
            replaced: BTreeMap::new(),
            checked_steps: 0,
        }
    }

    /// Ends the reading. Of a capture that was cut off, the outcome of the last launch may be written in part: the launch
    /// is left out, unless a check follows it.
    pub(crate) fn finish(&mut self) {
        if self.end.is_none() {
            self.steps.truncate(self.checked_steps);
        }
    }

    /// Reads the chunk (a piece of content) with this hash, which has [`CudaCapture::chunk_bytes`] bytes.
    ///
    /// # Errors
    /// The chunk is not in the file, or its bytes have another hash.
    pub fn chunk(&self, hash: Hash) -> io::Result<Vec<u8>> {
        self.contents.read(hash)
    }

    /// Returns the size of the chunk with this hash; `None` if the capture does not have it.
    pub fn chunk_bytes(&self, hash: Hash) -> Option<u32> {
        self.contents.bytes(hash)
    }

    /// Returns the number of bytes of these chunks together.
    pub fn total_bytes(&self, chunks: &[Hash]) -> u64 {
        self.contents.total(chunks)
    }

    /// Reads the cubin of a module.
    ///
    /// # Errors
    /// A chunk is not in the file, or its bytes have another hash.
    pub fn code(&self, module: &CudaModule) -> io::Result<Vec<u8>> {
        let mut code = Vec::new();
        for hash in &module.code {
            code.extend(self.chunk(*hash)?);
        }
        Ok(code)
    }

    /// Returns the launches in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|step| match step {
            CudaStep::Launch(launch) => Some(launch),
            _ => None,
        })
    }

    /// Returns the allocation in which an address lies, and the offset in it; globals are none.
    pub fn allocation_at(&self, address: u64) -> Option<(MemoryId, u64)> {
        let (start, (end, id)) = self.allocations.range(..=address).next_back()?;
        (address < *end).then(|| (*id, address - start))
    }

    /// Returns the allocations that ended because another one overlaps them, each with that one. Both have the bytes at
    /// the same addresses, one after the other.
    pub fn replaced(&self) -> impl Iterator<Item = (MemoryId, MemoryId)> {
        self.replaced.iter().map(|(old, new)| (*old, *new))
    }

    /// Returns the globals of a module, with their names.
    pub fn globals(&self, module: ModuleId) -> impl Iterator<Item = (&CudaMemory, &str)> {
        self.memories
            .values()
            .filter_map(move |memory| match &memory.place {
                MemoryPlace::Global { module: of, name } if *of == module => {
                    Some((memory, name.as_str()))
                }
                _ => None,
            })
    }
}
