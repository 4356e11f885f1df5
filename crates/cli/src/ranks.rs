//! Compares the ranks (processes) of a distributed program, from a folder of traces or from one trace, and prints
//! the report.

use crate::args::{Pages, Report, row_limit};
use crate::failure::Failure;
use crate::trace::choose_rank;
use crate::{exit, page, trace};
use gapscope_analysis::{Findings, Options, Replays};
use gapscope_comparison::ranks::{RankDigest, RankFindings, list, ranks};
use gapscope_report::explanation::Explanation;
use gapscope_report::ranks::RanksReport;
use gapscope_report::{Terminal, markdown};
use gapscope_timeline::quantity as number;
use gapscope_trace::{Manifest, Names, rank_links};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The maximum number of collectives (operations of several ranks) that are listed: those with the greatest skews.
const MAX_COLLECTIVES: usize = 10;

/// The comparison of ranks, with remarks about their traces.
struct ComparedRanks {
    manifest: Manifest,
    findings: RankFindings,
    remarks: Vec<String>,
    /// True if every table and manifest of every rank could be read as it was written.
    whole: bool,
}

impl ComparedRanks {
    /// Returns the report, whose tables have `top` rows.
    fn report<'a>(&'a self, folder: &'a str, top: usize) -> RanksReport<'a> {
        RanksReport {
            folder,
            manifest: &self.manifest,
            findings: &self.findings,
            remarks: &self.remarks,
            top,
        }
    }
}

/// Reads the traces of the ranks, given by number and path, one after the other, and compares the ranks. `names` are
/// the user's names for kernels.
fn compare(
    paths: &[(u32, PathBuf)],
    options: &Options,
    names: Option<&Arc<Names>>,
) -> Result<ComparedRanks, Failure> {
    let selection = RankDigest::selection().named(names);
    let (mut digests, mut remarks) = (Vec::new(), Vec::new());
    let (mut first, mut whole) = (None, true);
    // The comparison of ranks has no place for the gains of each.
    let options = &Options {
        replays: Replays::None,
        ..options.clone()
    };
    for (rank, path) in paths {
        // Only one trace at a time is in memory.
        trace::with_timeline(path, &selection, |trace, timeline, said| {
            let findings = Findings::from_timeline(timeline, options);
            digests.extend(RankDigest::from_timeline(timeline, &findings, *rank));
            remarks.extend(said.iter().map(|r| (*rank, r.clone())));
            for loss in &findings.losses {
                let were = if loss.count == 1 { "was" } else { "were" };
                let text = format!("{} {were} lost: {}.", number::loss(loss), loss.reason);
                remarks.push((*rank, text));
            }
            remarks.extend(findings.notes.iter().map(|n| (*rank, n.clone())));
            whole &= trace.is_whole();
            first.get_or_insert_with(|| trace.manifest.clone());
        })?;
    }
    Ok(ComparedRanks {
        manifest: first.unwrap_or_default(),
        findings: ranks(&digests, MAX_COLLECTIVES),
        remarks: merge_remarks(remarks),
        whole,
    })
}

/// Returns the distinct remarks, each with the ranks that it concerns.
fn merge_remarks(remarks: Vec<(u32, String)>) -> Vec<String> {
    let mut ranks: HashMap<String, Vec<u32>> = HashMap::new();
    let mut order = Vec::new();
    for (rank, text) in remarks {
        let of = ranks.entry(text.clone()).or_default();
        if of.is_empty() {
            order.push(text);
        }
        if of.last() != Some(&rank) {
            of.push(rank);
        }
    }
    let each = order.into_iter().map(|text| match ranks[&text].as_slice() {
        [one] => format!("Rank {one}: {text}"),
        several => format!("Ranks {}: {text}", list(several)),
    });
    each.collect()
}

/// A comparison of the ranks that are in one trace, for the end of its report.
pub struct RanksInTrace(ComparedRanks);

