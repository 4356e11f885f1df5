//! The table of causes, and what is written from it.

use gapscope_analysis::gaps::{Cause, Side};
use gapscope_trace::manifest::Api;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

#[test]
fn causes_are_distinguished_by_letter_colour_and_name() {
    for api in [Api::Unknown, Api::Cuda] {
        let facts = Cause::ALL.map(|cause| cause.facts(api));
        let of = |fact: fn(&gapscope_analysis::gaps::CauseFacts) -> String| {
            facts.iter().map(fact).collect::<HashSet<_>>().len()
        };
        assert_eq!(of(|facts| facts.letter.to_string()), facts.len());
        assert_eq!(of(|facts| facts.colour.to_owned()), facts.len());
        assert_eq!(of(|facts| facts.name.to_owned()), facts.len());
    }
}

#[test]
fn the_verdict_can_say_what_the_host_did_for_each_cause_on_its_side() {
    for cause in Cause::ALL {
        let facts = cause.facts(Api::Unknown);
        assert_eq!(
            facts.host_was.is_some(),
            facts.side == Side::Host,
            "{cause}"
        );
    }
}

#[test]
fn the_stable_name_is_that_of_the_json() {
    for cause in Cause::ALL {
        let json = serde_json::to_value(cause).unwrap();
        assert_eq!(json, cause.as_str());
    }
}

#[test]
fn the_reference_lists_all_causes() {
    const HEAD: &str =
        "| | cause | in JSON | what happened | what to do |\n|---|---|---|---|---|\n";
    let path = in_repository("docs/verdicts.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let from = page.find(HEAD).expect("the page has the table") + HEAD.len();
    let to = from + page[from..].find("\n\n").expect("the table ends") + 1;
    let rows: String = Cause::ALL
        .map(|cause| {
            let facts = cause.facts(Api::Unknown);
            let (letter, name, sentence) = (facts.letter, facts.name, facts.sentence);
            let advice = sentence_of(facts.advice);
            format!("| {letter} | {name} | `{cause}` | {sentence} | {advice} |\n")
        })
        .concat();
    renew(
        &path,
        &page,
        &format!("{}{rows}{}", &page[..from], &page[to..]),
    );
}

#[test]
fn the_notebook_has_the_colours_of_all_causes() {
    let path = in_repository("python/gapscope/_causes.py");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let colours = Cause::ALL
        .map(|cause| {
            format!(
                "    \"{cause}\": \"{}\",\n",
                cause.facts(Api::Unknown).colour
            )
        })
        .concat();
    let expected = format!(
        "\"\"\"Causes of idle time. Written from crates/analysis/src/gaps/cause.rs by a test of that crate.\"\"\"\n\n\
         #: The colour of each cause; causes that belong together share a hue.\nCOLOURS = {{\n{colours}}}\n"
    );
    renew(&path, &written, &expected);
}

fn sentence_of(advice: &str) -> String {
    let mut letters = advice.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

pub fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

pub fn renew(path: &Path, written: &str, expected: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, expected).expect("the file can be written");
    } else {
        let name = path.display();
        assert_eq!(written, expected, "UPDATE=1 renews {name}");
    }
}
