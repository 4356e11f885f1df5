//! A capture: a window of a program's GPU work that can be run again.
//!
//! A capture is a folder `NAME.gapcapture/` with two files: `capture.jsonl`, a [`Record`] a line, and `content.bin`, the bytes of
//! shaders and memory, in pieces that are kept once each, by their hash. Both are only ever appended to, content before the
//! record that names it, so that a capture that was cut off is right as far as it goes. `docs/capture-format.md` describes the
//! files for programs that are not ours.
//!
//! The records say what the window *means*, not what was called: a dispatch has its pipeline, its bindings and its push
//! constants resolved, as they were when it was submitted.
//!
//! - [`model`]: the records.
//! - [`request`]: what the layer is asked to capture.
//! - [`Writer`]: writes a capture while the program runs; used by the layer inside the program.
//! - [`Capture::open`]: reads one, of whoever made it: everything that a record names is there and inside of its bounds.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod capture;
mod check;
mod content;
mod files;
mod hex;
pub mod model;
pub mod request;
mod writer;

pub use capture::{Capture, Step};
pub use content::{CHUNK_BYTES, Hash, pieces};
pub use files::{Problem, ReadError};
pub use model::Record;
pub use writer::Writer;

/// The version of the format that this code writes. It reads this one and every earlier one.
pub const FORMAT: u32 = 1;

/// The file of records, in the capture's folder.
pub const RECORDS: &str = "capture.jsonl";
/// The file of content, in the capture's folder.
pub const CONTENT: &str = "content.bin";
