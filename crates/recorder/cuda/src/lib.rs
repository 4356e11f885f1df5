//! The library that the CUDA driver loads into a program, because the environment says so.
//!
//! The driver calls [`entry::InitializeInjection`] inside the program's first `cuInit` (`CUDA_INJECTION64_PATH`); each
//! module with NVTX calls [`entry::InitializeInjectionNvtx2`] at its first label (`NVTX_INJECTION64_PATH`, the same
//! file). A program that does neither never loads it.
//!
//! ```text
//! program ── CUDA calls ──> driver ──> CUPTI ── buffers of records ──> buffers.rs
//!    │                                   │                                │
//!    └── NVTX ──> nvtx ──> spool <── callbacks                            │
//!                            └──── batches of activities ── records <─────┘
//! ```
//!
//! [`tracing`] subscribes to CUPTI and switches it on and off; CUPTI fills [`buffers`] and hands them back on a thread of
//! its own, or on ours, which asks for them every 100 ms so that little is lost at a sudden end. [`records`] turns their
//! records into packed events. On the program's own threads only CUPTI, the NVTX functions and the [`callbacks`] of calls
//! that launch, wait or may take long run.
//!
//! NVTX's payload extension
//! asks for functions of its own ([`entry::InitializeInjectionNvtxExtension`]).
//!
//! Nothing of CUDA is needed to build it: CUPTI is found at run time ([`cupti`]), and the offsets of its records are
//! constants that a test compares with the headers of twelve versions.
#![warn(missing_docs)]

mod buffers;
mod callbacks;
mod cupti;
mod entry;
mod generation;
mod hash;
mod notes;
mod nvtx;
mod recorder;
mod records;
mod streams;
mod tracing;
