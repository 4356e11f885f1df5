//! Tests the server over real HTTP, and the files that it writes.

mod access;
mod client;
mod code;
mod comparison;
mod counters;
mod dependencies;
mod details;
mod files;
mod findings;
mod hostile;
mod live;
mod preferences;
mod sql;
mod traces;
mod tracks;
