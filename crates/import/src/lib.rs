//! The files of other tools as traces.
//!
//! [`xctrace`] reads what Apple's `xctrace export` writes of a Metal System Trace. A file that is torn, odd or of
//! another version gives what there is of it: the trace's losses and notes say what is missing.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
pub mod xctrace;

pub use error::Error;
