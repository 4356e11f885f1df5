//! Findings about a trace as terminal text, Markdown and JSON.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod document;
pub mod fit;
pub mod markdown;
pub mod number;
pub mod terminal;

pub use document::Document;
pub use terminal::Terminal;
