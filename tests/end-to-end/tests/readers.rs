//! Tests that DuckDB and Polars read traces as plain Parquet files, without gapscope, and give the answers of
//! `gapscope query`.

use std::process::Command;

use gapscope_trace::synthetic::Synthetic;
use serde_json::Value;

use crate::{client, product};

const QUESTIONS: [(&str, &str); 4] = [
    (
        "kernels",
        "select rank, kernel_name, count(*), sum(duration_ns), max(duration_ns) from dispatches group by rank, kernel_name
         order by 1, 2",
    ),
    (
        "transfers",
        "select rank, kind, count(*), sum(bytes) from transfers group by rank, kind order by 1, 2",
    ),
    (
        "host_calls",
        "select rank, call, sum(count), sum(busy_ns) from host_calls group by rank, call order by 1, 2",
    ),
    (
        "unknown",
        "select count(*) - count(label), count(*) - count(bytes) from transfers",
    ),
];

#[test]
fn duckdb_and_polars_answer_what_gapscope_answers() {
    let Some(python) = client::script("readers") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..3 {
        let of = Synthetic {
            dispatches: 20_000,
            kernels: 30,
            seed: rank,
            ..Synthetic::default()
        };
        of.write(&folder.path().join(format!("rank={rank}")))
            .unwrap();
    }
    let [program, script] = python;
    let output = Command::new(program)
        .arg(script)
        .arg(folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (question, sql) in QUESTIONS {
        let output = Command::new(product::built("gapscope"))
            .args(["query", "--format", "json"])
            .arg(folder.path().join("rank=*"))
            .arg(sql)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let ours = rows(&output.stdout);
        assert!(!ours.is_empty());
        for reader in ["duckdb", "polars"] {
            let theirs = theirs[reader][question].as_array().unwrap();
            assert_eq!(&ours, theirs, "{reader}: {question}");
        }
    }
}

/// Returns the values of each row of JSON in the order of the columns, which parsing into a map would lose.
fn rows(json: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(json).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| {
            let line = line.trim_end_matches(',').trim_matches(['{', '}']);
            // No text of these answers contains a comma or a colon.
            let values = line.split(',').map(|pair| {
                let (_, value) = pair.rsplit_once(':').unwrap();
                serde_json::from_str::<Value>(value).unwrap()
            });
            values.collect()
        })
        .collect()
}
