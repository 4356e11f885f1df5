//! Writes the results of gates (limits that the user sets on the figures of a comparison) as JUnit XML, a test case
//! for each gate, for services of continuous integration. A broken gate fails, an unknown one, and one that could not be judged, is an
//! error, and an unknown one that is allowed is skipped.

use super::shown;
use gapscope_comparison::diff::{Diff, GateResult, GateStatus};

/// Returns the gates of a comparison as XML. `name` is the name of the comparison.
pub fn text(diff: &Diff, name: &str) -> String {
    let count = |status| {
        (diff.gates.iter())
            .filter(|gate| gate.status == status)
            .count()
    };
    let (tests, failures) = (diff.gates.len(), count(GateStatus::Broken));
    let errors = [
        GateStatus::Noise,
        GateStatus::Undecided,
        GateStatus::Unknown,
        GateStatus::Unlike,
    ];
    let errors: usize = errors.into_iter().map(count).sum();
    let skipped = count(GateStatus::UnknownAllowed);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!(
        "<testsuites tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"0\">\n"
    ));
    out.push_str(&format!(
        "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"0\">\n",
        escaped(name)
    ));
    for gate in &diff.gates {
        out.push_str(&case(gate));
    }
    let mut said = vec![diff.sentence.clone()];
    let unlike = diff.unlike.iter();
    said.extend(unlike.map(|sentence| format!("Unlike: {sentence}")));
    said.push(diff.method.sentence.clone());
    out.push_str(&format!(
        "    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n",
        escaped(&said.join("\n"))
    ));
    out
}

/// Returns the test case of a gate.
fn case(gate: &GateResult) -> String {
    let open = format!(
        "    <testcase name=\"{}\" classname=\"gapscope.diff\" time=\"0\"",
        escaped(&gate.gate)
    );
    let detail = format!(
        "{} before, {} after. {}",
        shown(gate.before, gate.unit),
        shown(gate.after, gate.unit),
        gate.sentence
    );
    let (sentence, detail) = (escaped(&gate.sentence), escaped(&detail));
    let inside = match gate.status {
        GateStatus::Held => format!("      <system-out>{sentence}</system-out>\n"),
        GateStatus::Noise | GateStatus::Undecided => {
            format!("      <error message=\"{sentence}\" type=\"undecided\">{detail}</error>\n")
        }
        GateStatus::Broken => {
            format!("      <failure message=\"{sentence}\" type=\"gate\">{detail}</failure>\n")
        }
        GateStatus::Unknown => {
            format!("      <error message=\"{sentence}\" type=\"unknown\">{detail}</error>\n")
        }
        GateStatus::Unlike => {
            format!("      <error message=\"{sentence}\" type=\"unlike\">{detail}</error>\n")
        }
        GateStatus::UnknownAllowed => format!("      <skipped message=\"{sentence}\"/>\n"),
    };
    format!("{open}>\n{inside}    </testcase>\n")
}

/// Escapes text and values of attributes. XML forbids most control characters: `U+FFFD` stands for them.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
