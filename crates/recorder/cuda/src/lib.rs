//! The library that the CUDA driver loads into a program, because the environment says so.
//!
//! The driver calls [`entry::InitializeInjection`] inside the program's first `cuInit` (`CUDA_INJECTION64_PATH`); each
//! module with NVTX calls [`entry::InitializeInjectionNvtx2`] at its first label, and
//! [`entry::InitializeInjectionNvtxExtension`] where it uses payloads (`NVTX_INJECTION64_PATH`, the same file). A program
//! that does none of this never loads it.
//!
//! ```text
//! program ── CUDA calls ──> driver ──> CUPTI ── buffers of records ──> buffers
//!    │                                   │                               │
//!    │                                callbacks ── operations (sync) ──> records
//!    │                                   │                               │
//!    └── NVTX ──> nvtx ── labels ──> spool <── batches of activities ────┘
//! ```
//!
//! [`tracing`] subscribes to CUPTI and switches it on and off; CUPTI fills [`buffers`] and hands them back on a thread of
//! its own, or on ours, which asks for them every 100 ms so that little is lost at a sudden end. [`records`] turns their
//! records into packed events. On the program's own threads only CUPTI, the NVTX functions and the [`callbacks`] of calls
//! that launch, wait or may take long run.
//!
//! # Layers
//! Modules use those above them in this list, and none below; within a module it is the same for its parts. `cargo xtask
//! tidy` checks that there is no cycle.
//!
//! | layer | modules |
//! |---|---|
//! | libraries of the process | [`library`], [`driver`], [`cupti`], [`streams`] |
//! | what a process has one of | [`per_process`], [`recorder`] (the spool and texts), [`subscription`] (to CUPTI) |
//! | what threads hand on | [`window`], [`sync`], [`sources`], [`instructions`] |
//! | from calls and records to events | [`callbacks`], [`records`], [`buffers`] |
//! | orchestration | [`tracing`], [`labels`], [`process`] |
//! | what the program calls | [`nvtx`], [`entry`] |
//!
//! Nothing of CUDA is needed to build it: CUPTI is found at run time ([`cupti`]), and the offsets of its records are
//! constants that a test compares with the headers of twelve versions.
#![warn(missing_docs)]

mod buffers;
mod callbacks;
mod cupti;
mod driver;
mod entry;
mod instructions;
mod labels;
mod library;
mod nvtx;
mod per_process;
mod process;
mod recorder;
mod records;
mod sources;
mod streams;
mod subscription;
mod sync;
mod tracing;
mod window;
