//! Keeps what was read of ELF files (programs and libraries), once for all processes that map them.

use crate::elf::{Identity, Module, identity};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::sync::Arc;

/// Beyond these limits no more files are read, and stacks end in them.
const MAX_BYTES: usize = 256 << 20;
const MAX_FILES: usize = 512;

/// The files that were read.
#[derive(Debug, Default)]
pub struct Libraries {
    /// The files by identity; `None` for those that could not be read.
    known: FxHashMap<Identity, Option<Arc<Module>>>,
    /// The memory that they take.
    bytes: usize,
}

impl Libraries {
    /// Reads a file. `None` where it is unreadable or no 64-bit ELF file, or where too many were read.
    pub fn get(&mut self, file: File) -> Option<Arc<Module>> {
        let identity = identity(&file)?;
        if let Some(known) = self.known.get(&identity) {
            return known.clone();
        }
        if self.bytes >= MAX_BYTES || self.known.len() >= MAX_FILES {
            return None;
        }
        let module = Module::read(file).map(Arc::new);
        self.bytes += module.as_ref().map_or(0, |module| module.bytes());
        self.known.insert(identity, module.clone());
        module
    }
}
