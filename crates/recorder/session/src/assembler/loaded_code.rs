//! Which code kernels have whose records name nothing but themselves (CUDA): what the process loaded under their name.

use super::{Assembler, Source, kernels};
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
    kernels: FxHashMap<(ProcessId, String), Found>,
    /// The files that code was written in, and the hashes of those that are kept.
    files: FxHashMap<Arc<str>, Option<[u8; 16]>>,
    /// Those of them that nobody has looked for yet.
    new_files: Vec<Arc<str>>,
}

/// The code that has a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub source: [u8; 16],
    /// The file that it was written in, all of it.
    pub file: Option<Arc<str>>,
    /// There is other code with a kernel of this name: which of them ran is not known.
    pub is_one_of_several: bool,
}

impl LoadedCode {
    /// What is known of the code of a kernel.
    pub fn of(&self, process: ProcessId, kernel: &str) -> Option<&Found> {
        self.kernels.get(&(process, kernel.to_owned()))
    }

    /// The hash of a file that code was written in, where it is kept.
    pub fn file(&self, path: &str) -> Option<[u8; 16]> {
        self.files.get(path).copied().flatten()
    }

    fn name_file(&mut self, path: &Arc<str>) {
        if !self.files.contains_key(path) {
            self.files.insert(Arc::clone(path), None);
            self.new_files.push(Arc::clone(path));
        }
    }
}

impl Assembler {
    /// A process has loaded code.
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
        // Of one image, a kernel has the most readable code, which comes first.
        let mut found: FxHashMap<String, Found> = FxHashMap::default();
        for piece in pieces {
            let source = hash_of(&piece.bytes);
            let mut is_wanted = false;
            for kernel in piece.kernels {
                found.entry(kernel.name).or_insert_with(|| {
                    is_wanted = true;
                    Found {
                        source,
                        file: kernel.file,
                        is_one_of_several: false,
                    }
                });
            }
            if is_wanted && self.sources.insert(source) {
                self.new_sources.push(Source {
                    hash: kernels::hex(source),
                    extension: piece.extension,
                    bytes: piece.bytes.into_owned(),
                });
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
}

impl Assembler {
    /// Files that loaded code was written in, new since the last call. They may be gone when the program has ended.
    pub fn take_code_files(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.code.new_files)
    }

    /// What such a file held.
    pub fn found_code_file(&mut self, path: Arc<str>, extension: &'static str, bytes: Vec<u8>) {
        let hash = hash_of(&bytes);
        self.code.files.insert(path, Some(hash));
        if self.sources.insert(hash) {
            self.new_sources.push(Source {
                hash: kernels::hex(hash),
                extension,
                bytes,
            });
        }
    }
}

fn hash_of(bytes: &[u8]) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    hash
}
