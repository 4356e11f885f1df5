//! `gapscope what-if`: prints what a change to a recorded program, or to ranks of one, would bring, as text or JSON.

use crate::args::WhatIf as Arguments;
use crate::failure::Failure;
use crate::{exit, page, trace};
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::what_if::{Extent, RankRun, Recording, WhatIf};
use gapscope_analysis::{Findings, Options};
use gapscope_comparison::ranks::{RankDigest, joined};
use gapscope_report::what_if;
use gapscope_timeline::Timeline;
use gapscope_trace::rank_folders;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints what changes would bring.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (mut answer, mut remarks) = with_run(arguments, &arguments.trace, |run| {
        run.answer(&arguments.changes)
    })?;
    if let Some(path) = &arguments.against {
        let (recording, others) = with_run(arguments, path, |run| {
            Ok(Recording::new(trace::name(path), run))
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
    // Nobody knows whether the whole trace would tell what the damaged one cannot.
    Ok(match answer.refused.is_empty() || !remarks.is_empty() {
        true => exit::after_reading(remarks.is_empty()),
        false => ExitCode::from(exit::REFUSED),
    })
}

/// Reads a trace, or those of all ranks in a folder, and calls a function with the part of the run that is asked about. Returns remarks on
/// what the traces lack, too.
fn with_run<R>(
    arguments: &Arguments,
    path: &Path,
    show: impl Fn(&WhatIf) -> Result<R, String>,
) -> Result<(R, Vec<String>), Failure> {
    let of_ranks = rank_folders(path);
    let shown = match of_ranks.is_empty() {
        true => trace::with_timeline(path, &Findings::selection(), |_, timeline, remarks| {
            let finder = GapFinder::new(timeline);
            let findings = Findings::from_gaps(&finder, &Options::without_gains());
            let extent = extent(arguments, timeline, &findings, remarks)?;
            Ok((show(&WhatIf::new(&finder, extent))?, remarks.to_vec()))
        })?,
        false => with_ranks(arguments, &of_ranks, show)?,
    };
    shown.map_err(|problem: Problem| {
        failure!("{}: {problem}", path.display()).status(problem.status)
    })
}

/// Why there is nothing to show of a trace.
struct Problem {
    sentence: String,
    status: u8,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<String> for Problem {
    fn from(sentence: String) -> Problem {
        let status = exit::FAILED;
        Problem { sentence, status }
    }
}

/// Returns the problem of a trace without GPU work, with the first of the remarks on what could not be read of it.
fn without_work(remarks: &[String]) -> Problem {
    let problem = "it has no GPU work with known times";
    match remarks.first() {
        Some(remark) => format!("{problem}; {}", remark.trim_end_matches('.')).into(),
        None => Problem {
            sentence: problem.to_owned(),
            status: exit::REFUSED,
        },
    }
}

/// Reads the traces of ranks, given by number and path, and calls a function with their runs joined to one.
fn with_ranks<R>(
    arguments: &Arguments,
    ranks: &[(u32, PathBuf)],
    show: impl Fn(&WhatIf) -> Result<R, String>,
) -> Result<Result<(R, Vec<String>), Problem>, Failure> {
    let opened = ranks.iter();
    let opened = opened.map(|(_, path)| trace::open(path, &RankDigest::selection()));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let traces = opened.iter().map(|opened| &opened.trace);
    let timelines: Vec<Timeline> = traces.map(Timeline::new).collect();
    let finders: Vec<GapFinder> = timelines.iter().map(GapFinder::new).collect();
    let (mut digests, mut extents) = (Vec::new(), Vec::new());
    for (((rank, path), finder), opened) in ranks.iter().zip(&finders).zip(&opened) {
        let timeline = finder.timeline();
        let findings = Findings::from_gaps(finder, &Options::without_gains());
        let of_rank = RankDigest::from_timeline(timeline, &findings, *rank);
        if of_rank.len() != 1 {
            return Err(failure!(
                "{}: its process runs the collectives of several devices, and a prediction takes ranks with one device each",
                path.display()
            ));
        }
        digests.extend(of_rank);
        match extent(arguments, timeline, &findings, &opened.remarks) {
            Ok(extent) => extents.push(extent),
            Err(Problem { sentence, status }) => {
                let sentence = format!("rank {rank}: {sentence}");
                return Ok(Err(Problem { sentence, status }));
            }
        }
    }
    let joined = joined(&digests);
    let runs = ranks.iter().zip(&finders).zip(extents);
    let runs = runs
        .zip(joined.parts.into_iter().zip(joined.clock_error_ns))
        .map(
            |((((rank, _), finder), extent), (parts, clock_error_ns))| RankRun {
                rank: *rank,
                finder,
                extent,
                parts,
                clock_error_ns,
            },
        );
    let runs: Vec<RankRun> = runs.collect();
    let remarks = ranks.iter().zip(&opened).flat_map(|((rank, _), opened)| {
        let said = opened.remarks.iter();
        said.map(move |remark| format!("Rank {rank}: {remark}"))
    });
    let remarks = remarks.collect();
    let shown = show(&WhatIf::of_ranks(&runs, joined.refused));
    Ok(shown.map(|shown| (shown, remarks)).map_err(Problem::from))
}

/// Returns the part of a run that is asked about. `remarks` say what could not be read of its trace.
fn extent(
    arguments: &Arguments,
    timeline: &Timeline,
    findings: &Findings,
    remarks: &[String],
) -> Result<Extent, Problem> {
    match &arguments.step {
        Some(label) => Ok(Extent::from_label(timeline, label)?),
        None => Extent::from_steps(timeline, &findings.steps, findings.analysed_window)
            .ok_or_else(|| without_work(remarks)),
    }
}
