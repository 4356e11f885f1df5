//! Defines the error of reading a Python stack.

use gapscope_model::python::Inconsistent;
use std::io;

/// Why there is no stack.
#[derive(Debug)]
pub enum NoStack {
    /// The interpreter does not know the thread.
    NotPython,
    /// The stack changed each time that it was read.
    Changing,
    /// The stack was implausible each time that it was read.
    Inconsistent,
    /// The memory cannot be read.
    Memory(io::Error),
}

impl From<io::Error> for NoStack {
    fn from(error: io::Error) -> NoStack {
        NoStack::Memory(error)
    }
}

impl From<Inconsistent> for NoStack {
    fn from(_: Inconsistent) -> NoStack {
        NoStack::Inconsistent
    }
}
