//! Measures how much longer whole programs take when they are recorded. A variant is a way to run a program: without
//! the layer that records, or in one of the modes of recording.

use std::time::Instant;

use anyhow::{Context, Result};

use super::runs::{self, Driver, VARIANTS, Variant, built, command, last_line, number};
use super::samples::Samples;
use crate::command::output;

/// A program, and the function that reads from its output how many seconds its work took.
pub struct Work {
    pub name: &'static str,
    pub command: Vec<String>,
    pub seconds: fn(&str) -> Result<f64>,
}

/// Returns the table in Markdown, with a row for each program and variant.
pub fn measure(repetitions: u32) -> Result<String> {
    let mut table = String::from(
        "| program | | its work, s | longer than without the layer, % | whole command, s |\n|---|---|---|---|---|\n",
    );
    for work in works()? {
        table += &rows(&work, repetitions)?;
    }
    Ok(table)
}

/// Returns the rows of one program, whose variants take turns.
fn rows(work: &Work, repetitions: u32) -> Result<String> {
    // A first run is not measured, so that the driver has compiled the kernels.
    output(&mut command(
        Variant::Alone,
        Driver::Lavapipe,
        &work.command,
    )?)?;
    let mut inside = VARIANTS.map(|_| Samples::default());
    let mut whole = VARIANTS.map(|_| Samples::default());
    for _ in 0..repetitions {
        for (at, variant) in VARIANTS.into_iter().enumerate() {
            let mut command = command(variant, Driver::Lavapipe, &work.command)?;
            let start = Instant::now();
            let stdout = output(&mut command)?;
            whole[at].push(start.elapsed().as_secs_f64());
            inside[at].push((work.seconds)(&stdout)?);
        }
    }
    let mut rows = String::new();
    for (at, variant) in VARIANTS.into_iter().enumerate() {
        let over = inside[at].percent_over(&inside[0]);
        let over = if at == 0 { "—".into() } else { over.shown(1) };
        let (inside, whole) = (inside[at].shown(3), whole[at].shown(2));
        rows += &format!(
            "| {} | {} | {inside} | {over} | {whole} |\n",
            work.name,
            variant.name()
        );
    }
    Ok(rows)
}

/// Returns the measured programs, those that are installed.
pub fn works() -> Result<Vec<Work>> {
    let mut works = vec![Work {
        name: "`fusion`",
        command: vec![
            built("fusion")?.to_string_lossy().into_owned(),
            "--iterations".into(),
            "100".into(),
        ],
        seconds: fusion_seconds,
    }];
    for (client, name, amount) in [
        ("llama", "llama.cpp, 256 tokens", "256"),
        ("ncnn", "ncnn, waifu2x 20 times", "20"),
    ] {
        works.extend(runs::client(client, amount)?.map(|command| Work {
            name,
            command,
            seconds: |stdout| number(&last_line(stdout)?, "seconds"),
        }));
    }
    Ok(works)
}

/// Returns the sum of `Eager Time: 1.2345s` and `Compiled Time: …` in the output.
fn fusion_seconds(stdout: &str) -> Result<f64> {
    let times = stdout.lines().filter_map(|line| line.split_once(" Time: "));
    let mut total = 0.0;
    for (_, time) in times {
        total += time
            .trim_end_matches('s')
            .parse::<f64>()
            .with_context(|| format!("cannot read {time}"))?;
    }
    Ok(total)
}
