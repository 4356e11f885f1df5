//! `gapscope explain`.

use crate::args::Explain;
use crate::failure::Failure;
use crate::{exit, page, ranks, trace};
use gapscope_analysis::{Findings, Options};
use gapscope_report::command_line;
use gapscope_report::explanation::Explanation;
use gapscope_trace::rank_folders;
use std::process::ExitCode;

/// Gaps that are looked through for the longest of each cause.
const LONGEST: usize = 1_000;

/// Prints what a trace shows, in plain English.
pub fn run(arguments: &Explain) -> Result<ExitCode, Failure> {
    let path = &arguments.trace;
    let of_ranks = rank_folders(path);
    if !of_ranks.is_empty() {
        return Err(ranks::choose(path, &of_ranks, "an explanation"));
    }
    let options = Options {
        longest: LONGEST,
        ..Options::default()
    };
    let explained = trace::with_timeline(path, &Findings::selection(), |trace, timeline, said| {
        let findings = Findings::from_timeline(timeline, &options);
        let explanation = Explanation::new(&trace::name(path), timeline, &findings, said);
        (explanation, trace.is_whole())
    });
    let (explanation, whole) = explained?;
    match arguments.json {
        true => {
            let text = explanation.json();
            page::write(
                &text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?,
            )?;
        }
        false => {
            let path = command_line(&[path.to_string_lossy().into_owned()]);
            page::print(&explanation.document(&path), &arguments.width)?;
        }
    }
    Ok(exit::of_reading(whole))
}
