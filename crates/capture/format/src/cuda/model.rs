//! The records of captures of CUDA, in the order in which they are written. Numbers of CUDA's enumerations are those of
//! `cuda.h`; sizes and offsets are bytes.

use serde::{Deserialize, Serialize};

use crate::content::Hash;
use crate::model::{Chunk, Content, End, Header, MemoryId, ModuleId, Outcome};

/// One line of `capture.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CudaRecord {
    /// The first record, and only that one.
    Capture(Header<CudaDevice>),
    /// The place of a piece of content in `content.bin`.
    Chunk(Chunk),
    /// Loaded code.
    CudaModule(CudaModule),
    /// An allocation, or a global of loaded code.
    CudaMemory(CudaMemory),
    /// Bytes of memory before the next launch.
    Content(Content),
    /// A kernel runs.
    Launch(Launch),
    /// Hashes of memory that the last launch changed.
    Outcome(Outcome),
    /// The end of the window: the last record before the last check. A capture without it was cut off.
    End(End),
    /// The hash of all bytes of the file before this line. A check stands before each launch and at the end.
    Check(Hash),
}

/// The properties of a GPU that a replay compares with those of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaDevice {
    /// `cuDeviceGetName`
    pub name: String,
    /// Compute capability: major and minor.
    pub compute_capability: [u32; 2],
    /// `cuDriverGetVersion`: the newest CUDA that the driver supports, as 1000 × major + 10 × minor; `None` where it
    /// does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<u32>,
    /// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`; `None` where the driver does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
    /// `cuDeviceTotalMem`; `None` where the driver does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Code that the driver loaded: a cubin, which is an ELF file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaModule {
    /// Id of the module.
    pub id: ModuleId,
    /// Pieces of the cubin, each of [`crate::CHUNK_BYTES`] but for the last.
    pub code: Vec<Hash>,
}

/// Memory that launches reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaMemory {
    /// Id of the memory.
    pub id: MemoryId,
    /// The address of its first byte when it was captured.
    pub address: u64,
    /// Size.
    pub bytes: u64,
    /// What the memory is.
    pub place: MemoryPlace,
}

/// The kind of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryPlace {
    /// An allocation on the GPU, at the recorded address in a replay too.
    Device,
    /// Page-locked memory of the host that the GPU reads and writes, at the recorded address in a replay too.
    Host,
    /// A variable of a module; a replay finds its address by its name.
    Global {
        /// The module.
        module: ModuleId,
        /// The variable's name in the cubin.
        name: String,
    },
}

/// A launch of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The code.
    pub module: ModuleId,
    /// The kernel's name in the code.
    pub kernel: String,
    /// Number of blocks.
    pub grid: [u32; 3],
    /// Number of threads in a block.
    pub block: [u32; 3],
    /// Shared memory of a block that the launch asked for.
    #[serde(default, skip_serializing_if = "crate::model::is_zero")]
    pub shared_bytes: u32,
    /// The parameters, each at its offset, as the kernel reads them.
    #[serde(with = "crate::hex")]
    pub parameters: Vec<u8>,
    /// The words of the parameters that point into a global, whose address is another one in each process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relocations: Vec<Relocation>,
    /// Attributes of the launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// Attributes of the function.
    #[serde(default)]
    pub function: FunctionAttributes,
    /// The stream, counted in the order of first use in the window.
    #[serde(default, skip_serializing_if = "crate::model::is_zero")]
    pub stream: u32,
    /// The memory that a pointer leads to, from the parameters and from memory that is reached. The kernel may read and
    /// write all of it.
    pub reached: Vec<MemoryId>,
    /// Number of the launch, from 0, among all launches of the program; `None` where they were not counted from its
    /// start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Nanoseconds from the begin of the window to the program's call.
    pub called_ns: u64,
    /// Nanoseconds that the GPU took when the launch was captured, with nothing beside it; `None` where they could not
    /// be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
}

/// A word of 8 bytes in parameters that points into a global.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// Offset of the word in the parameters.
    pub at: u32,
    /// The global.
    pub memory: MemoryId,
}

/// `CUlaunchAttribute`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// `CUlaunchAttributeID`
    pub id: u32,
    /// `CUlaunchAttributeValue`: 64 bytes.
    #[serde(with = "crate::hex")]
    pub value: Vec<u8>,
}

/// Attributes of a function that affect what its launches may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionAttributes {
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
    pub max_dynamic_shared_bytes: i32,
    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`: a percentage, or -1 for the driver's choice.
    pub shared_carveout: i32,
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`
    pub non_portable_cluster: bool,
}

impl Default for FunctionAttributes {
    fn default() -> FunctionAttributes {
        FunctionAttributes {
            max_dynamic_shared_bytes: 0,
            shared_carveout: -1,
            non_portable_cluster: false,
        }
    }
}
