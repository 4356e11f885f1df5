//! Classifies the functions of CUDA by their names: a name goes in, and its [`FunctionClass`] comes out, the effect
//! of the function on a timeline.
//!
//! The hook looks up which functions to record and what their calls wait for, and passes the class on with each call;
//! the session turns the calls into rows. A trace of format version 1 has names alone, so its reader looks them up
//! here, too.

mod class;
mod table;

use crate::{HostCallKind, SubmissionKind};

pub use class::FunctionClass;

/// Formats a driver as traces name it: `NVIDIA 580.159.04, CUDA 13.0`, of which each part may be missing. `module` is
/// the content of `/proc/driver/nvidia/version`, `cuda` the newest CUDA version that the driver supports, as 1000 ×
/// major + 10 × minor.
pub fn driver_versions(module: &str, cuda: Option<u32>) -> String {
    // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ...
    let mut words = module.lines().next().unwrap_or_default().split_whitespace();
    let version = words
        .find(|word| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let parts = [
        version.map(|version| format!("NVIDIA {version}")),
        cuda.map(|v| format!("CUDA {}.{}", v / 1000, v % 1000 / 10)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl FunctionClass {
    /// Returns the class of a function, whose name may have suffixes; `None` for a function that does not matter. The
    /// exact name takes precedence over the name without suffixes.
    pub fn from_function(name: &str) -> Option<FunctionClass> {
        let row = |name: &str| {
            let found = table::FUNCTIONS.binary_search_by_key(&name, |(known, _)| *known);
            found.ok().map(|at| table::FUNCTIONS[at].1)
        };
        let find = |name: &str| {
            let bare = ["cuda", "cu"]
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix));
            row(name).or_else(|| row(bare?))
        };
        let of_cuda = name.starts_with("cu") || name.starts_with("__cuda");
        // One version of a function has its own class.
        let class = find(name).or_else(|| find(base_name(name)));
        class.filter(|_| of_cuda)
    }
}

impl HostCallKind {
    /// Returns the kind of a call of `function`. Older traces say `other-call` for functions that have a kind by now.
    pub fn of_function(self, function: &str) -> HostCallKind {
        match self {
            HostCallKind::OtherCall => {
                FunctionClass::from_function(function).map_or(self, FunctionClass::host_call_kind)
            }
            call => call,
        }
    }
}

/// Strips suffixes for versions and for the thread's own default stream from a function's name:
/// `cudaLaunchKernel_ptsz_v7000` becomes `cudaLaunchKernel`, `cuMemAlloc_v2` becomes `cuMemAlloc`.
pub fn base_name(name: &str) -> &str {
    let mut base = name;
    while let Some((before, suffix)) = base.rsplit_once('_') {
        let is_version = suffix
            .strip_prefix('v')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        if !is_version && !["ptsz", "ptds"].contains(&suffix) {
            break;
        }
        base = before;
    }
    base
}

/// Returns true for the version of a function in which a null stream is the thread's own default stream.
pub fn is_per_thread(name: &str) -> bool {
    name.split('_')
        .any(|suffix| ["ptsz", "ptds"].contains(&suffix))
}

/// Returns the kind of a submission by this function, for traces of format version 1, which have only names;
/// [`SubmissionKind::Unknown`] for a function that submits no CUDA work.
pub fn submission_kind(name: &str) -> SubmissionKind {
    FunctionClass::from_function(name)
        .and_then(FunctionClass::submission_kind)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
