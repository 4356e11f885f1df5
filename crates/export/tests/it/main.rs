//! Tests exports with readers of their formats.

mod chrome;
mod csv;
mod firefox;
mod hostile;
mod joined;
mod perfetto;
mod speedscope;
mod traces;
