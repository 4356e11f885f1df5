//! Says what a SPIR-V module can reach: its descriptors, which of them it only reads, and memory by address.

use std::collections::BTreeMap;

use gapscope_spirv::Description;

/// What a module can reach.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Set and binding of each descriptor that a variable names.
    pub bindings: BTreeMap<(u32, u32), Access>,
    /// It has pointers to memory that no descriptor names.
    pub uses_addresses: bool,
}

/// What a module may do to a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It cannot write through it.
    pub read_only: bool,
}

/// Reads a module. Words that are not SPIR-V reach nothing.
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
