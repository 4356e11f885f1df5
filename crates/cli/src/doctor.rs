//! `gapscope doctor`: checks what can be recorded on this machine, and prints what is missing and how to get it.

pub mod check;
#[cfg(target_os = "linux")]
mod cuda;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod machine;
mod metal;
mod programs;
#[cfg(target_os = "linux")]
mod trial;
#[cfg(target_os = "linux")]
mod vulkan;

use crate::args::Doctor;
use crate::failure::Failure;
use crate::{exit, page};
use check::{Check, Examined, Group, State};
use gapscope_report::{Block, Document, Text, Tone};
use std::process::ExitCode;

/// Examines the machine and prints the result.
pub fn run(arguments: &Doctor) -> Result<ExitCode, Failure> {
    #[cfg(target_os = "linux")]
    if let (Some(probe), Some(answer)) = (arguments.probe, &arguments.answer) {
        return linux::probe(probe, answer);
    }
    let mut checks = metal::checks();
    #[cfg(target_os = "linux")]
    checks.splice(0..0, linux::checks());
    checks.extend(programs::checks());
    let examined = Examined::from_checks(checks);
    if arguments.json {
        page::write_json(&examined)?;
    } else {
        page::print(&document(&examined), &arguments.width)?;
    }
    Ok(exit::passed(examined.can_record))
}

/// The groups of checks in the order of the page, with their headings; the first three are what can be recorded.
const GROUPS: [(Group, &str); 5] = [
    (Group::Vulkan, "Vulkan"),
    (Group::Cuda, "CUDA"),
    (Group::Metal, "Metal"),
    (Group::Machine, "This machine"),
    (Group::Programs, "Beside gapscope"),
];

/// Returns the page: a verdict, then the checks of each group. Checks that were not asked share a line with their
/// reason.
fn document(examined: &Examined) -> Document {
    let mut blocks = vec![Block::Sentence(verdict(examined))];
    for (group, title) in GROUPS {
        let of_group: Vec<&Check> = (examined.checks.iter())
            .filter(|check| check.group == group)
            .collect();
        if of_group.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(title.to_owned(), String::new()));
        // A check that was skipped because of another check adds nothing of its own.
        let (unasked, told): (Vec<&Check>, Vec<&Check>) = (of_group.into_iter())
            .partition(|check| check.state == State::Unknown && check.mend.is_none());
        blocks.extend(told.iter().map(|check| Block::Item(item(check))));
        let mut reasons: Vec<&str> = Vec::new();
        for reason in unasked.iter().filter_map(|check| check.follows.as_deref()) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        for reason in reasons {
            let those = unasked
                .iter()
                .filter(|c| c.follows.as_deref() == Some(reason));
            let those: Vec<String> = those.map(|check| label(check)).collect();
            let text = Text::new().strong(those.join(", ")).and("  ");
            let text = text.with(Tone::Warning, State::Unknown.word());
            blocks.push(Block::Item(text.and(format!(": {reason}"))));
        }
    }
    Document { blocks }
}

/// Returns the sentence about which programs can be recorded.
fn verdict(examined: &Examined) -> Text {
    let records = |(group, _): &&(Group, &str)| examined.records(*group);
    let names: Vec<&str> = GROUPS[..3]
        .iter()
        .filter(records)
        .map(|(_, name)| *name)
        .collect();
    match names.as_slice() {
        [] => Text::new().with(
            Tone::Warning,
            "Nothing can be recorded here; what is missing is listed below.",
        ),
        names => Text::new().strong(format!(
            "{} programs can be recorded here.",
            names.join(" and ")
        )),
    }
}

/// Returns a check in one line: its name, its state, what was found, what follows, and what to do.
fn item(check: &Check) -> Text {
    let tone = match check.state {
        State::Ok => Tone::Good,
        _ => Tone::Warning,
    };
    let text = Text::new()
        .strong(label(check))
        .and("  ")
        .with(tone, check.state.word());
    let parts = [&check.found, &check.follows, &check.mend];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let ended = |part: &&str| match part.ends_with('.') {
        true => (*part).to_owned(),
        false => format!("{part}."),
    };
    match parts.as_slice() {
        [] => text,
        [found] => text.and(format!(": {found}")),
        parts => text.and(format!(
            ": {}",
            parts.iter().map(ended).collect::<Vec<_>>().join(" ")
        )),
    }
}

/// Returns the id in words, without its group.
fn label(check: &Check) -> String {
    let id = ["vulkan-", "cuda-", "metal-"]
        .iter()
        .find_map(|group| check.id.strip_prefix(group));
    id.unwrap_or(check.id).replace('-', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use check::Subject;
    use gapscope_report::Terminal;

    #[test]
    fn the_page_is_short_and_fits_80_columns() {
        let vulkan = |id| Subject::new(Group::Vulkan, id);
        let cuda = |id| Subject::new(Group::Cuda, id);
        let devices = "llvmpipe (Vulkan 1.4, llvmpipe Mesa 25.0.7-2 (LLVM 19.1.7)) and others";
        let examined = Examined::from_checks(vec![
            vulkan("vulkan-devices").ok(devices),
            vulkan("vulkan-layer").ok("/usr/lib/gapscope/libgapscope_vulkan.so"),
            cuda("cuda-driver").missing("no CUDA programs run here", "install NVIDIA's driver"),
            cuda("cuda-devices").unasked("the CUDA driver"),
            cuda("cuda-nvml").unasked("the CUDA driver"),
        ]);
        let page = Terminal::default().draw(&document(&examined));
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        insta::assert_snapshot!(page);
    }

    #[test]
    fn a_machine_that_records_nothing_says_so_first() {
        let driver = Subject::new(Group::Cuda, "cuda-driver");
        let examined = Examined::from_checks(vec![driver.unasked("the recording layer")]);
        let page = Terminal::default().draw(&document(&examined));
        assert!(page.contains("Nothing can be recorded here"), "{page}");
    }
}
