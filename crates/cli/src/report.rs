//! `gapscope report`.

use crate::args::Report;
use crate::failure::Failure;
use crate::{page, ranks, trace, view};
use gapscope_analysis::{Findings, Options, Timeline, activity, findings_under_label};
use gapscope_report::{Terminal, json, markdown, slices};
use gapscope_trace::{Selection, Trace};
use std::path::Path;
use std::process::ExitCode;

/// Prints the report of a trace.
pub fn run(arguments: &Report) -> Result<ExitCode, Failure> {
    let of_ranks = ranks::of(&arguments.trace);
    if !of_ranks.is_empty() {
        return match &arguments.html {
            Some(_) => Err(ranks::choose(&arguments.trace, &of_ranks, "a page")),
            None => ranks::report(arguments, &of_ranks),
        };
    }
    if let Some(file) = &arguments.html {
        return view::to_file(&arguments.trace, file);
    }
    let selection = match &arguments.label {
        None => Findings::selection(),
        // Its work becomes a trace of its own, whose rows are whole.
        Some(_) => Selection::all(),
    };
    let opened = trace::open(&arguments.trace, &selection)?;
    let options = Options {
        exclude_warm_up: !arguments.all,
        equal_work: arguments.compare_labels.clone(),
        ..Options::default()
    };
    let timeline = Timeline::of(&opened.trace);
    let findings = match &arguments.label {
        None => Findings::of_timeline(&timeline, &options),
        Some(label) => findings_under_label(&opened.trace, label, &options)
            .ok_or_else(|| no_label(&opened.trace, label))?,
    };
    if let Some((before, after)) = &arguments.compare_labels
        && findings.equal_work.is_none()
    {
        let texts = &opened.trace.tables.labels.text;
        let missing = [before, after]
            .into_iter()
            .find(|label| !texts.contains(label));
        return Err(match missing {
            Some(label) => no_label(&opened.trace, label),
            None => Failure::new(format!(
                "no GPU work was recorded under both {before} and {after}: there is nothing to compare"
            )),
        });
    }
    let terminal = page::of_stdout();
    let name = trace::name(&arguments.trace);
    let columns = slices(terminal.columns);
    let columns = arguments.slices.map_or(columns, |slices| slices as usize);
    let activity = activity(&timeline, columns);
    let report = gapscope_report::Report {
        trace: &name,
        manifest: &opened.trace.manifest,
        findings: &findings,
        activity: &activity,
        label: arguments.label.as_deref(),
        remarks: &opened.remarks,
        top: match arguments.top {
            0 => usize::MAX,
            top => top,
        },
    };
    let text = if arguments.json {
        let text = match arguments.slices {
            Some(_) => json::text_with_activity(&report),
            None => json::text(&report),
        };
        text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?
    } else if arguments.markdown {
        markdown::draw(&report.document())
    } else {
        terminal.draw(&report.document())
    };
    page::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The report that follows a recording.
pub fn after_recording(path: &Path, terminal: &Terminal) -> Result<String, Failure> {
    let of_ranks = ranks::of(path);
    if !of_ranks.is_empty() {
        return ranks::after_recording(path, &of_ranks, terminal);
    }
    let opened = trace::open(path, &Findings::selection())?;
    let timeline = Timeline::of(&opened.trace);
    let findings = Findings::of_timeline(&timeline, &Options::default());
    let activity = activity(&timeline, slices(terminal.columns));
    let report = gapscope_report::Report {
        trace: &trace::name(path),
        manifest: &opened.trace.manifest,
        findings: &findings,
        activity: &activity,
        label: None,
        remarks: &opened.remarks,
        top: 10,
    };
    Ok(terminal.draw(&report.document()))
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
