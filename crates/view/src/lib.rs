//! Shows a trace or a capture as a page in the browser: served on loopback, or written as one file.
//!
//! [`Server::open`] opens a trace with those of its ranks (parts of a distributed program), two traces to compare, or
//! a capture, and serves the page and its requests (`PROTOCOL.md`). The address has to be known: its path starts with
//! a token of 128 random bits. [`write_file`] writes the page and its answers as one HTML file that needs no server.
//!
//! The page draws *tracks*, lines such as the work of one queue, in *groups* (a GPU, a process, the host). A `Store`
//! holds each trace as a *snapshot*, which grows while the trace is recorded; an *analysis thread* for each trace
//! computes findings. `http` routes requests, `answers` makes most answers, and `protocol` defines their types.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod analysed_trace;
mod analysis_thread;
mod answers;
mod chunks;
mod code_ranges;
mod density_index;
mod dependencies;
mod error;
mod frame;
mod groups;
mod html_file;
mod http;
mod index;
mod kept_file;
mod kernel_source;
mod lanes;
mod notes;
mod overview;
mod page;
mod preferences;
mod priority;
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
mod stack_rows;
mod stack_samples;
mod store;
mod texts;
mod time_bins;
mod trace_dependencies;
mod traces;
mod track;

pub use error::Error;
pub use html_file::{WrittenFile, write_file};
pub use saved_view::SavedView;
pub use server::{Options, Running, Server};
