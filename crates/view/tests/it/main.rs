//! The server, asked over real HTTP, and the files that it writes.

mod access;
mod client;
mod code;
mod comparison;
mod counters;
mod details;
mod files;
mod findings;
mod hostile;
mod kept;
mod live;
mod sql;
mod traces;
mod tracks;
mod whole_dependencies;
