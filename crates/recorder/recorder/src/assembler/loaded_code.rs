//! Finds the code of CUDA kernels: records of work have only a kernel's name, which is looked up in the code that
//! the process loaded.

use super::{Assembler, hashes};
use crate::code;
use gapscope_model::LossKind;
use gapscope_spool::event::SourceFormat;
use gapscope_trace::ids::ProcessId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The code of kernels by their names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LoadedCode {
    /// The code by process and name of the kernel.
    kernels: FxHashMap<(ProcessId, String), KernelCode>,
    /// The files that code was written in, with the hashes of the files that are kept.
    files: FxHashMap<Arc<str>, Option<[u8; 16]>>,
    /// The files that were not returned by [`Assembler::take_code_files`] yet.
    new_files: Vec<Arc<str>>,
}

/// The code of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCode {
    /// The hash of the code.
    pub source: [u8; 16],
    /// The path of the source file.
    pub file: Option<Arc<str>>,
    /// Whether other loaded code has a kernel of this name, so that it is unknown which of them ran.
    pub is_one_of_several: bool,
}

impl LoadedCode {
    /// Returns the code of a kernel.
    pub fn kernel(&self, process: ProcessId, kernel: &str) -> Option<&KernelCode> {
        self.kernels.get(&(process, kernel.to_owned()))
    }

    /// Returns the hash of a source file if the file is kept.
    pub fn file(&self, path: &str) -> Option<[u8; 16]> {
        self.files.get(path).copied().flatten()
    }

    /// Notes a source file that code names, if it is new.
    fn name_file(&mut self, path: &Arc<str>) {
        if !self.files.contains_key(path) {
            self.files.insert(Arc::clone(path), None);
            self.new_files.push(Arc::clone(path));
        }
    }
}

impl Assembler {
    /// Adds code that a process has loaded, and keeps the pieces of it from which kernels get their code.
    pub(super) fn loaded(&mut self, process: ProcessId, format: SourceFormat, bytes: &[u8]) {
        let pieces = code::pieces(format, bytes);
        if pieces.is_empty() {
            let reason = "it cannot be read";
            self.ledger.add(LossKind::LoadedCode, 1, reason);
        }
        if pieces.iter().any(|piece| piece.launches) {
            let reason = "only what the host launches is recorded";
            self.ledger.add(LossKind::LaunchingCode, 1, reason);
        }
        // The most readable code of an image comes first, and a kernel gets the first code that has it.
        let mut found: FxHashMap<String, KernelCode> = FxHashMap::default();
        for piece in pieces {
            let source = hashes::hash(&piece.bytes);
            let mut is_wanted = false;
            for kernel in piece.kernels {
                found.entry(kernel.name).or_insert_with(|| {
                    is_wanted = true;
                    KernelCode {
                        source,
                        file: kernel.file,
                        is_one_of_several: false,
                    }
                });
            }
            if is_wanted {
                self.add_source(source, piece.extension, piece.bytes);
            }
        }
        for (name, new) in found {
            if let Some(file) = &new.file {
                self.code.name_file(file);
            }
            let known = self.code.kernels.entry((process, name));
            let known = known.or_insert_with(|| new.clone());
            if known.source != new.source {
                known.is_one_of_several = true;
                known.file = known
                    .file
                    .take()
                    .filter(|file| Some(file) == new.file.as_ref());
            }
        }
    }

    /// Returns the source files that are new since the last call. They may be deleted once the program has ended.
    pub fn take_code_files(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.code.new_files)
    }

    /// Keeps the content of a source file.
    pub fn found_code_file(&mut self, path: Arc<str>, extension: &'static str, bytes: Vec<u8>) {
        let hash = hashes::hash(&bytes);
        self.code.files.insert(path, Some(hash));
        self.add_source(hash, extension, bytes);
    }
}
