//! The file of names for kernels: `--names FILE`.

use crate::failure::{Failure, without_number};
use gapscope_trace::Names;
use std::path::Path;
use std::sync::Arc;

/// The names in a file, where one is given.
pub fn read(file: Option<&Path>) -> Result<Option<Arc<Names>>, Failure> {
    let names = file.map(Names::read).transpose();
    let names = names.map_err(|error| Failure::new(without_number(&error.to_string())))?;
    Ok(names.map(Arc::new))
}
