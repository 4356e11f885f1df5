//! An explanation says everything that the report says.

use super::{HOST_BOUND, read};
use gapscope_analysis::{Findings, Options, activity};
use gapscope_report::explanation::Explanation;
use gapscope_report::{Block, Document, Report, Text};
use gapscope_timeline::Timeline;

const TRACES: [(&str, &str); 9] = [
    ("host_bound", HOST_BOUND),
    (
        "command_buffers_only",
        include_str!("../traces/command_buffers_only.txt"),
    ),
    ("cuda_waits", include_str!("../traces/cuda_waits.txt")),
    ("nothing", include_str!("../traces/nothing.txt")),
    ("other_threads", include_str!("../traces/other_threads.txt")),
    ("two_gpus", include_str!("../traces/two_gpus.txt")),
    ("two_queues", include_str!("../traces/two_queues.txt")),
    ("v2", include_str!("../../../../fixtures/v2.txt")),
    ("v3", include_str!("../../../../fixtures/v3.txt")),
];

/// Returns what a document says: sentences, entries of lists, cells of tables and remarks on their rows.
fn facts(document: &Document) -> Vec<String> {
    let mut facts = Vec::new();
    let mut add =
        |text: &Text| facts.push(text.plain_text().trim().trim_end_matches('.').to_owned());
    for block in &document.blocks {
        match block {
            Block::Sentence(text) | Block::Item(text) => add(text),
            Block::Table(table) => {
                for row in &table.rows {
                    let cells = table.columns.iter().zip(&row.cells);
                    let cells = cells.filter(|(column, _)| !column.picture);
                    cells.for_each(|(_, cell)| add(cell));
                    row.note.iter().for_each(&mut add);
                }
            }
            Block::Title(title, aside) => {
                add(&title.as_str().into());
                add(&aside.as_str().into());
            }
            Block::Heading(title, _) if title == "Timeline" => {}
            Block::Heading(_, aside) => add(&aside.as_str().into()),
            // The picture of the timeline is drawn from times that the claims have.
            Block::Picture(_) => {}
        }
    }
    facts
}

#[test]
fn an_explanation_says_everything_that_the_report_says() {
    for (name, text) in TRACES {
        let trace = read(text);
        let timeline = Timeline::new(&trace);
        let findings = Findings::from_timeline(&timeline, &Options::default());
        let remarks = ["The reader remarks something.".to_owned()];
        let report = Report {
            trace: name,
            manifest: &trace.manifest,
            findings: &findings,
            activity: &activity(&timeline, 40),
            label: None,
            remarks: &remarks,
            top: 10,
            each_layer: false,
        };
        let explanation = Explanation::new(name, &timeline, &findings, &remarks);
        let verdict = explanation.verdict.to_uppercase();
        let mut said = verdict.clone();
        for claim in &explanation.claims {
            said += &format!("\n{}", claim.text);
            said += claim.advice.as_deref().unwrap_or_default();
        }
        for fact in facts(&report.document()) {
            // The verdict's name stands before its sentence in the report.
            let fact = fact.strip_prefix(&verdict).map_or(&*fact, str::trim);
            // So does a mark before what the trace's reader and the trace itself remark.
            let unmarked = ["Note: ", "Lost: "]
                .iter()
                .find_map(|mark| fact.strip_prefix(mark));
            let fact = unmarked.unwrap_or(fact);
            assert!(said.contains(fact), "{name}: \"{fact}\" is not in:\n{said}");
        }
    }
}
