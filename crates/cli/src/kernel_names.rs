//! Reads the file with names for kernels (`--names FILE`), and finds names without a kernel.

use crate::failure::{Failure, without_os_error_numbers};
use gapscope_timeline::quantity as number;
use gapscope_trace::Names;
use gapscope_trace::tables::Kernels;
use std::path::Path;
use std::sync::Arc;

/// Returns the names in a file; `None` without a file.
pub fn read(file: Option<&Path>) -> Result<Option<Arc<Names>>, Failure> {
    let names = file.map(Names::read).transpose();
    let names =
        names.map_err(|error| Failure::new(without_os_error_numbers(&error.to_string())))?;
    Ok(names.map(Arc::new))
}

/// Returns a remark about the lines of a file of names that name no kernel of a trace; `None` if there are none.
pub fn unused(names: &Names, file: &Path, kernels: &Kernels) -> Option<String> {
    let hashes = kernels.source.iter().zip(&kernels.specialisation);
    let hashes = hashes.filter_map(|(hash, specialisation)| {
        Some((
            hash.as_deref()?,
            specialisation.as_deref().unwrap_or_default(),
        ))
    });
    let (all, unused) = names.unused(hashes);
    let file = file.display();
    let all = number::count_of(all as u64, "line", "lines");
    match unused {
        0 => None,
        1 => Some(format!(
            "1 of {all} of {file} names no kernel of this trace."
        )),
        several => Some(format!(
            "{} of {all} of {file} name no kernel of this trace.",
            number::count(several as u64)
        )),
    }
}
