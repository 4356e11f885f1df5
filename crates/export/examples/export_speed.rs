//! Measures each export of a synthetic trace: `cargo run --release -p gapscope-export --example export_speed [--
//! DISPATCHES]`, by default with a million dispatches. Prints the seconds that each format takes, and for those of
//! one file its megabytes; the files are in a temporary folder, which is removed.

use gapscope_export::{Scene, chrome, csv, firefox, perfetto, speedscope};
use gapscope_trace::synthetic::Synthetic;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;
use std::time::Instant;

/// Calls `write` with a new file at `path`, and prints `name` with the time that it took and the size of the file.
fn timed(
    name: &str,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    write(&mut out)?;
    out.flush()?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = path.metadata()?.len();
    println!("{name:<11} {seconds:.2} s, {:.0} MB", bytes as f64 / 1e6);
    Ok(())
}

fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let dispatches = given
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let trace = Synthetic {
        dispatches,
        ..Synthetic::default()
    };
    let trace = trace.trace();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("export");
    println!("{dispatches} dispatches");
    let start = Instant::now();
    let scene = Scene::new(&trace);
    println!("scene       {:.2} s", start.elapsed().as_secs_f64());
    timed("perfetto", &path, |out| {
        perfetto::write(&scene, out).map(drop)
    })?;
    timed("chrome", &path, |out| chrome::write(&scene, out).map(drop))?;
    timed("firefox", &path, |out| {
        firefox::write(&scene, out).map(drop)
    })?;
    timed("speedscope", &path, |out| {
        speedscope::write(&scene, out).map(drop)
    })?;
    let start = Instant::now();
    csv::write(&trace, &folder.path().join("csv")).map_err(std::io::Error::other)?;
    println!("csv         {:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}
