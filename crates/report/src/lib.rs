//! Turns findings about a trace into terminal text, Markdown and JSON.
//!
//! A [`Report`] (manifest and findings of a trace) becomes a [`Document`] (blocks of text and tables), which
//! [`Terminal`] and [`markdown`] draw; [`json`] writes the findings themselves.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod diff;
pub mod document;
pub mod explanation;
pub mod fit;
mod head;
pub mod info;
pub mod json;
pub mod markdown;

mod page;
mod rank_first_step;
pub mod ranks;
mod section;
pub mod source_lines;
mod stable_json;
pub mod terminal;
pub mod what_if;

pub use document::{Block, Document, Text, Tone};
pub use head::HeadSentences;
// `quantity` formats numbers with their units; here it goes by `number`.
pub use gapscope_timeline::command::command_line;
use gapscope_timeline::quantity as number;
pub use page::{Report, SECTIONS};
pub use section::timeline::slices;
pub use terminal::Terminal;
