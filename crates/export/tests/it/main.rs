//! Exports as their readers meet them.

mod chrome;
mod csv;
mod firefox;
mod hostile;
mod joined;
mod perfetto;
mod speedscope;
mod traces;
