//! Captures of CUDA: windows of kernel launches with their code, parameters and memory.
//!
//! A launch has the effect of the program's call: the code that ran, its parameters as bytes, and the memory that a
//! pointer in them, in that memory or in a global of the code can reach. What ran between two launches of a window, such
//! as copies, is in the capture as the content that it left.

mod capture;
mod check;
mod model;

pub use capture::{CudaCapture, CudaStep};
pub use model::{
    Attribute, CudaDevice, CudaMemory, CudaModule, CudaRecord, FunctionAttributes, Launch,
    MemoryPlace, Relocation,
};
