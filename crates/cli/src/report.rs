//! `gapscope report`: prints why the GPU of a trace was idle or slow, as text, Markdown or JSON.

use crate::args::{Pages, Report, row_limit};
use crate::failure::Failure;
use crate::ranks::RanksInTrace;
use crate::{exit, kernel_names, page, progress, ranks, trace, view};
use gapscope_analysis::activity::Activity;
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::several_ranks::note;
use gapscope_analysis::unread::CAUSES;
use gapscope_analysis::{Findings, Options, Replays, explained_activity};
use gapscope_companion::state_folder;
use gapscope_report::source_lines::{self, SourceAccess};
use gapscope_report::{Terminal, command_line, json, markdown, slices};
use gapscope_timeline::{LabelFilter, Timeline};
use gapscope_trace::ids::LabelId;
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{Names, Trace, rank_folders};
use std::collections::{HashMap, HashSet};
use std::mem::{forget, take};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Prints the report of a trace.
pub fn run(arguments: &Report) -> Result<ExitCode, Failure> {
    let names = kernel_names::read(arguments.names.as_deref())?;
    let names = names.as_ref();
    if let Some(file) = &arguments.html {
        return view::write_file_of_trace(&arguments.trace, file, names);
    }
    let of_ranks = rank_folders(&arguments.trace);
    if !of_ranks.is_empty() {
        return ranks::report(arguments, &of_ranks, names);
    }
    let options = Options {
        replays: match shows_path(arguments) {
            true => Replays::ChangesAndPath,
            false => Replays::Changes,
        },
        exclude_warm_up: !arguments.all,
        equal_work: arguments.compare_labels.clone(),
        ..Options::default()
    };
    let sources = SourceAccess::for_trace(
        &arguments.trace,
        arguments.sources.as_deref(),
        &arguments.sources_within,
        state_folder().as_deref(),
    );
    let selection = Findings::selection_for(&options).named(names);
    let (text, whole) = progress::while_running("reading the trace", || {
        trace::read_in_pieces(&arguments.trace, &selection, |opened| {
            let trace = &opened.trace;
            let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| opened.each(take).map(|_| ());
            let filter = match arguments.label.as_deref() {
                Some(label) => Some((label, LabelFilter::new(trace, label, each)?)),
                None => None,
            };
            if let Some((label, filter)) = &filter
                && filter.is_empty()
            {
                return Some(Err(no_work(trace, label)));
            }
            let (timeline, mut remarks) =
                opened.timeline(filter.as_ref().map(|(_, filter)| filter))?;
            let file = arguments.names.as_deref();
            remarks.extend(names.zip(file).and_then(|(names, file)| {
                kernel_names::unused(names, file, &trace.tables.kernels)
            }));
            let columns = arguments.slices.map(|slices| slices as usize);
            let columns =
                columns.unwrap_or_else(|| slices(page::stdout_terminal(&arguments.width).columns));
            let gaps = GapFinder::new(&timeline);
            let (mut findings, activity) =
                Findings::from_gaps_beside(&gaps, &options, || explained_activity(&gaps, columns));
            source_lines::add(&mut findings, &trace.manifest, &sources);
            let text = ranks_within(arguments, &timeline, &options, names).and_then(|ranks| {
                let ranks = ranks.as_ref();
                text(arguments, trace, &activity, &findings, &remarks, ranks)
            });
            let answer = text.map(|text| (text, trace.is_whole()));
            // The command ends here. To free the rows one by one would take as long as a twentieth of the report.
            forget((findings, gaps));
            forget(timeline);
            forget(take(&mut opened.trace));
            Some(answer)
        })
    })??;
    page::write(&text)?;
    Ok(exit::after_reading(whole))
}

/// Returns true if the critical path is a part of the report that was asked for.
fn shows_path(arguments: &Report) -> bool {
    let is_drawn = match arguments.pages() {
        Pages::FirstScreen => false,
        Pages::All => true,
        Pages::Sections(names) => names.iter().any(|name| name == "gains"),
    };
    is_drawn || arguments.json
}

/// Returns the text of the report in the format that was asked for; a failure if labels are to be compared and
/// nothing can be. `activity` is the share of time in which the GPU worked, slice by slice.
fn text(
    arguments: &Report,
    trace: &Trace,
    activity: &Activity,
    findings: &Findings,
    remarks: &[String],
    ranks: Option<&RanksInTrace>,
) -> Result<String, Failure> {
    if let Some((before, after)) = &arguments.compare_labels
        && findings.equal_work.is_none()
    {
        let texts = &trace.tables.labels.text;
        let missing = [before, after]
            .into_iter()
            .find(|label| !texts.iter().any(|text| text.contains(label.as_str())));
        return Err(match missing {
            Some(label) => no_work(trace, label),
            None if !findings.knows(CAUSES) => unread(trace, "the comparison"),
            None => failure!(
                "no GPU work was recorded under both {before} and {after}: there is nothing to compare"
            ),
        });
    }
    let terminal = page::stdout_terminal(&arguments.width);
    let report = gapscope_report::Report {
        trace: &trace::name(&arguments.trace),
        manifest: &trace.manifest,
        findings,
        activity,
        label: arguments.label.as_deref(),
        remarks,
        top: row_limit(arguments.top),
        each_layer: arguments.each_layer,
        ranks: ranks.map(|ranks| ranks.report(row_limit(arguments.top))),
    };
    if arguments.json {
        return Ok(match (arguments.slices, ranks) {
            (Some(_), _) => json::text_with_activity(&report),
            (None, Some(ranks)) => json::text_with_ranks(&report, ranks.findings()),
            (None, None) => json::text(&report),
        }?);
    }
    let document = match arguments.pages() {
        Pages::FirstScreen => report.first_screen(),
        Pages::All => report.document(),
        Pages::Sections(names) => report.some_sections(names),
    };
    Ok(match arguments.markdown {
        true => markdown::draw(&document),
        false => terminal.draw(&document),
    })
}

