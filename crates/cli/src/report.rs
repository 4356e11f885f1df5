//! `gapscope report`.

use crate::args::Report;
use crate::failure::Failure;
use crate::{page, ranks, trace, view};
use gapscope_analysis::{Findings, Options, Timeline, UnderLabel, activity};
use gapscope_report::{Terminal, json, markdown, slices};
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{Trace, rank_folders};
use std::path::Path;
use std::process::ExitCode;

/// Prints the report of a trace.
pub fn run(arguments: &Report) -> Result<ExitCode, Failure> {
    let of_ranks = rank_folders(&arguments.trace);
    if !of_ranks.is_empty() {
        return match &arguments.html {
            Some(_) => Err(ranks::choose(&arguments.trace, &of_ranks, "a page")),
            None => ranks::report(arguments, &of_ranks),
        };
    }
    if let Some(file) = &arguments.html {
        return view::to_file(&arguments.trace, file);
    }
    let options = Options {
        exclude_warm_up: !arguments.all,
        equal_work: arguments.compare_labels.clone(),
        ..Options::default()
    };
    let text = trace::in_pieces(
        &arguments.trace,
        &Findings::selection_for(&options),
        |opened| {
            let trace = &opened.trace;
            let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| opened.each(take).map(|_| ());
            // Before the timeline of the whole trace, so that never both fill memory.
            let under = match arguments.label.as_deref() {
                Some(label) => Some((label, UnderLabel::of(trace, label, &options, each)?)),
                None => None,
            };
            let (timeline, remarks) = opened.timeline()?;
            let findings = match under {
                None => Ok(Findings::of_timeline(&timeline, &options)),
                Some((label, under)) => {
                    (under.findings(&timeline, &options)).ok_or_else(|| no_label(trace, label))
                }
            };
            Some(findings.and_then(|found| text(arguments, trace, &timeline, &found, &remarks)))
        },
    )??;
    page::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What is printed.
fn text(
    arguments: &Report,
    trace: &Trace,
    timeline: &Timeline,
    findings: &Findings,
    remarks: &[String],
) -> Result<String, Failure> {
    if let Some((before, after)) = &arguments.compare_labels
        && findings.equal_work.is_none()
    {
        let texts = &trace.tables.labels.text;
        let missing = [before, after]
            .into_iter()
            .find(|label| !texts.contains(label));
        return Err(match missing {
            Some(label) => no_label(trace, label),
            None => Failure::new(format!(
                "no GPU work was recorded under both {before} and {after}: there is nothing to compare"
            )),
        });
    }
    let terminal = page::of_stdout();
    let columns = slices(terminal.columns);
    let columns = arguments.slices.map_or(columns, |slices| slices as usize);
    let report = gapscope_report::Report {
        trace: &trace::name(&arguments.trace),
        manifest: &trace.manifest,
        findings,
        activity: &activity(timeline, columns),
        label: arguments.label.as_deref(),
        remarks,
        top: match arguments.top {
            0 => usize::MAX,
            top => top,
        },
    };
    if arguments.json {
        let text = match arguments.slices {
            Some(_) => json::text_with_activity(&report),
            None => json::text(&report),
        };
        return text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")));
    }
    Ok(match arguments.markdown {
        true => markdown::draw(&report.document()),
        false => terminal.draw(&report.document()),
    })
}

/// The report that follows a recording.
pub fn after_recording(path: &Path, terminal: &Terminal) -> Result<String, Failure> {
    let of_ranks = rank_folders(path);
    if !of_ranks.is_empty() {
        return ranks::after_recording(path, &of_ranks, terminal);
    }
    trace::with_timeline(path, &Findings::selection(), |trace, timeline, remarks| {
        let findings = Findings::of_timeline(timeline, &Options::default());
        let report = gapscope_report::Report {
            trace: &trace::name(path),
            manifest: &trace.manifest,
            findings: &findings,
            activity: &activity(timeline, slices(terminal.columns)),
            label: None,
            remarks,
            top: 10,
        };
        terminal.draw(&report.document())
    })
}

fn no_label(trace: &Trace, label: &str) -> Failure {
    let mut texts: Vec<&str> = trace
        .tables
        .labels
        .text
        .iter()
        .map(String::as_str)
        .collect();
    texts.sort_unstable();
    texts.dedup();
    let has = match texts.as_slice() {
        [] => "the trace has no labels at all".to_owned(),
        few if few.len() <= 8 => format!("the trace has the labels {}", few.join(", ")),
        many => format!("the trace has the labels {}, …", many[..8].join(", ")),
    };
    Failure::new(format!("no label \"{label}\": {has}"))
}
