//! Shows a trace as users see it, and checks the promises about it: idle time is the sum of its causes, JSON parses,
//! and no text steers a terminal. A broken promise is a panic.

use gapscope_analysis::{Findings, Options, activity};
use gapscope_comparison::ranks::{RankDigest, ranks};
use gapscope_report::ranks::RanksReport;
use gapscope_report::{Report, Terminal, info, json, markdown};
use gapscope_timeline::{LabelFilter, Timeline};
use gapscope_trace::tables::{Dispatches, Table as _};
use gapscope_trace::{TableSize, Trace};

/// The outputs that are chosen for an input, because all outputs would take ten times as long. The choice depends
/// only on the input.
#[derive(Debug, Clone, Copy)]
pub struct Choice(u32);

impl Choice {
    /// Chooses the outputs for an input.
    pub fn from_input(input: &[u8]) -> Choice {
        let mixed = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        Choice(input.iter().fold(0x811c_9dc5, mixed))
    }

    /// Returns one of `count` options for the question with a number.
    pub fn one_of(self, count: u32, question: u32) -> u32 {
        (self.0.rotate_left(question * 5) >> 7) % count
    }
}

/// Analyses a trace and shows it. `remarks` are sentences about how it was read.
pub fn show(trace: &Trace, remarks: &[String], choice: Choice) {
    let timeline = Timeline::new(trace);
    match (trace.tables.labels.text.get(0), choice.one_of(4, 1)) {
        (Some(label), 0) => show_label(trace, label, remarks, choice),
        (_, 1) => export(trace, choice),
        _ => show_timeline(&timeline, remarks, choice),
    }
}

/// Analyses the work under a label and shows it, with dispatches read in pieces.
fn show_label(trace: &Trace, label: &str, remarks: &[String], choice: Choice) {
    let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
        take(&trace.tables.dispatches);
        Some(())
    };
    let filter = LabelFilter::new(trace, label, each).expect("the dispatches are in memory");
    let rows = trace.tables.dispatches.len();
    let (timeline, ()) = Timeline::from_pieces(trace, Some(&filter), rows, each)
        .expect("the dispatches are in memory");
    let found = Findings::from_timeline(&timeline, &Options::default());
    sums(&found);
    print(&timeline, &found, Some(label), remarks, choice);
}

/// Analyses a timeline and shows it, without the outputs that need the whole table of dispatches.
pub fn show_timeline(timeline: &Timeline, remarks: &[String], choice: Choice) {
    let trace = timeline.trace;
    let texts = &trace.tables.labels.text;
    let compared = texts.iter().next().zip(texts.iter().next_back());
    let compared = compared.map(|(first, last)| (first.to_string(), last.to_string()));
    let options = Options {
        equal_work: compared.filter(|_| choice.one_of(4, 2) == 0),
        ..Options::default()
    };
    let found = Findings::from_timeline(timeline, &options);
    sums(&found);
    print(timeline, &found, None, remarks, choice);
    if choice.one_of(4, 3) == 0 {
        show_ranks(timeline, &found, remarks);
    }
}

/// Compares the ranks inside of a trace and shows the comparison.
fn show_ranks(timeline: &Timeline, findings: &Findings, remarks: &[String]) {
    let compared = ranks(&RankDigest::from_timeline(timeline, findings, 0), 3);
    let report = RanksReport {
        folder: "t.gapscope",
        manifest: &timeline.trace.manifest,
        findings: &compared,
        remarks,
        top: 3,
    };
    harmless(&Terminal::default().draw(&report.document()));
    let text = report.json().expect("ranks can be written as JSON");
    parses(text.as_bytes());
}

/// Shows the manifest and the sizes of the tables as `gapscope info` does.
pub fn show_info(trace: &Trace, sizes: &[TableSize], remarks: &[String]) {
    let document = info::document("t.gapscope", &trace.manifest, sizes, None, remarks);
    harmless(&Terminal::default().draw(&document));
}

