//! Captures: windows of a program's GPU work that can be run again.
//!
//! A capture is a folder `NAME.gapcapture/` with two files: `capture.jsonl` has a [`Record`] a line, and
//! `content.bin` the bytes of shaders and memory, in pieces of which equal ones are kept once, under their hash. Both
//! files only grow, and content is written before the record that names it, so that a capture that was cut off is
//! valid as far as it goes. `docs/capture-format.md` describes the files for other programs.
//!
//! Records have the effect of the program's calls instead of the calls themselves: a dispatch has its pipeline, its
//! bindings and its push constants as they were when it was submitted.
//!
//! - [`model`]: the records of Vulkan.
//! - [`cuda`]: the records of CUDA, and captures of them.
//! - [`request`]: what the layer is asked to capture.
//! - [`Writer`]: writes a capture while the program runs; the layer in the program uses it.
//! - [`Capture::open`], [`AnyCapture::open`]: read a capture of any origin, and check that whatever a record names is
//!   there and in bounds.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod capture;
mod check;
mod content;
mod content_file;
mod contents;
pub mod cuda;
mod files;
mod hex;
mod invalid;
pub mod model;
pub mod request;
mod writer;

pub use capture::{Capture, Step};
pub use content::{CHUNK_BYTES, Hash, piece_count, pieces};
pub use files::{AnyCapture, Problem, ReadError};
pub use invalid::InvalidRecord;
pub use model::Record;
pub use writer::{Frame, Line, LinePlace, Writer};

/// The latest version of the format. This code reads it and all earlier ones.
pub const FORMAT: u32 = 2;
/// The version that this code writes for captures of Vulkan, which earlier readers understand.
pub const VULKAN_FORMAT: u32 = 1;
/// The version that this code writes for captures of CUDA, the first that has them.
pub const CUDA_FORMAT: u32 = 2;

/// Name of the file of records in the capture's folder.
pub const RECORDS: &str = "capture.jsonl";
/// Name of the file of content in the capture's folder.
pub const CONTENT: &str = "content.bin";
