//! Tests that JUnit's XML keeps to the rules of continuous integration services: the schema of Jenkins' plugin xUnit
//! (`junit-10.xsd`), which allows what the schema of Ant's task does and the newer elements of test cases.

use crate::{TRACE, Workplace, text};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::BTreeMap;

/// What an element may contain.
struct Rule {
    element: &'static str,
    /// Whether the element may contain text.
    text: bool,
    /// Names of elements, with spaces between.
    children: &'static str,
    /// Names of attributes, with spaces between.
    required: &'static str,
    optional: &'static str,
}

/// An element with a text.
const MESSAGE: Rule = Rule {
    element: "",
    text: true,
    children: "",
    required: "",
    optional: "type message",
};

const RULES: [Rule; 8] = [
    Rule {
        element: "testsuites",
        text: false,
        children: "testsuite",
        required: "",
        optional: "name time tests failures errors",
    },
    Rule {
        element: "testsuite",
        text: false,
        children: "testsuite properties testcase system-out system-err",
        required: "name",
        optional: "tests failures errors group time skipped timestamp hostname id package file log url version",
    },
    Rule {
        element: "testcase",
        text: false,
        children: "skipped error failure properties system-out system-err",
        required: "name",
        optional: "assertions time timestamp classname status class file line log group url",
    },
    Rule {
        element: "failure",
        ..MESSAGE
    },
    Rule {
        element: "error",
        ..MESSAGE
    },
    Rule {
        element: "skipped",
        ..MESSAGE
    },
    Rule {
        element: "system-out",
        optional: "",
        ..MESSAGE
    },
    Rule {
        element: "system-err",
        optional: "",
        ..MESSAGE
    },
];

/// An open element, with counts of its contents.
struct OpenElement {
    rule: &'static Rule,
    attributes: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
}

fn has_word(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|other| other == word)
}

/// Checks a file. Returns the name of each test case and of the element that tells how it ended.
fn checked(xml: &str) -> Result<BTreeMap<String, &'static str>, String> {
    let mut outcomes = BTreeMap::new();
    let mut open: Vec<OpenElement> = Vec::new();
    let mut reader = Reader::from_str(xml);
    let mut roots = 0;
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let opened = match &event {
            Event::Start(start) | Event::Empty(start) => Some(element(start)?),
            _ => None,
        };
        if let Some(element) = opened {
            let name = element.rule.element;
            match open.last_mut() {
                Some(around) if has_word(around.rule.children, name) => {
                    *around.counts.entry(name).or_default() += 1;
                }
                Some(around) => return Err(format!("{name} in {}", around.rule.element)),
                None if name.starts_with("testsuite") => roots += 1,
                None => return Err(format!("{name} is the root")),
            }
            open.push(element);
        }
        match event {
            Event::End(_) | Event::Empty(_) => {
                let Some(closed) = open.pop() else {
                    return Err("it ends what was not begun".to_owned());
                };
                if closed.rule.element == "testcase" {
                    let ends = ["failure", "error", "skipped"];
                    let found: Vec<_> = ends
                        .into_iter()
                        .filter(|end| closed.counts.contains_key(end))
                        .collect();
                    let outcome = match found.as_slice() {
                        [] => "passed",
                        [one] => one,
                        _ => return Err(format!("a test case that ended as {found:?}")),
                    };
                    for around in &mut open {
                        *around.counts.entry(outcome).or_default() += 1;
                        *around.counts.entry("all tests").or_default() += 1;
                    }
                    let name = closed.attributes["name"].clone();
                    if outcomes.insert(name.clone(), outcome).is_some() {
                        return Err(format!("two test cases are called {name}"));
                    }
                } else {
                    let told = [
                        ("tests", "all tests"),
                        ("failures", "failure"),
                        ("errors", "error"),
                        ("skipped", "skipped"),
                    ];
                    for (attribute, counted) in told {
                        let count = closed.counts.get(counted).copied().unwrap_or(0);
                        match closed.attributes.get(attribute) {
                            Some(said) if *said != count.to_string() => {
                                return Err(format!(
                                    "{attribute} is {said}, and there are {count}"
                                ));
                            }
                            _ => {}
                        }
                    }
                }
            }
            Event::Text(said) => {
                let blank = said.trim_ascii().is_empty();
                let may = open.last().is_some_and(|around| around.rule.text);
                if !blank && !may {
                    return Err("text where none may be".to_owned());
                }
            }
            Event::Eof if roots == 1 && open.is_empty() => return Ok(outcomes),
            Event::Eof => return Err(format!("{roots} roots, {} open", open.len())),
            _ => {}
        }
    }
}

