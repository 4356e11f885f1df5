//! Reads from a SPIR-V module (Vulkan's code for GPUs) which memory it can reach: its descriptors, which of them it
//! only reads, and whether it uses memory by address.

use std::collections::BTreeMap;

use gapscope_spirv::Description;

/// The memory that a module can reach.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Set and binding of each descriptor that a variable names.
    pub bindings: BTreeMap<(u32, u32), Access>,
    /// Whether the module has pointers to memory that no descriptor names.
    pub uses_addresses: bool,
}

/// The access that a module may make through a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Whether the module cannot write through the descriptor.
    pub read_only: bool,
}

/// Returns the memory that a module can reach; nothing for words that are not SPIR-V.
pub fn interface(words: &[u32]) -> Interface {
    let described = Description::read(words);
    let mut bindings = BTreeMap::new();
    for variable in &described.variables {
        let read_only = !variable.may_be_written;
        // Several variables may share a descriptor.
        let access = bindings
            .entry((variable.set, variable.binding))
            .or_insert(Access { read_only });
        access.read_only &= read_only;
    }
    Interface {
        bindings,
        uses_addresses: described.uses_addresses,
    }
}
