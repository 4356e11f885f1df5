//! Tests that the faults planted in a made-up recording of many ranks are found by the report, by SQL and by
//! another query engine.

use std::fs;
use std::process::Command;

use gapscope_trace::synthetic::Fleet;
use serde_json::Value;

use crate::recording::{Run, words};
use crate::{client, product};

/// Returns the query that `docs/fleet.md` shows for any engine.
fn portable() -> String {
    let page = fs::read_to_string(product::source("../../docs/fleet.md")).expect("the page");
    let (_, rest) = page.split_once("```sql\n").expect("a query");
    let (sql, _) = rest.split_once("```").expect("its end");
    sql.trim().trim_end_matches(';').to_owned()
}

fn rank_of(row: &Value) -> u64 {
    row["rank"].as_u64().expect("a rank")
}

#[test]
fn what_was_planted_is_found_by_report_and_queries() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    let fleet = Fleet {
        ranks: 48,
        slow_machine: Some(2),
        slow_kernel: Some(40),
        late_host: Some(5),
        ..Fleet::default()
    };
    fleet.write(&runs).expect("it is written");
    let gapscope = |arguments: &[&str]| {
        let mut command = Command::new(product::built("gapscope"));
        Run::from_command(command.args(arguments).current_dir(folder.path()))
            .ok()
            .stdout
    };
    let report: Value =
        serde_json::from_str(&gapscope(&["report", "--json", "runs"])).expect("JSON");
    let outliers = report["outliers"].as_array().expect("outliers");
    let found = |what: &str, ranks: Value| {
        outliers
            .iter()
            .find(|one| one["what"] == what && one["ranks"] == ranks)
    };
    let machine = serde_json::json!([16, 17, 18, 19, 20, 21, 22, 23]);
    let slow = found("computes", machine).unwrap_or_else(|| panic!("{outliers:#?}"));
    assert_eq!(slow["machine"], "machine-2");
    let ratio = slow["ratio"].as_f64().expect("a ratio");
    assert!((1.07..1.09).contains(&ratio), "{ratio}");
    let kernel = found("kernel", serde_json::json!([40])).expect("the slow kernel");
    assert_eq!(kernel["kernel"], "softmax");
    assert!(
        found("idles", serde_json::json!([5])).is_some(),
        "{outliers:#?}"
    );
    // Ranks without a planted fault are not named.
    let planted = [5, 16, 17, 18, 19, 20, 21, 22, 23, 40];
    for rank in outliers
        .iter()
        .flat_map(|one| one["ranks"].as_array().expect("ranks"))
    {
        assert!(
            planted.contains(&rank.as_i64().expect("a rank")),
            "{outliers:#?}"
        );
    }
    // The report stays short, whatever the number of ranks.
    let page = gapscope(&["report", "--full", "runs"]);
    assert!(page.lines().count() < 70, "{page}");
    assert!(
        page.contains("38 ranks more") || page.contains("38 more"),
        "{page}"
    );

    let saved = words("query --saved slow-ranks --format json runs/rank=*");
    let saved: Value = serde_json::from_str(&gapscope(&saved)).expect("JSON");
    assert_eq!(
        (rank_of(&saved[0]), &saved[0]["kernel"]),
        (40, &Value::from("softmax"))
    );
    for row in 1..9 {
        assert!((16..24).contains(&rank_of(&saved[row])), "{}", saved[row]);
        assert_eq!(saved[row]["kernel"], "gemm");
    }
    let sql = portable();
    let ours = gapscope(&["query", "--format", "json", "runs/rank=*", &sql]);
    let ours: Value = serde_json::from_str(&ours).expect("JSON");
    let Some([python, script]) = client::script("readers") else {
        return;
    };
    let mut command = Command::new(python);
    command
        .arg(script.with_file_name("fleet.py"))
        .arg(&runs)
        .arg(&sql);
    let theirs: Value =
        serde_json::from_str(&Run::from_command(&mut command).ok().stdout).expect("JSON");
    let (ours, theirs) = (
        ours.as_array().expect("rows"),
        theirs.as_array().expect("rows"),
    );
    assert_eq!(ours.len(), theirs.len());
    assert!(!ours.is_empty());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(rank_of(ours), rank_of(theirs), "{ours} {theirs}");
        assert_eq!(ours["kernel"], theirs["kernel"]);
        let [a, b] = [ours, theirs].map(|row| row["behind_ms"].as_f64().expect("a time"));
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}