fn element(start: &BytesStart) -> Result<OpenElement, String> {
    let name = start.name().as_ref().to_owned();
    let rule = RULES.iter().find(|rule| rule.element == name);
    let rule = rule.ok_or_else(|| format!("there is no element {name}"))?;
    let mut attributes = BTreeMap::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let key = attribute.key.as_ref().to_owned();
        let value = attribute.normalized_value(XmlVersion::Explicit1_0);
        let value = value.map_err(|error| error.to_string())?.into_owned();
        if !has_word(rule.required, &key) && !has_word(rule.optional, &key) {
            return Err(format!("{name} has no attribute {key}"));
        }
        if key == "time" && value.parse::<f64>().is_err() {
            return Err(format!("{value} is no time"));
        }
        attributes.insert(key, value);
    }
    let mut required = rule.required.split_whitespace();
    match required.find(|key| !attributes.contains_key(*key)) {
        Some(key) => Err(format!("{name} lacks {key}")),
        None => Ok(OpenElement {
            rule,
            attributes,
            counts: BTreeMap::new(),
        }),
    }
}

/// Runs a command and checks its XML. XML 1.0 has no place for most control characters, in whatever form.
fn junit(workplace: &Workplace, arguments: &[&str]) -> BTreeMap<String, &'static str> {
    let output = workplace.run(arguments);
    let xml = text(&output.stdout);
    let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    assert!(!xml.contains(controls), "{xml}");
    checked(&xml).unwrap_or_else(|broken| panic!("{broken}: {xml}{}", text(&output.stderr)))
}

#[test]
fn junit_of_every_outcome_keeps_to_the_schema() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    workplace.trace_of(
        "b.gapscope",
        &TRACE.replace("bytes=1048576", "bytes=4194304"),
    );
    // Some names are real kernels', others are hostile.
    let odd = "kernel(\"void f<int, 3>(a &&, 'b')\u{1}\") > 3%";
    let gates = [
        "--gate",
        "transfer_bytes > 1MiB",
        "--gate",
        "dispatches > 0",
        "--gate",
        "gpu_time > 3%",
        "--gate",
        odd,
    ];
    let traces = ["a.gapscope", "b.gapscope"];
    let outcomes = junit(
        &workplace,
        &[&["diff", "--junit"], &gates[..], &traces].concat(),
    );
    assert_eq!(outcomes["transfer_bytes > 1MiB"], "failure");
    assert_eq!(outcomes["dispatches > 0"], "passed");
    // The times are equal, and one short run a side could not show 3 %.
    assert_eq!(outcomes["gpu_time > 3%"], "error");
    assert_eq!(outcomes[&odd.replace('\u{1}', "\u{fffd}")], "error");
    let allowed = [&["diff", "--junit", "--allow-unknown"], &gates[..], &traces].concat();
    let outcomes = junit(&workplace, &allowed);
    assert_eq!(outcomes[&odd.replace('\u{1}', "\u{fffd}")], "skipped");
    assert_eq!(
        junit(&workplace, &["diff", "--junit", "a.gapscope", "b.gapscope"]).len(),
        0
    );

    workplace.run(&["baseline", "save", "main", "a.gapscope"]);
    workplace.edit(
        "a.gapscope/trace.json",
        "\"dispatch\"",
        "\"dispatch-serialised\"",
    );
    let compare = [
        "baseline",
        "compare",
        "main",
        "--junit",
        "--gate",
        "dispatches > 0",
        "a.gapscope",
    ];
    assert_eq!(junit(&workplace, &compare)["dispatches > 0"], "error");
}

#[test]
fn what_breaks_the_schema_is_found() {
    let case = |attributes: &str, inside: &str| {
        format!(
            "<testsuites><testsuite name=\"s\" tests=\"1\"><testcase {attributes}>{inside}</testcase></testsuite></testsuites>"
        )
    };
    assert!(checked(&case("name=\"a\"", "")).is_ok());
    for broken in [
        case("classname=\"a\"", ""),
        case("name=\"a\" name=\"b\"", ""),
        case("name=\"a\" color=\"red\"", ""),
        case("name=\"a\" time=\"soon\"", ""),
        case("name=\"a\"", "<passed/>"),
        case("name=\"a\"", "words"),
        case("name=\"a\"", "<failure/><skipped/>"),
        case("name=\"a\"", "").replace("tests=\"1\"", "tests=\"2\""),
        case("name=\"a\"", "").replace("</testsuites>", ""),
        "<testcase name=\"a\"/>".to_owned(),
    ] {
        assert!(checked(&broken).is_err(), "{broken}");
    }
}
