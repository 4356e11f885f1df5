//! Keeps the code of kernels that are compiled at run time, for inspection.
//!
//! MLX's build option `MLX_METAL_DEBUG` keeps the sources of the kernels that are compiled ahead of time, by
//! [`DEBUG_FLAGS`]; kernels that are compiled at run time are not in that. Here a program hands over the source of
//! each library as it compiles it.

use crate::environment::{any_is_on, mlx_variables};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The flags that make the Metal compiler (`xcrun metal`) keep line tables and sources.
///
/// ```
/// // In a build script:
/// let mut metal = std::process::Command::new("xcrun");
/// metal.arg("metal").args(gapscope_sdk::metal::DEBUG_FLAGS);
/// ```
pub const DEBUG_FLAGS: [&str; 2] = ["-gline-tables-only", "-frecord-sources"];

/// The variables that ask for labels and sources at run time.
const VARIABLES: [&str; 2] = ["GAPSCOPE_METAL_DEBUG", mlx_variables::METAL_DEBUG];

/// Returns true if the environment asks for labels and sources: `GAPSCOPE_METAL_DEBUG` or `MLX_METAL_DEBUG` is set to
/// something other than `0` and the empty text. Devices read it when they are created.
///
/// ```
/// // Without the variables:
/// assert!(!gapscope_sdk::metal::is_debug());
/// ```
pub fn is_debug() -> bool {
    any_is_on(&VARIABLES)
}

/// Sources of kernels, each of which is kept once.
///
/// ```
/// use gapscope_sdk::metal::Sources;
///
/// let sources = Sources::default();
/// let name = sources.keep("softmax", "kernel void softmax() {}");
/// assert_eq!(sources.keep("softmax", "kernel void softmax() {}"), name, "the same text is kept once");
/// assert!(name.starts_with("softmax-") && name.ends_with(".metal"));
/// ```
#[derive(Debug, Default)]
pub struct Sources(Mutex<BTreeMap<String, String>>);

impl Sources {
    /// Keeps a source and returns the name of its file, `NAME-HASH.metal`.
    ///
    /// ```
    /// # use gapscope_sdk::metal::Sources;
    /// let name = Sources::default().keep("a/b", "kernel void f() {}");
    /// assert!(name.starts_with("a_b-"), "a name that files can have");
    /// ```
    pub fn keep(&self, name: &str, source: &str) -> String {
        let plain: String = (name.chars().take(64))
            .map(|c| {
                if c.is_alphanumeric() || "_-.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let file = format!("{plain}-{:016x}.metal", fnv1a(source.as_bytes()));
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources
            .entry(file.clone())
            .or_insert_with(|| source.to_owned());
        file
    }

    /// Creates a folder and writes the sources to it. A file that exists has the same source and stays.
    ///
    /// # Errors
    /// The system refuses to write.
    ///
    /// ```
    /// # use gapscope_sdk::metal::Sources;
    /// # fn example(sources: &Sources) -> std::io::Result<()> {
    /// for path in sources.write(std::path::Path::new("kernels"))? {
    ///     println!("{}", path.display());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn write(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder)?;
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = Vec::new();
        for (file, source) in sources.iter() {
            let path = folder.join(file);
            if !path.exists() {
                std::fs::write(&path, source)?;
            }
            paths.push(path);
        }
        Ok(paths)
    }
}

/// Returns the 64-bit FNV-1a hash, which names files because it is the same in every run.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
