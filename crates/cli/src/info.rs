//! `gapscope info`: prints the manifest (the facts of a recording: machine, devices, losses) and the sizes of the
//! tables of a trace.

use crate::args::Info;
use crate::failure::Failure;
use crate::{exit, page, trace};
use gapscope_analysis::code::{lost_stacks, lost_stacks_selection};
use gapscope_report::info;
use gapscope_trace::{Diagnostic, Selection, read, table_sizes};
use std::process::ExitCode;

/// Prints the contents of a trace.
pub fn run(arguments: &Info) -> Result<ExitCode, Failure> {
    let path = &arguments.trace;
    let (trace, diagnostics) = read(path, &Selection::manifest())?;
    let mut remarks: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    let sizes = table_sizes(path, trace.manifest.format_version)?;
    remarks.extend(sizes.iter().filter_map(|size| size.unread.clone()));
    let stacks =
        (trace.manifest.stack_rate_hz).and_then(|_| read(path, &lost_stacks_selection()).ok());
    let lost = stacks.and_then(|(trace, _)| lost_stacks(&trace));
    let whole = sizes.iter().all(|size| size.rows.is_some())
        && !diagnostics.iter().any(Diagnostic::is_damage);
    let name = trace::name(path);
    page::print(
        &info::document(&name, &trace.manifest, &sizes, lost.as_ref(), &remarks),
        &arguments.width,
    )?;
    Ok(exit::after_reading(whole))
}