/// Writes the report in one of its forms, and checks that form.
fn print(
    timeline: &Timeline,
    findings: &Findings,
    label: Option<&str>,
    remarks: &[String],
    choice: Choice,
) {
    let report = Report {
        trace: "t.gapscope",
        manifest: &timeline.trace.manifest,
        findings,
        activity: &activity(timeline, 60),
        label,
        remarks,
        each_layer: false,
        ranks: None,
        top: 10,
    };
    let terminal = |columns, colour| Terminal { columns, colour };
    match choice.one_of(5, 4) {
        0 => harmless(&markdown::draw(&report.document())),
        1 => {
            let text = json::text_with_activity(&report).expect("findings can be written as JSON");
            parses(text.as_bytes());
        }
        2 => harmless(&terminal(40, true).draw(&report.document())),
        3 => harmless(&terminal(500, false).draw(&report.document())),
        _ => harmless(&terminal(80, false).draw(&report.first_screen())),
    }
}

/// Writes the trace in one of the formats of other tools.
fn export(trace: &Trace, choice: Choice) {
    use gapscope_export::{Scene, chrome, firefox, perfetto, speedscope};
    let scene = Scene::new(trace);
    let mut out = Vec::new();
    let (written, is_json) = match choice.one_of(4, 5) {
        0 => (chrome::write(&scene, &mut out), true),
        1 => (firefox::write(&scene, &mut out), true),
        2 => (speedscope::write(&scene, &mut out), true),
        _ => (perfetto::write(&scene, &mut out), false),
    };
    written.expect("memory takes what is written");
    if is_json {
        parses(&out);
    }
}

/// Checks that idle time is the sum of its causes and that nothing is counted twice.
fn sums(findings: &Findings) {
    let idle = &findings.idle_time;
    let by_cause: i64 = findings.gaps.iter().map(|gap| gap.total_ns).sum();
    assert_eq!(by_cause, idle.total_ns, "idle time by cause");
    let mut idle_ns = 0;
    for share in findings.devices.iter().filter_map(|d| d.analysed) {
        assert_eq!(share.busy_ns + share.idle_ns, share.window_ns, "a window");
        assert!(share.busy_ns >= 0 && share.idle_ns >= 0, "{share:?}");
        idle_ns += share.idle_ns;
    }
    if findings.unread.is_empty() {
        let found = idle.total_ns + idle.below_threshold_ns;
        assert_eq!(found, idle_ns, "idle time of the devices");
        let counted: u64 = findings.kernels.iter().map(|kernel| kernel.count).sum();
        assert_eq!(findings.dispatch_count, counted, "dispatches by kernel");
    }
    for gap in &idle.longest {
        let parts: i64 = gap.parts.iter().map(|part| part.duration_ns).sum();
        assert_eq!(parts, gap.duration_ns, "parts of a gap");
    }
}

/// Panics where bytes are not JSON.
fn parses(json: &[u8]) {
    let parsed = serde_json::from_slice::<serde_json::Value>(json);
    assert!(parsed.is_ok(), "JSON that does not parse: {parsed:?}");
}

/// Checks that a text for a terminal moves no cursor and changes no direction: of control characters it may only have
/// line feeds and gapscope's own colours.
pub fn harmless(text: &str) {
    for (at, piece) in text.split('\u{1b}').enumerate() {
        let piece = match at {
            0 => piece,
            _ => {
                let code = piece.strip_prefix('[').and_then(|p| p.split_once('m'));
                let (code, rest) = code.expect("an escape sequence that is no colour");
                let digits = |b: u8| b.is_ascii_digit() || b == b';';
                assert!(code.bytes().all(digits), "escape sequence {code:?}");
                rest
            }
        };
        let steers = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(
            !piece.contains(steers),
            "a text that steers a terminal: {piece:?}"
        );
    }
}
