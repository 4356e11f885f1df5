//! Decides when the scopes of a barrier, which are sets of pipeline stages and kinds of access before and after it,
//! contain an access (Vulkan specification, "Execution and Memory Dependencies").

use gapscope_capture::model::Dependency;

/// The bits of `VkPipelineStageFlagBits2` that matter here.
mod stage {
    pub const TOP_OF_PIPE: u64 = 1;
    pub const DRAW_INDIRECT: u64 = 2;
    pub const COMPUTE_SHADER: u64 = 0x800;
    pub const ALL_TRANSFER: u64 = 0x1000;
    pub const BOTTOM_OF_PIPE: u64 = 0x2000;
    pub const HOST: u64 = 0x4000;
    pub const ALL_COMMANDS: u64 = 0x1_0000;
    pub const COPY: u64 = 1 << 32;
    pub const CLEAR: u64 = 1 << 35;
}

/// The bits of `VkAccessFlagBits2` that matter here.
mod access {
    pub const INDIRECT_COMMAND_READ: u64 = 1;
    pub const UNIFORM_READ: u64 = 8;
    pub const SHADER_READ: u64 = 0x20;
    pub const SHADER_WRITE: u64 = 0x40;
    pub const TRANSFER_READ: u64 = 0x800;
    pub const TRANSFER_WRITE: u64 = 0x1000;
    pub const MEMORY_READ: u64 = 0x8000;
    pub const MEMORY_WRITE: u64 = 0x1_0000;
    pub const SHADER_STORAGE_READ: u64 = 1 << 33;
    pub const SHADER_STORAGE_WRITE: u64 = 1 << 34;
}

/// The way in which a command reaches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// A dispatch reads its number of workgroups.
    IndirectRead,
    /// A kernel reads a uniform buffer.
    UniformRead,
    /// A kernel reads a storage buffer.
    StorageRead,
    /// A kernel writes a storage buffer.
    StorageWrite,
    /// A copy reads its source.
    CopyRead,
    /// A copy writes its destination.
    CopyWrite,
    /// A fill or an update writes its range.
    ClearWrite,
}

impl Scope {
    /// All variants.
    pub(crate) const ALL: [Scope; 7] = [
        Scope::IndirectRead,
        Scope::UniformRead,
        Scope::StorageRead,
        Scope::StorageWrite,
        Scope::CopyRead,
        Scope::CopyWrite,
        Scope::ClearWrite,
    ];

    /// Returns the pipeline stage of an access, as a `VkPipelineStageFlagBits2`.
    fn stage(self) -> u64 {
        match self {
            Scope::IndirectRead => stage::DRAW_INDIRECT,
            Scope::UniformRead | Scope::StorageRead | Scope::StorageWrite => stage::COMPUTE_SHADER,
            Scope::CopyRead | Scope::CopyWrite => stage::COPY,
            Scope::ClearWrite => stage::CLEAR,
        }
    }

    /// Returns the access flags that include an access.
    fn accesses(self) -> u64 {
        match self {
            Scope::IndirectRead => access::INDIRECT_COMMAND_READ | access::MEMORY_READ,
            Scope::UniformRead => access::UNIFORM_READ | access::MEMORY_READ,
            Scope::StorageRead => {
                access::SHADER_READ | access::SHADER_STORAGE_READ | access::MEMORY_READ
            }
            Scope::StorageWrite => {
                access::SHADER_WRITE | access::SHADER_STORAGE_WRITE | access::MEMORY_WRITE
            }
            Scope::CopyRead => access::TRANSFER_READ | access::MEMORY_READ,
            Scope::CopyWrite | Scope::ClearWrite => access::TRANSFER_WRITE | access::MEMORY_WRITE,
        }
    }
}

/// The scopes of a part of a barrier: the stages and accesses that come before it, and those that wait for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scopes {
    /// The stages that the barrier waits for: the first execution scope.
    after_stages: u64,
    /// The accesses that it waits for: the first access scope.
    after_access: u64,
    /// The stages that wait for it: the second execution scope.
    before_stages: u64,
    /// The accesses that wait for it: the second access scope.
    before_access: u64,
}

