//! A trace or a capture as a page in the browser: served on loopback, or a trace written as one file.
//!
//! [`Server::open`] opens one trace, with those of its ranks, or two to compare, or a capture, and serves the page and what it asks for; `PROTOCOL.md` says what
//! that is. Only who knows the address can ask: its path starts with a token of 128 random bits. [`write_file`] writes
//! the page and the answers as one HTML file that needs no server.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod analysis_thread;
mod answers;
mod chunks;
mod density_index;
mod dependencies;
mod error;
mod frame;
mod groups;
mod html_file;
mod http;
mod index;
mod kernel_source;
mod lanes;
mod notes;
mod overview;
mod page;
mod preferences;
mod protocol;
mod range_query;
mod ranks;
mod rebase_times;
mod row_details;
mod row_lookup;
mod saved_view;
mod served_capture;
mod server;
mod snapshot;
mod sql;
mod stack_samples;
mod store;
mod texts;
mod time_bins;
mod trace_dependencies;
mod traces;
mod track;

pub use error::Error;
pub use html_file::{Written, write_file};
pub use saved_view::Saved;
pub use server::{Options, Running, Server};
