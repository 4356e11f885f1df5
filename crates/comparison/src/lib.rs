//! Compares traces: runs of a program before and after a change, and the ranks of a distributed program.
//!
//! All functions are pure: no IO and no printing. Times are nanoseconds, sizes bytes, and every number has its unit in its
//! name. What is not known is `None`, never 0.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod diff;
pub mod ranks;
