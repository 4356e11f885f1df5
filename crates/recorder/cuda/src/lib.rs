//! The library that the CUDA driver loads into a program to record it: CUPTI's records and callbacks and NVTX's
//! labels go in, events in the spool (the log that the session reads) come out. Under `gapscope capture` it writes a capture instead ([`capture`]).
//!
//! The driver calls [`entry::InitializeInjection`] inside the program's first `cuInit` (`CUDA_INJECTION64_PATH`);
//! each module with NVTX calls [`entry::InitializeInjectionNvtx2`] at its first label, and
//! [`entry::InitializeInjectionNvtxExtension`] where it uses payloads (`NVTX_INJECTION64_PATH`, the same file). A
//! program that does none of this never loads the library.
//!
//! ```text
//! program ── CUDA calls ──> driver ──> CUPTI ── buffers of records ──> buffers
//!    │                                   │                               │
//!    │                                callbacks ── operations (sync) ──> records
//!    │                                   │                               │
//!    └── NVTX ──> nvtx ── labels ──> spool <── batches of activities ────┘
//! ```
//!
//! [`tracing`] subscribes to CUPTI and switches it on and off. CUPTI fills [`buffers`] and hands them back on a
//! thread of its own, or on ours, which asks for them every 100 ms so that little is lost at a sudden end.
//! [`records`] turns their records into packed events. The program's own threads run only CUPTI, the NVTX functions,
//! and the [`callbacks`] of calls that launch, wait or may take long.
//!
//! # Layers
//! Modules use those above them in this list and none below; the same holds within a module. `cargo xtask tidy`
//! checks that there is no cycle.
//!
//! | layer | modules |
//! |---|---|
//! | libraries of the process | [`driver`], [`cupti`], [`streams`] |
//! | one per process | [`per_process`], [`recorder`] (the spool and texts), [`subscription`] (to CUPTI) |
//! | handed over by the program's threads | [`window`], [`wait_ring`], [`loaded_modules`], [`instructions`] |
//! | from calls and records to events | [`callbacks`], [`records`], [`buffers`] |
//! | for captures, in place of recordings | [`capture`] |
//! | orchestration | [`tracing`], [`labels`], [`process`] |
//! | what the program calls | [`nvtx`], [`entry`] |
//!
//! Building needs nothing of CUDA: CUPTI is found at run time ([`cupti`]), and the offsets in its records are
//! constants that a test compares with the headers of twelve versions.
#![warn(missing_docs)]

mod buffers;
mod callbacks;
mod capture;
mod cupti;
mod driver;
mod entry;
mod instructions;
mod labels;
mod loaded_modules;
mod nvtx;
mod per_process;
mod process;
mod recorder;
mod records;
mod streams;
mod subscription;
mod tracing;
mod wait_ring;
mod window;
