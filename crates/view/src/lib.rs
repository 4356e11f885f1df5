//! A trace or a capture as a page in the browser: served on loopback, or a trace written as one file.
//!
//! [`Server::open`] opens one trace, with those of its ranks, or two to compare, or a capture, and serves the page and what it asks for; `PROTOCOL.md` says what
//! that is. Only who knows the address can ask: its path starts with a token of 128 random bits. [`write_file`] writes
//! the page and the answers as one HTML file that needs no server.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod analyst;
mod answers;
mod bins;
mod captured;
mod chunks;
mod code;
mod dependencies;
mod error;
mod file;
mod frame;
mod groups;
mod http;
mod index;
mod lanes;
mod named;
mod notes;
mod origin;
mod overview;
mod page;
mod part;
mod preferences;
mod ranks;
mod recorded;
mod rows;
mod saved;
mod server;
mod snapshot;
mod source;
mod sql;
mod store;
mod survey;
mod texts;
mod traces;
mod track;

pub use error::Error;
pub use file::{Written, write_file};
pub use saved::Saved;
pub use server::{Options, Running, Server};
