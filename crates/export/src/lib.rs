//! Writes gapscope traces in the formats of other tools.
//!
//! Each format is a module with a function `write`. All tools show one scene, which `Scene::new` makes from a trace:
//! a group for each recorded process with its threads and their host calls, and one for each GPU with its queues,
//! labels, gaps by cause, queue depth and memory. Work that overlaps in time is split into lanes, so that no tool
//! drops it. Rows whose times are unknown are not drawn, and are counted in what `write` returns. CSV has tables
//! instead of a scene. `docs/export.md` describes the formats.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod chrome;
pub mod csv;
mod exported;
pub mod firefox;
mod joined;
mod json;
mod lanes;
mod ordered_output;
mod packed;
pub mod perfetto;
mod scene;
mod slice;
pub mod speedscope;
mod texts;

pub use exported::{Exported, TableRows};
pub use joined::{Joined, JoinedFormat};
pub use scene::{Labels, Scene};
