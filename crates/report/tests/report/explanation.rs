//! An explanation says everything that the report says.

use super::{HOST_BOUND, drawn, read};
use gapscope_analysis::{Findings, Options, activity};
use gapscope_report::explanation::Explanation;
use gapscope_report::{Block, Document, Report, Text, slices};
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
            Block::Sentence(text) | Block::Apart(text) | Block::Item(text) => add(text),
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
            ranks: None,
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

/// A trace with a loss, whose processes have launched a kernel each.
fn forked(processes: usize) -> String {
    let mut text =
        "manifest sampling_mode=dispatch\nloss what=records count=3 reason=\"the disk was full\"\n"
            .to_owned();
    for id in 1..=processes {
        let at = id * 1_000;
        text += &format!(
            "process id={id} pid={id} hook=cuda
             device id={id} process={id} api=cuda name=GPU uuid=aa
             queue id={id} device={id}
             kernel id={id} process={id} name=work
             submission id={id} process={id} queue={id} thread={id} start_ns={at}us duration_ns=5us kind=kernel
             dispatch submission={id} queue={id} kernel={id} start_ns={}us duration_ns=100us\n",
            at + 10
        );
    }
    text
}

#[test]
fn reports_and_explanations_of_many_processes_stay_short() {
    let lines = |processes: usize, top: usize| {
        let trace = read(&forked(processes));
        let timeline = Timeline::new(&trace);
        let findings = Findings::from_timeline(&timeline, &Options::default());
        let report = Report {
            trace: "forked",
            manifest: &trace.manifest,
            findings: &findings,
            activity: &activity(&timeline, slices(80)),
            label: None,
            remarks: &[],
            top,
            each_layer: false,
            ranks: None,
        };
        let explained = Explanation::new("forked", &timeline, &findings, &[]).claims;
        let report = drawn(&report.document());
        (report.lines().count(), explained.len(), report)
    };
    let (few, few_explained, _) = lines(20, 10);
    let (many, many_explained, page) = lines(300, 10);
    assert!(many <= few + 5, "{many} lines instead of {few}");
    assert!(many_explained <= few_explained + 5, "{many_explained}");
    assert_eq!(
        page.matches("and 290 more streams (--top 0 shows all)")
            .count(),
        2
    );
    let (all, ..) = lines(300, usize::MAX);
    assert!(all > 300, "{all}");
}

#[test]
fn an_explanation_says_a_loss_and_a_footnote_once() {
    let trace = read(&forked(2));
    let timeline = Timeline::new(&trace);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    let claims = Explanation::new("forked", &timeline, &findings, &[]).claims;
    for text in ["the disk was full", "share: of the GPU's busy time"] {
        let said = claims.iter().filter(|claim| claim.text.contains(text));
        assert_eq!(said.count(), 1, "{text}: {claims:#?}");
    }
}
