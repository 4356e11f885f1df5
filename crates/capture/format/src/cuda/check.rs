//! Adds records to a [`CudaCapture`] one by one, and refuses a record that names an object that is not there, or a
//! range that is out of bounds. An invalid record leaves the capture as it was.

use super::capture::{CudaCapture, CudaStep};
use super::model::{CudaMemory, CudaModule, CudaRecord, Launch, MemoryPlace};
use crate::check::{known, new, text};
use crate::content::CHUNK_BYTES;
use crate::contents::{check_outcome, inside};
use crate::invalid::Fault;
use crate::model::MemoryId;

/// The most bytes of parameters: CUDA 12.1 raised the limit to 32,764. A launch with more is refused.
const MAX_PARAMETER_BYTES: usize = 32 << 10;
/// The most attributes of a launch; `cuda.h` has fewer kinds.
const MAX_ATTRIBUTES: usize = 64;
/// The size of `CUlaunchAttributeValue`.
const ATTRIBUTE_VALUE_BYTES: usize = 64;
/// The greatest address of memory: 57 bits is the most that a processor or a GPU translates.
const MAX_ADDRESS: u64 = 1 << 57;
/// The most bytes of a cubin.
const MAX_CODE_BYTES: u64 = 1 << 30;
/// The fewest bytes of a cubin: an ELF header.
const MIN_CODE_BYTES: u64 = 64;

impl CudaCapture {
    /// Adds a record if everything that it names is there. An invalid record changes nothing.
    pub(crate) fn add(&mut self, record: CudaRecord) -> Result<(), Fault> {
        if let CudaRecord::Check(_) = record {
            // A check is about the file; outcomes before it are whole.
            self.checked_steps = self.steps.len();
            return Ok(());
        }
        if self.end.is_some() {
            return Err(Fault::AfterEnd);
        }
        match record {
            CudaRecord::Capture(_) => return Err(Fault::SecondHeader),
            CudaRecord::Chunk(chunk) => self.contents.add(chunk)?,
            CudaRecord::CudaModule(module) => {
                self.check_code(&module)?;
                new(&mut self.modules, module.id, module)?;
            }
            CudaRecord::CudaMemory(memory) => self.add_memory(memory)?,
            CudaRecord::Content(content) => {
                let memory = self.live(content.memory)?;
                self.contents.check_content(&content, memory.bytes)?;
                self.steps.push(CudaStep::Content(content));
            }
            CudaRecord::Launch(launch) => {
                self.check_launch(&launch)?;
                self.steps.push(CudaStep::Launch(launch));
            }
            CudaRecord::Outcome(outcome) => {
                let memory = self.live(outcome.memory)?;
                check_outcome(&outcome, memory.bytes)?;
                let follows = |step: &CudaStep| !matches!(step, CudaStep::Content(_));
                if !self.steps.last().is_some_and(follows) {
                    return Err(Fault::NoLaunch);
                }
                self.steps.push(CudaStep::Outcome(outcome));
            }
            CudaRecord::End(end) => self.end = Some(end),
            CudaRecord::Check(_) => {}
        }
        Ok(())
    }

    /// Returns memory that has not ended.
    fn live(&self, id: MemoryId) -> Result<&CudaMemory, Fault> {
        match self.replaced.get(&id) {
            Some(other) => Err(Fault::MemoryReplaced {
                memory: id,
                other: *other,
            }),
            None => known(&self.memories, id, "memory"),
        }
    }

    /// Checks that all pieces of the code are there, and are whole but for the last.
    fn check_code(&self, module: &CudaModule) -> Result<(), Fault> {
        let mut total = 0;
        for (index, hash) in module.code.iter().enumerate() {
            let bytes = u64::from(self.contents.has(*hash)?);
            let is_last = index + 1 == module.code.len();
            if bytes == 0 || bytes > CHUNK_BYTES || (bytes < CHUNK_BYTES && !is_last) {
                let room = CHUNK_BYTES;
                return Err(Fault::PieceBytes { index, bytes, room });
            }
            total += bytes;
        }
        match (MIN_CODE_BYTES..=MAX_CODE_BYTES).contains(&total) {
            true => Ok(()),
            false => Err(Fault::Code(total)),
        }
    }

    /// Adds memory. Allocations that have a byte in common with it end.
    fn add_memory(&mut self, memory: CudaMemory) -> Result<(), Fault> {
        let CudaMemory { address, bytes, .. } = memory;
        if bytes == 0 {
            return Err(Fault::NoPieces);
        }
        inside(address, bytes, MAX_ADDRESS)?;
        let end = address + bytes;
        let (id, is_allocation) = (
            memory.id,
            !matches!(memory.place, MemoryPlace::Global { .. }),
        );
        match &memory.place {
            MemoryPlace::Device | MemoryPlace::Host => {
                if self.memories.contains_key(&id) {
                    return Err(Fault::TakenId(id.to_string()));
                }
                // The program has freed what was there.
                while let Some((&start, &(other_end, other))) =
                    self.allocations.range(..end).next_back()
                    && other_end > address
                {
                    self.allocations.remove(&start);
                    self.replaced.insert(other, id);
                }
            }
            MemoryPlace::Global { module, name } => {
                known(&self.modules, *module, "module")?;
                text(name)?;
            }
        }
        new(&mut self.memories, id, memory)?;
        if is_allocation {
            self.allocations.insert(address, (end, id));
        }
        Ok(())
    }

    fn check_launch(&self, launch: &Launch) -> Result<(), Fault> {
        known(&self.modules, launch.module, "module")?;
        text(&launch.kernel)?;
        let bytes = launch.parameters.len();
        if bytes > MAX_PARAMETER_BYTES {
            let max = MAX_PARAMETER_BYTES;
            return Err(Fault::Parameters { bytes, max });
        }
        if launch.grid.contains(&0) || launch.block.contains(&0) {
            return Err(Fault::EmptyGrid);
        }
        for relocation in &launch.relocations {
            inside(relocation.at.into(), 8, bytes as u64)?;
            let memory = known(&self.memories, relocation.memory, "memory")?;
            if !matches!(memory.place, MemoryPlace::Global { .. }) {
                return Err(Fault::NoGlobal(relocation.memory));
            }
        }
        let values = launch.attributes.iter().map(|each| each.value.len());
        if launch.attributes.len() > MAX_ATTRIBUTES {
            return Err(Fault::Attributes(launch.attributes.len()));
        }
        if let Some(bytes) = values
            .into_iter()
            .find(|bytes| *bytes != ATTRIBUTE_VALUE_BYTES)
        {
            return Err(Fault::AttributeBytes(bytes));
        }
        for id in &launch.reached {
            self.live(*id)?;
        }
        Ok(())
    }
}