/// Compares the ranks in a trace that has several, if the report covers all of it.
fn ranks_within(
    arguments: &Report,
    timeline: &Timeline,
    options: &Options,
    names: Option<&Arc<Names>>,
) -> Result<Option<RanksInTrace>, Failure> {
    let whole = arguments.label.is_none() && arguments.compare_labels.is_none();
    match whole && note(timeline).is_some() {
        true => RanksInTrace::read(&arguments.trace, options, names).map(Some),
        false => Ok(None),
    }
}

/// Prints the report that follows a recording on stderr.
pub fn say_after_recording(trace: &Path) -> Result<(), Failure> {
    let report = after_recording(trace, &page::stderr_terminal())?;
    let path = trace.display();
    let command = command_line(&["gapscope", "report", &path.to_string()].map(str::to_owned));
    page::say(&format!(
        "\n{report}\n  The trace is in {path}.\n  To print this again: {command}\n"
    ));
    Ok(())
}

/// Returns the text of the report on a new recording.
fn after_recording(path: &Path, terminal: &Terminal) -> Result<String, Failure> {
    let of_ranks = rank_folders(path);
    if !of_ranks.is_empty() {
        return ranks::after_recording(path, &of_ranks, terminal);
    }
    let options = Options {
        replays: Replays::Changes,
        ..Options::default()
    };
    let sources = SourceAccess::for_trace(path, None, &[], state_folder().as_deref());
    trace::with_timeline(path, &Findings::selection(), |trace, timeline, remarks| {
        let gaps = GapFinder::new(timeline);
        let (mut findings, activity) = Findings::from_gaps_beside(&gaps, &options, || {
            explained_activity(&gaps, slices(terminal.columns))
        });
        source_lines::add(&mut findings, &trace.manifest, &sources);
        let top = 10;
        let ranks = match note(timeline) {
            Some(_) => Some(RanksInTrace::read(path, &options, None)?),
            None => None,
        };
        let report = gapscope_report::Report {
            trace: &trace::name(path),
            manifest: &trace.manifest,
            findings: &findings,
            activity: &activity,
            label: None,
            remarks,
            top,
            each_layer: false,
            ranks: ranks.as_ref().map(|ranks| ranks.report(top)),
        };
        Ok(terminal.draw(&report.first_screen()))
    })?
}

/// Returns the failure that nothing ran under a label, or that this is unknown because a table cannot be read.
fn no_work(trace: &Trace, label: &str) -> Failure {
    match trace.unread.is_empty() {
        true => no_label(trace, label),
        false => unread(trace, &format!("what ran under the label \"{label}\"")),
    }
}

/// Returns the failure of a question that needs unreadable tables.
fn unread(trace: &Trace, what: &str) -> Failure {
    let tables: Vec<String> = trace.unread.iter().map(ToString::to_string).collect();
    failure!("{what} is unknown: {}", tables.join(", ")).status(exit::INCOMPLETE)
}

/// Returns the texts of the labels around work.
fn labels_with_work(trace: &Trace) -> Vec<&str> {
    let tables = &trace.tables;
    let parents: HashMap<LabelId, Option<LabelId>> =
        (tables.labels.id.iter().copied().zip(&tables.labels.parent)).collect();
    let mut around = HashSet::new();
    let direct = (tables.dispatches.label.iter())
        .chain(&tables.transfers.label)
        .chain(&tables.opaque_work.label)
        .chain(&tables.command_buffers.label);
    for label in direct {
        let mut next = label;
        // A label that is there already has brought the labels around it.
        while let Some(id) = next.filter(|id| around.insert(*id)) {
            next = parents.get(&id).copied().flatten();
        }
    }
    let labels = tables.labels.id.iter().zip(&tables.labels.text);
    let with_work = labels.filter(|(id, _)| around.contains(id));
    with_work.map(|(_, text)| &**text).collect()
}

/// Returns the failure that a trace has no such label, with up to 8 labels that it has, those with work first.
fn no_label(trace: &Trace, label: &str) -> Failure {
    let mut texts = labels_with_work(trace);
    texts.sort_unstable();
    texts.dedup();
    let mut others: Vec<&str> = trace
        .tables
        .labels
        .text
        .iter()
        .map(|text| &**text)
        .collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|text| texts.binary_search(text).is_err());
    texts.extend(others);
    let has = match texts.as_slice() {
        [] => "the trace has no labels at all".to_owned(),
        few if few.len() <= 8 => format!("the trace has the labels {}", few.join(", ")),
        many => format!("the trace has the labels {}, …", many[..8].join(", ")),
    };
    failure!("no label \"{label}\": {has}")
}
