//! Tests the exports of made-up traces in each format, with readers of the formats: everything is there, whatever names a
//! program gives and however many traces share a file.

mod chrome;
mod csv;
mod firefox;
mod hostile;
mod joined;
mod perfetto;
mod speedscope;
mod traces;
