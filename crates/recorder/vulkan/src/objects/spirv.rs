//! Describes a SPIR-V module (Vulkan's code for GPUs) for events: words of code go in; entry points, the source's
//! name, and the accesses to buffers come out.

use gapscope_spirv::numbers::storage_class;
use gapscope_spirv::{BoundVariable, EntryPointSize};
use gapscope_spool::event::BindingAccess;

/// The description of a module, from its own code. A field is empty where the code gives nothing for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Description {
    /// Compute entry points, each with its workgroup size; zeros where it is not known.
    pub entry_points: Vec<(String, [u32; 3])>,
    /// The source file that debug information names.
    pub source_name: String,
    /// Access to buffer bindings by any code of the module.
    pub accesses: Vec<BindingAccess>,
}

/// Describes a module. Words that are not SPIR-V give an empty description.
pub fn describe(words: &[u32]) -> Description {
    let described = gapscope_spirv::Description::read(words);
    let is_buffer = |variable: &&BoundVariable| {
        matches!(
            variable.class,
            storage_class::STORAGE_BUFFER | storage_class::UNIFORM
        )
    };
    let entry_points = described.entry_points.into_iter();
    let accesses = described.variables.iter().filter(is_buffer);
    Description {
        entry_points: entry_points
            .map(|EntryPointSize { name, local_size }| (name, local_size))
            .collect(),
        source_name: described.source_name,
        accesses: accesses
            .map(|variable| BindingAccess {
                set: variable.set,
                binding: variable.binding,
                reads: variable.reads,
                writes: variable.writes,
            })
            .collect(),
    }
}
