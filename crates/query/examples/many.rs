//! Measures queries over many traces: `cargo run --release -p gapscope-query --example many [-- TRACES DISPATCHES]`.
//! It prints the seconds of each query, and with the environment variable `SHOW` its answer.
//!
//! One trace is generated, and its files are hard-linked into the other folders, so that a thousand traces need
//! little disk space; each is read like any other.
#![forbid(unsafe_code)]

use gapscope_query::{Format, Session, Traces, saved};
use gapscope_trace::synthetic::Synthetic;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Queries besides the saved ones.
const QUERIES: [(&str, &str); 4] = [
    ("count", "select count(*) from dispatches"),
    (
        "the slowest",
        "select trace, kernel_name, duration_ns from dispatches order by duration_ns desc limit 3",
    ),
    (
        "one rank",
        "select count(*), max(duration_ns) from dispatches where rank = 7",
    ),
    (
        "waiting for the device",
        "select avg(c.start_ns - s.start_ns - s.duration_ns) from command_buffers c join submissions s on s.trace = c.trace and s.id = c.submission",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let traces = given.next().unwrap_or(Ok(1000))?;
    let dispatches = given.next().unwrap_or(Ok(200_000))?;
    let folder = tempfile::tempdir()?;
    let first = folder.path().join("rank=0");
    let of = Synthetic {
        dispatches,
        ..Synthetic::default()
    };
    of.write(&first)?;
    for rank in 1..traces {
        link(&first, &folder.path().join(format!("rank={rank}")))?;
    }
    println!("{traces} traces of {dispatches} dispatches");
    let queries = QUERIES.map(|(name, sql)| (name, Some(sql)));
    let saved = saved::ALL.map(|saved| (saved.name, None));
    for (name, sql) in queries.into_iter().chain(saved) {
        let start = Instant::now();
        // Each measurement opens a new session, as the command does.
        let found = Traces::open(&[folder.path().join("rank=*").into()])?;
        let session = Session::new(found)?;
        let sql = match sql {
            Some(sql) => sql.to_owned(),
            None => session.saved(name)?,
        };
        let mut out = Vec::new();
        session.run(&sql, Format::Csv, &mut out)?;
        println!("{:>6.2} s  {name}", start.elapsed().as_secs_f64());
        if std::env::var_os("SHOW").is_some() {
            println!("{}", String::from_utf8_lossy(&out));
        }
        assert!(session.take_remarks().is_empty());
    }
    if let Some(line) = peak() {
        println!("peak of memory: {line}");
    }
    Ok(())
}

/// Makes the folder `to` with hard links to the files of the folder `from`.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::hard_link(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Returns the greatest memory that the process has had.
fn peak() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
