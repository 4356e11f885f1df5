//! Merges several kernels into one SPIR-V module, by a plan of their bindings. A new entry point calls the kernels'
//! functions in order. The plan comes from `rewrite`, for a chain that was proved to be mergeable.

mod builder;

use std::collections::BTreeMap;

use rspirv::binary::Assemble;
use rspirv::spirv::Word;

use crate::module::Kernel;
use crate::refusal::Refusal;
use builder::Builder;

/// Name of a merged module's entry point.
pub const ENTRY: &str = "main";

/// The plan for merging kernels: the places of their bindings and push constants, and the memory that they share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MergePlan {
    /// Number of invocations of a workgroup by axis.
    pub local_size: [u32; 3],
    /// For each kernel, by set and binding, the place of the binding in the merged kernel's set 0.
    pub slots: Vec<BTreeMap<(u32, u32), Slot>>,
    /// For each kernel the offset of its push constants in the merged ones.
    pub push_constants: Vec<u32>,
    /// The memory through which the kernels pass values.
    pub intermediates: Vec<Intermediate>,
    /// Whether values are forwarded in registers instead of through memory.
    pub forwarded: bool,
}

/// The place of a binding in the merged kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Number of the binding in the merged kernel.
    pub number: u32,
    /// Whether another variable reaches the same memory, and a kernel writes there.
    pub aliased: bool,
    /// Index among the intermediates; `None` if the binding is none of them.
    pub intermediate: Option<usize>,
}

/// Memory that a kernel writes and a later kernel reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intermediate {
    /// Index of the first kernel that writes the memory.
    pub writer: usize,
    /// For each kernel whether its stores must reach memory.
    pub stored: Vec<bool>,
}

/// Merges kernels, and returns the SPIR-V words of the merged module.
pub fn merge(kernels: &[Kernel], plan: &MergePlan) -> Result<Vec<Word>, Refusal> {
    let mut builder = Builder::new(kernels, plan)?;
    for (number, kernel) in kernels.iter().enumerate() {
        builder.add(number, kernel)?;
    }
    Ok(builder.finish().assemble())
}
