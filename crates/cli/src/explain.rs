//! `gapscope explain`: reads a trace and prints a plain-English explanation of it, as text or JSON. A gap is a
//! stretch of time in which a GPU is idle.

use crate::args::Explain;
use crate::failure::Failure;
use crate::ranks::RanksInTrace;
use crate::{exit, page, ranks, trace};
use gapscope_analysis::several_ranks::note;
use gapscope_analysis::{Findings, Options};
use gapscope_report::command_line;
use gapscope_report::explanation::Explanation;
use gapscope_trace::rank_folders;
use std::process::ExitCode;

/// The number of longest gaps that are searched for the longest gap of each cause; shorter gaps are not searched.
const GAPS_SEARCHED: usize = 1_000;

/// Prints, in plain English, what a trace shows.
pub fn run(arguments: &Explain) -> Result<ExitCode, Failure> {
    let path = &arguments.trace;
    let of_ranks = rank_folders(path);
    if !of_ranks.is_empty() {
        let (explanation, whole) = ranks::explanation(path, &of_ranks)?;
        return print(arguments, &explanation, whole);
    }
    let options = Options {
        longest: GAPS_SEARCHED,
        ..Options::default()
    };
    let explained = trace::with_timeline(path, &Findings::selection(), |trace, timeline, said| {
        let findings = Findings::from_timeline(timeline, &options);
        let within = match note(timeline) {
            Some(_) => Some(RanksInTrace::read(path, &Options::default(), None)?),
            None => None,
        };
        let within = within.as_ref().map(RanksInTrace::findings);
        let name = trace::name(path);
        let explanation = Explanation::of_ranks(&name, timeline, &findings, said, within);
        Ok::<_, Failure>((explanation, trace.is_whole()))
    });
    let (explanation, whole) = explained??;
    print(arguments, &explanation, whole)
}

/// Prints an explanation. `whole` says whether all of its traces could be read.
fn print(arguments: &Explain, explanation: &Explanation, whole: bool) -> Result<ExitCode, Failure> {
    match arguments.json {
        true => page::write(&explanation.json()?)?,
        false => {
            let path = command_line(&[arguments.trace.to_string_lossy().into_owned()]);
            page::print(&explanation.document(&path), &arguments.width)?;
        }
    }
    Ok(exit::after_reading(whole))
}
