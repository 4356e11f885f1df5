//! `cargo xtask bench`: measures the recorder's cost, with and without it side by side, and writes the tables of
//! `docs/performance.md`.
//!
//! The variants of a program take turns, repetition by repetition, so that other activity of the machine affects
//! all of them alike. A figure is the median of the repetitions with their range.

mod capture;
mod diff;
mod disk;
mod dispatch;
mod exit;
mod machine;
mod page;
mod peak;
mod real;
mod rivals;
mod runs;
mod samples;
mod slow_down;
mod view;

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;

use crate::{clients, command, vulkan};
use page::Page;

#[derive(Args)]
pub struct Options {
    /// Repetitions of each variant
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Only these parts: dispatch, slow-down, capture, disk, exit, view, rivals, real, diff. The others keep their tables
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// A part of the page: its name, and the function that measures it with a number of repetitions and returns its
/// text.
type PagePart = (&'static str, fn(u32) -> Result<String>);

const PARTS: [PagePart; 9] = [
    ("dispatch", dispatch::measure),
    ("slow-down", slow_down::measure),
    ("capture", capture::measure),
    ("disk", disk::measure),
    ("exit", exit::measure),
    ("view", view::measure),
    ("rivals", rivals::measure),
    ("real", real::measure),
    ("diff", diff::measure),
];

/// Builds everything, measures the wanted parts, and replaces their tables on the page.
pub fn run(options: &Options) -> Result<()> {
    for name in &options.only {
        if !PARTS.iter().any(|(part, _)| part == name) {
            bail!(
                "there is no part {name}: the parts are dispatch, slow-down, capture, disk, exit, view, rivals, real and diff"
            );
        }
    }
    vulkan::ensure_test_drivers()?;
    clients::ensure_all()?;
    command::run(&mut command::cargo_line(
        "build --release --package=gapscope --package=gapscope-vulkan --package=gapscope-vulkan-capture \
         --package=fusion --package=planted --package=fake-vulkan-driver",
    ))?;
    let mut page = Page::open(Path::new("docs/performance.md"))?;
    for (name, measure) in PARTS {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            eprintln!("measuring {name}");
            let table = measure(options.repetitions)?;
            println!("{table}");
            page.replace(
                name,
                &format!("{}\n\n{table}", machine::conditions(options.repetitions)),
            )?;
        }
    }
    page.write()
}
