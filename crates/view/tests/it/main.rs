//! The server, asked over real HTTP, and the files that it writes.

mod access;
mod answers;
mod client;
mod files;
mod hostile;
mod live;
mod traces;
