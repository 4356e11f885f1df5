//! Files that were read, once for all processes that have them mapped.

use crate::elf::{Identity, Module, identity};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::sync::Arc;

/// Files beyond these are not read: stacks end in them.
const MOST_BYTES: usize = 256 << 20;
const MOST_FILES: usize = 512;

/// What was read of files.
#[derive(Debug, Default)]
pub struct Libraries {
    known: FxHashMap<Identity, Option<Arc<Module>>>,
    bytes: usize,
}

impl Libraries {
    /// What is in a file. `None` where it cannot be read, is no ELF file of 64 bits, or where too many were read.
    pub fn get(&mut self, file: File) -> Option<Arc<Module>> {
        let identity = identity(&file)?;
        if let Some(known) = self.known.get(&identity) {
            return known.clone();
        }
        if self.bytes >= MOST_BYTES || self.known.len() >= MOST_FILES {
            return None;
        }
        let module = Module::read(file).map(Arc::new);
        self.bytes += module.as_ref().map_or(0, |module| module.bytes());
        self.known.insert(identity, module.clone());
        module
    }
}
