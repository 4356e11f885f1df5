//! Writes the findings of a report as JSON, under the same keys as in [`Findings`], with what the manifest says of
//! the recording. Keys are stable: keys may be added, and none is renamed or removed.

use crate::page::Report;
use crate::ranks::JudgedRanks;
use crate::stable_json::{VERSION, pretty};
use gapscope_analysis::Findings;
use gapscope_analysis::activity::Activity;
use gapscope_analysis::unread::CAUSES;
use gapscope_comparison::ranks::RankFindings;
use gapscope_trace::manifest::Exit;
use schemars::JsonSchema;
use serde::Serialize;

/// What `gapscope report --json` prints of a trace.
///
/// Times are integer nanoseconds on the host's monotonic clock, sizes integer bytes, shares from 0 to 1. What is not known is
/// null; beside the most important figures a key `…_unknown_because` then says why.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct Json<'a> {
    /// Version of the keys' meaning. Keys may be added without a new one; none is renamed or taken away.
    report_version: u32,
    /// Version of the gapscope that wrote the trace.
    gapscope_version: &'a str,
    /// Name of the trace.
    trace: &'a str,
    /// The command that was recorded.
    command: &'a [String],
    /// How the command ended; null where that is not known.
    exit: Option<Exit>,
    /// The recording ended in an orderly way; else `gapscope recover` completes it.
    complete: bool,
    /// The label whose work the report covers; null where it covers the whole trace.
    label: Option<&'a str>,
    #[serde(flatten)]
    findings: &'a Findings,
    /// Sentences that every report prints.
    notes: Vec<&'a str>,
    /// The timeline in equal slices, with `--slices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<&'a Activity>,
    /// The ranks in the trace, compared, where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<JudgedRanks<'a>>,
}

impl<'a> Json<'a> {
    /// Makes the JSON form of a report's findings.
    pub fn new(report: &Report<'a>) -> Json<'a> {
        let (findings, manifest) = (report.findings, report.manifest);
        let notes = findings.notes.iter().chain(report.remarks);
        Json {
            report_version: VERSION,
            gapscope_version: &manifest.gapscope_version,
            trace: report.trace,
            command: &manifest.command,
            exit: manifest.exit,
            complete: manifest.complete,
            label: report.label,
            findings,
            notes: notes.map(String::as_str).collect(),
            activity: None,
            ranks: None,
        }
    }

    /// Makes the JSON form of a report's findings, with the timeline's slices as `activity` where causes of gaps are
    /// known.
    pub fn with_activity(report: &Report<'a>) -> Json<'a> {
        Json {
            activity: report.findings.knows(CAUSES).then_some(report.activity),
            ..Json::new(report)
        }
    }
}

/// Returns the findings of a report as JSON text, which ends with a line feed.
pub fn text(report: &Report) -> Result<String, serde_json::Error> {
    pretty(&Json::new(report))
}

/// Returns the findings as one line of JSON, with the timeline's slices as `activity`.
pub fn text_with_activity(report: &Report) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(&Json::with_activity(report))? + "\n")
}

/// Returns the findings as JSON text, with the ranks that are in the trace as `ranks`.
pub fn text_with_ranks(report: &Report, ranks: &RankFindings) -> Result<String, serde_json::Error> {
    pretty(&Json {
        ranks: Some(JudgedRanks::new(ranks)),
        ..Json::new(report)
    })
}