impl Scopes {
    pub fn new(dependency: &Dependency) -> Scopes {
        Scopes {
            after_stages: first(dependency.after_stages),
            after_access: dependency.after_access,
            before_stages: second(dependency.before_stages),
            before_access: dependency.before_access,
        }
    }

    /// Returns the union of two pairs of scopes.
    pub fn and(self, other: Scopes) -> Scopes {
        Scopes {
            after_stages: self.after_stages | other.after_stages,
            after_access: self.after_access | other.after_access,
            before_stages: self.before_stages | other.before_stages,
            before_access: self.before_access | other.before_access,
        }
    }

    /// Returns whether accesses of this kind are in the first execution scope: the barrier waits for them.
    pub fn is_after(self, scope: Scope) -> bool {
        self.after_stages & scope.stage() != 0
    }

    /// Returns whether writes of this kind are in the first access scope.
    pub fn makes_available(self, scope: Scope) -> bool {
        self.is_after(scope) && self.after_access & scope.accesses() != 0
    }

    /// Returns whether the first execution scope contains one of the stages of another barrier's second scope, so
    /// that the two barriers form a chain.
    pub fn follows(self, stages: Stages) -> bool {
        self.after_stages & stages.0 != 0
    }

    /// Returns the second execution scope: the stages that wait for the barrier.
    pub fn before(self) -> Stages {
        Stages(self.before_stages)
    }

    /// Returns whether accesses of this kind are in the second access scope.
    pub fn makes_visible(self, scope: Scope) -> bool {
        self.before_stages & scope.stage() != 0 && self.before_access & scope.accesses() != 0
    }

    /// Returns whether the host may wait for the second scope.
    pub fn is_for_host(self) -> bool {
        self.before_stages & stage::HOST != 0
    }
}

/// A set of pipeline stages, as the bits of Vulkan's stage flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stages(u64);

impl Stages {
    /// The set of all stages.
    pub const ALL: Stages = Stages(u64::MAX);

    /// Returns the stages that all waits hold back.
    pub fn waiting(masks: impl Iterator<Item = u64>) -> Stages {
        Stages(masks.map(second).fold(u64::MAX, |all, of| all & of))
    }

    /// Returns the stages that all signals come after.
    pub fn signalled(masks: impl Iterator<Item = u64>) -> Stages {
        Stages(masks.map(first).fold(u64::MAX, |all, of| all & of))
    }

    /// Returns the stages that both sets have.
    pub fn both(self, other: Stages) -> Stages {
        Stages(self.0 & other.0)
    }

    /// Returns the stages that either set has.
    pub fn and(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }

    /// Returns whether the stage of an access is in the set.
    pub fn contain(self, scope: Scope) -> bool {
        self.0 & scope.stage() != 0
    }
}

/// Returns the stages of a first scope, with those that come logically before them.
fn first(stages: u64) -> u64 {
    let mut stages = everything(stages, stage::BOTTOM_OF_PIPE);
    if stages & stage::COMPUTE_SHADER != 0 {
        stages |= stage::DRAW_INDIRECT;
    }
    stages
}

/// Returns the stages of a second scope, with those that come logically after them.
fn second(stages: u64) -> u64 {
    let mut stages = everything(stages, stage::TOP_OF_PIPE);
    if stages & stage::DRAW_INDIRECT != 0 {
        stages |= stage::COMPUTE_SHADER;
    }
    stages
}

/// Replaces flags that stand for several stages by those stages. `all` is another flag for all stages.
fn everything(stages: u64, all: u64) -> u64 {
    const NAMES: u64 = stage::TOP_OF_PIPE | stage::BOTTOM_OF_PIPE | stage::ALL_COMMANDS;
    let mut expanded = stages & !NAMES;
    if stages & (stage::ALL_COMMANDS | all) != 0 {
        expanded |= !(NAMES | stage::HOST);
    }
    if stages & stage::ALL_TRANSFER != 0 {
        expanded |= stage::COPY | stage::CLEAR;
    }
    expanded
}
