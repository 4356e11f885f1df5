//! `gapscope what-if`: prints what a change to a recorded program would bring, as text or JSON.

use crate::args::WhatIf as Arguments;
use crate::failure::Failure;
use crate::{exit, page, trace};
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::what_if::{Extent, Recording, WhatIf};
use gapscope_analysis::{Findings, Options};
use gapscope_report::what_if;
use gapscope_trace::rank_folders;
use std::path::Path;
use std::process::ExitCode;

/// Prints what changes would bring.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (mut answer, mut remarks) = with_extent(arguments, &arguments.trace, |finder, extent| {
        WhatIf::new(finder, extent).answer(&arguments.changes)
    })?;
    if let Some(path) = &arguments.against {
        let (recording, others) = with_extent(arguments, path, |finder, extent| {
            let run = WhatIf::new(finder, extent);
            Ok(Recording::new(trace::name(path), &run))
        })?;
        answer.compare(recording);
        remarks.extend(others);
    }
    match arguments.json {
        true => {
            for remark in &remarks {
                page::note(gapscope_companion::one_line(remark));
            }
            page::write_json(&answer)?;
        }
        false => {
            let document = what_if::document(&trace::name(&arguments.trace), &answer, &remarks);
            page::print(&document, &arguments.width)?;
        }
    }
    Ok(match answer.refused.is_empty() {
        true => exit::after_reading(remarks.is_empty()),
        false => ExitCode::from(exit::REFUSED),
    })
}

/// Reads a trace, and calls a function with the part of its run that is asked about. Returns remarks on what the trace lacks, too.
fn with_extent<R>(
    arguments: &Arguments,
    path: &Path,
    show: impl Fn(&GapFinder, Extent) -> Result<R, String>,
) -> Result<(R, Vec<String>), Failure> {
    let of_ranks = rank_folders(path);
    if !of_ranks.is_empty() {
        return Err(trace::choose_rank(path, &of_ranks, "a prediction"));
    }
    let shown = trace::with_timeline(path, &Findings::selection(), |_, timeline, remarks| {
        let finder = GapFinder::new(timeline);
        let extent = match &arguments.step {
            Some(label) => Extent::from_label(timeline, label)?,
            None => {
                let findings = Findings::from_gaps(&finder, &Options::without_gains());
                Extent::from_steps(timeline, &findings.steps, findings.analysed_window)
                    .ok_or("it has no GPU work with known times")?
            }
        };
        Ok((show(&finder, extent)?, remarks.to_vec()))
    });
    shown?.map_err(|problem: String| failure!("{}: {problem}", path.display()))
}
