//! Tests that each figure of `gapscope explain` is found again by its query or in the report, and that each named
//! row exists.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::product;
use crate::recording::{Run, planted};
use crate::schema::{Answers, write};

fn gapscope(arguments: &[&str], trace: &Path, last: Option<&str>) -> Run {
    let mut command = Command::new(product::built("gapscope"));
    Run::from_command(command.args(arguments).arg(trace).args(last))
}

fn rows(trace: &Path, sql: &str) -> Value {
    let run = gapscope(&["query", "--format", "json"], trace, Some(sql)).ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Checks an explanation and returns the words of its marks.
fn holds(trace: &Path, options: &[&str], answers: &mut Answers) -> HashSet<String> {
    let explanation = answers.validated(
        "explain",
        &[&["explain", "--json"], options].concat(),
        trace,
    );
    let report: Value = {
        let run = gapscope(&["report", "--json"], trace, None);
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let run = gapscope(&["explain", "--width", "200"], trace, None);
    let page = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(explanation["verdict"], report["verdict"]);
    let mut tables = HashSet::new();
    for claim in explanation["claims"].as_array().expect("claims") {
        let text = claim["text"].as_str().expect("a text");
        assert!(page.contains(text.trim_end_matches('.')), "{text}\n{page}");
        let found = claim["query"].as_str().map(|sql| rows(trace, sql));
        for figure in claim["figures"].as_array().expect("figures") {
            let name = figure["name"].as_str().expect("a name");
            let there = match figure["report"].as_str() {
                Some(pointer) => report.pointer(pointer),
                None => found.as_ref().and_then(|found| found[0].get(name)),
            };
            assert_eq!(Some(&figure["value"]), there, "{name} of {claim:#}");
        }
        for row in claim["rows"].as_array().expect("rows") {
            let (table, id) = (row["table"].as_str().expect("a table"), &row["id"]);
            let column = if table == "gaps" { "gap" } else { "id" };
            let found = rows(
                trace,
                &format!("select * from {table} where {column} = {id}"),
            );
            let found = found.as_array().expect("rows");
            assert!(!found.is_empty(), "{row}: {claim:#}");
            let one = match table {
                "command_buffers" => "command buffer",
                table => table.trim_end_matches('s'),
            };
            assert!(text.contains(&format!("[{one} {id}]")), "{row}: {text}");
            tables.insert(table.to_owned());
            // The answer of the query is the value in the sentence.
            let said = |value: &Value| text.contains(value.as_str().expect("a text"));
            match table {
                "gaps" => {
                    assert!(said(&found[0]["kernel_before"]) && said(&found[0]["kernel_after"]));
                    let ns = found
                        .iter()
                        .map(|part| part["duration_ns"].as_i64().expect("a time"));
                    let figures = claim["figures"].as_array().expect("figures");
                    let longest = figures.iter().find(|figure| figure["name"] == "gap_ns");
                    assert_eq!(longest.expect("its length")["value"], ns.sum::<i64>());
                    assert!(claim["query"].as_str().is_some_and(|sql| {
                        found
                            .iter()
                            .any(|part| sql.contains(part["cause"].as_str().expect("a cause")))
                    }));
                }
                "kernels" => assert!(said(&found[0]["readable_name"]), "{text}"),
                "labels" => assert!(said(&found[0]["text"]), "{text}"),
                _ => {}
            }
        }
    }
    tables
}

#[test]
fn every_claim_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut answers = Answers::default();
    let mut tables = HashSet::new();
    let texts = product::source("../../crates/report/tests/traces");
    for entry in fs::read_dir(texts).expect("traces") {
        let path = entry.expect("an entry").path();
        let trace = folder.path().join(path.file_stem().expect("a name"));
        write(&fs::read_to_string(&path).expect("a trace"), &trace);
        tables.extend(holds(&trace, &[], &mut answers));
    }
    for version in ["v1", "v2"] {
        let fixture = product::source("../../fixtures").join(format!("{version}.gapscope"));
        tables.extend(holds(&fixture, &[], &mut answers));
    }
    for program in [
        "steady --n 20 --iterations 50",
        "pipelines-in-loop --iterations 20",
        "spin --spin 3000000 --groups 4",
    ] {
        let recording = planted(program).recorded();
        tables.extend(holds(&recording.path(), &[], &mut answers));
    }
    // An imported trace has neither dispatches nor calls of threads.
    let metal = folder.path().join("metal.gapscope");
    let mut command = Command::new(product::built("gapscope"));
    command
        .args(["record", "--no-report", "--quiet", "-o"])
        .arg(&metal)
        .args(["--", "true"])
        .env("GAPSCOPE_XCTRACE", product::built("stand-in-xctrace"))
        .env("STAND_IN_XCTRACE", "");
    Run::from_command(&mut command).ok();
    tables.extend(holds(&metal, &[], &mut answers));
    answers.hold();
    for table in ["gaps", "kernels", "labels", "submissions"] {
        assert!(tables.contains(table), "no claim names a row of {table}");
    }
}

/// Facts that cannot be read are not stated as if they were known.
#[test]
fn what_is_damaged_is_said_and_not_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(product::source(
        "../../crates/report/tests/traces/host_bound.txt",
    ));
    write(&text.expect("a trace"), &folder.path().join("damaged"));
    let trace = folder.path().join("damaged");
    fs::write(trace.join("dispatches.parquet"), "no").expect("it is damaged");
    let run = gapscope(&["explain", "--json"], &trace, None);
    run.assert_status(3);
    let explanation: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(explanation["verdict"], "unknown");
    let claims = explanation["claims"].as_array().expect("claims");
    // Sentences without a query are those of the report, which rest on tables that can be read.
    let rests_on_transfers = |claim: &Value| {
        let query = claim["query"].as_str();
        query.is_none_or(|sql| sql.contains("transfers"))
    };
    for claim in claims {
        let is_damaged =
            claim["kind"] == "idle" || claim["kind"] == "work" && !rests_on_transfers(claim);
        assert!(!is_damaged, "{claim:#?}");
    }
    let said = |claim: &Value| {
        claim["text"]
            .as_str()
            .is_some_and(|text| text.contains("dispatches.parquet"))
    };
    assert!(
        claims
            .iter()
            .any(|claim| claim["kind"] == json!("unknown") && said(claim)),
        "{claims:#?}"
    );
}
