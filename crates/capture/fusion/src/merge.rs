//! Merges several kernels into one module. Functions stay as they are, and a new entry point calls one after the
//! other.

mod builder;

use std::collections::BTreeMap;

use rspirv::binary::Assemble;
use rspirv::spirv::Word;

use crate::module::Kernel;
use crate::refusal::Refusal;
use builder::Builder;

/// Name of a merged module's entry point.
pub const ENTRY: &str = "main";

/// The plan for merging kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MergePlan {
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// For each kernel the places of its bindings in set 0, by set and binding.
    pub slots: Vec<BTreeMap<(u32, u32), Slot>>,
    /// For each kernel the offset of its push constants.
    pub push_constants: Vec<u32>,
    /// The memory through which the kernels pass values.
    pub intermediates: Vec<Intermediate>,
    /// Values are forwarded in registers.
    pub forwarded: bool,
}

/// The place of a binding in the merged kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Number of the binding in the merged kernel.
    pub number: u32,
    /// Another variable reaches the same memory, and something is written there.
    pub aliased: bool,
    /// Index among the intermediates.
    pub intermediate: Option<usize>,
}

/// Memory that a kernel writes and a later one reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intermediate {
    /// Index of the first kernel that writes it.
    pub writer: usize,
    /// For each kernel whether its stores must reach memory.
    pub stored: Vec<bool>,
}

/// Merges kernels.
pub fn merge(kernels: &[Kernel], plan: &MergePlan) -> Result<Vec<Word>, Refusal> {
    let mut builder = Builder::new(kernels, plan)?;
    for (number, kernel) in kernels.iter().enumerate() {
        builder.add(number, kernel)?;
    }
    Ok(builder.finish().assemble())
}
