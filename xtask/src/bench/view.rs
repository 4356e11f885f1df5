//! Measures how soon `gapscope view` draws a trace, how quickly it draws again and how much memory its page takes,
//! beside Perfetto's page and speedscope on exports of the same trace.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::samples::Samples;
use crate::{clients, command, target, web};

/// The figures of one opening of a page, for the columns of [`table`]; `None` where one could not be measured.
#[derive(Deserialize)]
struct Figures {
    tool: String,
    dispatches: f64,
    first_s: Option<f64>,
    full_s: Option<f64>,
    draw_p50_ms: Option<f64>,
    draw_p95_ms: Option<f64>,
    frame_p95_ms: Option<f64>,
    page_bytes: Option<f64>,
    file_bytes: Option<f64>,
    failed: Option<String>,
}

/// The maximum number of repetitions, because the page opens quickly. The other tools are opened once each.
const MAX_REPETITIONS: u32 = 5;
/// The number of seconds after which another tool's opening of a trace is given up.
const LIMIT_S: u32 = 120;

/// Measures with a script of the page's folder, and returns the table.
pub fn measure(repetitions: u32) -> Result<String> {
    web::set_up()?;
    clients::ensure_all()?;
    command::run(&mut command::cargo_line(
        "build --release --package=gapscope-trace --example=synthetic",
    ))?;
    let folder = web::whole(&target(""))?;
    let file = folder.join("view.json");
    let mut vitest = Command::new("npx");
    vitest
        .args(["vitest", "run", "--config", "vitest.measure.config.ts"])
        .current_dir("web")
        .env("CARGO_TARGET_DIR", &folder)
        .env("GAPSCOPE_PROFILE", "release")
        .env("GAPSCOPE_MEASURED", &file)
        .env("GAPSCOPE_LIMIT_S", LIMIT_S.to_string())
        .env(
            "GAPSCOPE_REPETITIONS",
            repetitions.min(MAX_REPETITIONS).to_string(),
        );
    if let Some(browser) = web::browser() {
        vitest.env("CHROMIUM", browser);
    }
    let before = load();
    command::run(&mut vitest)?;
    let after = load();
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let figures: Vec<Figures> =
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(format!(
        "Load average of the machine over one minute {before} at the start and {after} at the end, with what was measured itself; \
         {} repetitions of `gapscope view`, the others once each, with at most {LIMIT_S} s to open a trace.\n\n{}",
        repetitions.min(MAX_REPETITIONS),
        table(&figures)
    ))
}

/// Returns the load average of the machine over one minute.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Returns the table with a row for each tool and size; repetitions are in one row.
fn table(figures: &[Figures]) -> String {
    let mut text = String::from(
        "| dispatches | | first drawing, s | all work drawn, s | a drawing while zooming, p50 / p95, ms | frame to frame, p95, ms | page, MB | file, MB |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut shown: Vec<(&str, f64)> = Vec::new();
    for one in figures {
        let key = (one.tool.as_str(), one.dispatches);
        if shown.contains(&key) {
            continue;
        }
        shown.push(key);
        let same: Vec<&Figures> = figures
            .iter()
            .filter(|other| (other.tool.as_str(), other.dispatches) == key)
            .collect();
        let cell = |value: fn(&Figures) -> Option<f64>, unit: f64, digits| {
            cell(&same, value, unit, digits)
        };
        let draws = match cell(|one| one.draw_p95_ms, 1.0, 1).as_str() {
            "—" => "—".to_owned(),
            p95 => format!("{} / {p95}", cell(|one| one.draw_p50_ms, 1.0, 1)),
        };
        let _ = writeln!(
            text,
            "| 10^{:.0} | {}{} | {} | {} | {draws} | {} | {} | {} |",
            one.dispatches.log10(),
            one.tool,
            one.failed
                .as_ref()
                .map_or(String::new(), |reason| format!(": {reason}")),
            cell(|one| one.first_s, 1.0, 2),
            cell(|one| one.full_s, 1.0, 2),
            cell(|one| one.frame_p95_ms, 1.0, 0),
            cell(|one| one.page_bytes, 1e-6, 0),
            cell(|one| one.file_bytes, 1e-6, 0),
        );
    }
    text
}

/// Returns the median of a figure, with the range if there are several values.
fn cell(
    figures: &[&Figures],
    value: fn(&Figures) -> Option<f64>,
    unit: f64,
    digits: usize,
) -> String {
    let mut samples = Samples::default();
    let known: Vec<f64> = figures.iter().filter_map(|one| value(one)).collect();
    for value in &known {
        samples.push(value * unit);
    }
    match known.len() {
        0 => "—".to_owned(),
        1 => format!("{:.digits$}", samples.median()),
        _ => samples.shown(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, table};

    fn figures(tool: &str, first_s: Option<f64>) -> Figures {
        Figures {
            tool: tool.into(),
            dispatches: 1e6,
            first_s,
            full_s: first_s,
            draw_p50_ms: None,
            draw_p95_ms: None,
            frame_p95_ms: Some(16.6),
            page_bytes: Some(2.5e8),
            file_bytes: None,
            failed: None,
        }
    }

    #[test]
    fn repetitions_become_one_row_and_what_is_unknown_a_dash() {
        let rows = table(&[
            figures("ours", Some(0.5)),
            figures("ours", Some(0.7)),
            figures("other", None),
        ]);
        assert!(
            rows.contains("| 10^6 | ours | 0.60 (0.50–0.70) |"),
            "{rows}"
        );
        assert!(
            rows.contains("| 10^6 | other | — | — | — | 17 | 250 | — |"),
            "{rows}"
        );
        assert_eq!(rows.lines().count(), 4);
    }
}
