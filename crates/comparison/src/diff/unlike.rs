//! Finds what makes two sides of a comparison differ besides the program: another machine or driver, flaws (what was
//! lost, or disturbed a run), and runs that did not take turns.

use super::estimate::Design;
use super::result::Flaw;
use super::run::{Machine, RunDigest};
use super::run_environment;
use gapscope_timeline::quantity;
use std::collections::BTreeSet;

/// The maximum number of flaws of a side that are listed.
const MAX_LISTED_FLAWS: usize = 4;

/// Returns sentences on what differs between the sides besides the program; `design` says how the runs were made.
pub(super) fn unlike(before: &[RunDigest], after: &[RunDigest], design: &Design) -> Vec<String> {
    let mut sentences = Vec::from_iter(commands(before, after));
    sentences.extend(machines(before, after));
    sentences.extend(compared(
        before,
        after,
        "The versions of gapscope that recorded",
        &|m| m.versions.clone(),
    ));
    sentences.extend(run_environment::differences(before, after));
    let sides = [("Before", "before", before), ("After", "after", after)];
    for ((side, key, runs), others) in sides.into_iter().zip([after, before]) {
        // What both sides lost alike does not tell them apart.
        let of_others = flaws(others);
        let mut flaws = flaws(runs);
        flaws.retain(|flaw| flaw.run.is_some() || !of_others.contains(flaw));
        let left = flaws.len().saturating_sub(MAX_LISTED_FLAWS);
        let told = flaws.into_iter().take(MAX_LISTED_FLAWS);
        sentences.extend(told.map(|flaw| match flaw.run {
            None => format!("{side}: {}", flaw.sentence),
            Some(run) => format!("{side} ({run}): {}", flaw.sentence),
        }));
        if left > 0 {
            sentences.push(format!(
                "{side}: {} more of the kind; `--json` has them all, as `{key}.flaws`.",
                quantity::count(left as u64)
            ));
        }
    }
    if before.len() > 1 && after.len() > 1 && design.turns.is_none() {
        sentences.extend(apart(before, after));
    }
    sentences
}

/// Returns a sentence if each side ran one command, and not the same.
fn commands(before: &[RunDigest], after: &[RunDigest]) -> Option<String> {
    let only = |runs: &[RunDigest]| {
        let (first, others) = runs.split_first()?;
        let is_one = others.iter().all(|run| run.command == first.command);
        (is_one && !first.command.is_empty()).then(|| first.command.clone())
    };
    let (first, second) = (only(before)?, only(after)?);
    (first != second).then(|| format!("The commands differ: `{first}` before, `{second}` after."))
}

/// Returns why figures of some runs are not of the whole run, or not of the run alone.
pub(super) fn flaws(runs: &[RunDigest]) -> Vec<Flaw> {
    let several = runs.len() > 1;
    let flaws_of = |run: &RunDigest| {
        let run_name = several.then(|| run.name.clone());
        let flaws = run.flaws.iter().map(move |sentence| Flaw {
            run: run_name.clone(),
            sentence: sentence.clone(),
        });
        flaws.collect::<Vec<_>>()
    };
    runs.iter().flat_map(flaws_of).collect()
}

/// Returns in sentences why the times of both sides are not of the same kind of machine: its GPUs, their drivers and
/// clocks, the system and processor, how GPUs were sampled, and ranks.
pub fn unlike_machines(before: &[RunDigest], after: &[RunDigest]) -> Vec<String> {
    machines(before, after)
}

/// Returns a property of a machine as a set of texts.
type Property<'a> = &'a dyn Fn(&Machine) -> BTreeSet<String>;

/// Returns a sentence for each property of the machines that is not the same.
fn machines(before: &[RunDigest], after: &[RunDigest]) -> Vec<String> {
    let kinds: [(&str, Property<'_>); 7] = [
        ("The GPUs", &|m| m.devices.iter().cloned().collect()),
        ("The drivers", &|m| m.drivers.clone()),
        ("The machines", &|m| m.host.clone()),
        ("The sampling modes", &|m| {
            m.sampling.iter().map(|s| (*s).to_owned()).collect()
        }),
        ("The clocks' limits of the GPUs", &|m| {
            m.clocks
                .iter()
                .map(|khz| format!("{} MHz", khz / 1000))
                .collect()
        }),
        ("The numbers of ranks", &|m| {
            BTreeSet::from([m.ranks.to_string()])
        }),
        ("The numbers of GPUs", &|m| {
            BTreeSet::from([m.devices.len().to_string()])
        }),
    ];
    let mut sentences: Vec<String> = kinds
        .into_iter()
        .filter_map(|(what, of)| compared(before, after, what, of))
        .collect();
    let mut runs = before.iter().chain(after);
    if runs.all(|run| !run.machine.interfaces.is_empty()) {
        let interfaces: Property = &|m| m.interfaces.clone();
        sentences.extend(compared(
            before,
            after,
            "The interfaces to the GPUs",
            interfaces,
        ));
    }
    sentences
}

/// Returns a sentence if a property differs between the sides, or else among the runs (except the names of GPUs).
fn compared(
    before: &[RunDigest],
    after: &[RunDigest],
    what: &str,
    of: Property<'_>,
) -> Option<String> {
    let all = |runs: &[RunDigest]| -> BTreeSet<String> {
        runs.iter().flat_map(|run| of(&run.machine)).collect()
    };
    let (first, second) = (all(before), all(after));
    let text = |set: &BTreeSet<String>| match set.len() {
        0 => "not known".to_owned(),
        _ => set.iter().cloned().collect::<Vec<_>>().join("; "),
    };
    if first != second {
        return Some(format!(
            "{what} differ: {} before, {} after.",
            text(&first),
            text(&second)
        ));
    }
    (first.len() > 1 && what != "The GPUs")
        .then(|| format!("{what} differ among the runs of a side: {}.", text(&first)))
}

/// Returns a sentence that all runs of one side came first, where they did.
fn apart(before: &[RunDigest], after: &[RunDigest]) -> Option<String> {
    let times = |runs: &[RunDigest]| -> Option<Vec<i64>> {
        runs.iter().map(|run| run.started_unix_ns).collect()
    };
    let (first, second) = (times(before)?, times(after)?);
    let order = match (
        first.iter().max() < second.iter().min(),
        second.iter().max() < first.iter().min(),
    ) {
        (true, _) => "before those after",
        (_, true) => "after those after",
        _ => return None,
    };
    Some(format!(
        "All runs before were recorded {order}: what changed on the machine meanwhile is in every difference. Runs that take turns \
         (`gapscope diff --runs`) are free of it."
    ))
}