impl RanksInTrace {
    /// Reads a trace again, with the columns that only the comparison of ranks needs, and compares its ranks.
    pub fn read(
        path: &Path,
        options: &Options,
        names: Option<&Arc<Names>>,
    ) -> Result<RanksInTrace, Failure> {
        Ok(RanksInTrace(compare(
            &[(0, path.to_owned())],
            options,
            names,
        )?))
    }

    pub fn findings(&self) -> &RankFindings {
        &self.0.findings
    }

    /// Returns the comparison for the report on the trace, whose tables have `top` rows.
    pub fn report(&self, top: usize) -> RanksReport<'_> {
        RanksReport {
            remarks: &[],
            ..self.0.report("", top)
        }
    }
}

/// Reads the traces of the ranks in a folder, given by number and path, as [`compare`] does; links to traces are remarks.
fn compare_folder(
    folder: &Path,
    paths: &[(u32, PathBuf)],
    options: &Options,
    names: Option<&Arc<Names>>,
) -> Result<ComparedRanks, Failure> {
    let mut compared = compare(paths, options, names)?;
    for (rank, link) in rank_links(folder) {
        compared.whole = false;
        compared.remarks.push(format!(
            "Rank {rank} is missing: {} is a symbolic link, which may lead anywhere and is not followed. Put the trace itself there.",
            link.display()
        ));
    }
    Ok(compared)
}

/// Returns the explanation of a folder of ranks, and whether all of its traces could be read.
pub fn explanation(
    folder: &Path,
    paths: &[(u32, PathBuf)],
) -> Result<(Explanation, bool), Failure> {
    let compared = compare_folder(folder, paths, &Options::default(), None)?;
    let name = trace::name(folder);
    let report = compared.report(&name, usize::MAX);
    Ok((Explanation::of_folder(&report), compared.whole))
}

/// Prints the report on a folder of ranks.
pub fn report(
    arguments: &Report,
    paths: &[(u32, PathBuf)],
    names: Option<&Arc<Names>>,
) -> Result<ExitCode, Failure> {
    if arguments.label.is_some() || arguments.compare_labels.is_some() {
        return Err(choose_rank(&arguments.trace, paths, "a report on labels"));
    }
    let options = Options {
        exclude_warm_up: !arguments.all,
        ..Options::default()
    };
    let compared = compare_folder(&arguments.trace, paths, &options, names)?;
    let name = trace::name(&arguments.trace);
    let report = compared.report(&name, row_limit(arguments.top));
    let document = match arguments.pages() {
        Pages::FirstScreen => report.first_screen(),
        Pages::All => report.document(),
        Pages::Sections(names) => report.some_sections(names),
    };
    let text = if arguments.json {
        report.json()?
    } else if arguments.markdown {
        markdown::draw(&document)
    } else {
        page::stdout_terminal(&arguments.width).draw(&document)
    };
    page::write(&text)?;
    Ok(exit::after_reading(compared.whole))
}

/// Returns the report that follows a recording of several ranks.
pub fn after_recording(
    folder: &Path,
    paths: &[(u32, PathBuf)],
    terminal: &Terminal,
) -> Result<String, Failure> {
    let compared = compare(paths, &Options::default(), None)?;
    let name = trace::name(folder);
    Ok(terminal.draw(&compared.report(&name, 10).first_screen()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::rank_folders;

    #[test]
    fn ranks_are_found_by_number_and_other_folders_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["rank=10", "rank=2", "rank=x", "parts", "rank=3"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            if name != "rank=3" {
                std::fs::write(folder.path().join(name).join("trace.json"), "{}").unwrap();
            }
        }
        let found: Vec<u32> = rank_folders(folder.path())
            .into_iter()
            .map(|(rank, _)| rank)
            .collect();
        assert_eq!(found, [2, 10]);
        let failure = choose_rank(folder.path(), &rank_folders(folder.path()), "an export");
        assert!(failure.sentence.contains("rank=2"), "{failure}");
    }
}
