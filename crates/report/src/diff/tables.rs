//! Makes the tables of a report on a comparison of runs: times, idle time by cause, kernels, counts. Each row is a
//! change: a figure before and after, with the chance that noise alone makes the difference.

use crate::document::{Block, Table, TableBuilder, Text, Tone};
use crate::section::{or_unknown, rest};
use gapscope_comparison::diff::{
    Change, ChangeKind, Diff, How, NotJudged, Unit, at_least, chance, change, interval, value,
};
use gapscope_timeline::quantity;
use std::collections::BTreeMap;

/// Makes the sections that have a table, each as a list of blocks; `top` limits the rows of causes and kernels.
pub(super) fn all(diff: &Diff, top: usize) -> Vec<Vec<Block>> {
    let each = match diff.equal_work.per_evaluation {
        true => "an evaluation",
        false => "a run",
    };
    let section = |title, what, kind, top| {
        section(
            title,
            &format!("of {each}"),
            what,
            &of_kind(diff, kind),
            top,
        )
    };
    let all = [
        section("Time", "time", ChangeKind::Time, usize::MAX),
        section("Idle time by cause", "cause", ChangeKind::Idle, top),
        kernels(diff, each, top),
        section("Counts and sizes", "figure", ChangeKind::Count, usize::MAX),
    ];
    all.into_iter()
        .filter(|blocks| !blocks.is_empty())
        .collect()
}

/// Returns the changes of a kind that are known on at least one side, and are not zero on both.
fn of_kind(diff: &Diff, kind: ChangeKind) -> Vec<&Change> {
    let known = |change: &&Change| {
        let some = change.before.is_some() || change.after.is_some();
        let nothing = change.before == Some(0.0) && change.after == Some(0.0);
        change.kind == kind && some && !nothing
    };
    diff.changes.iter().filter(known).collect()
}

/// Makes a section with the first `top` changes; `what` is the title of the first column.
fn section(title: &str, aside: &str, what: &str, changes: &[&Change], top: usize) -> Vec<Block> {
    if changes.is_empty() {
        return Vec::new();
    }
    let shown = &changes[..changes.len().min(top)];
    let table =
        Table::with_rows(shown).word(what, |change| change.what.trim_start_matches("idle: "));
    let mut blocks = with_figures(table).under(title, aside);
    rest(&mut blocks, changes.len(), shown.len(), "rows");
    blocks
}

/// Adds the columns of changes: before, after, change, interval and chance.
fn with_figures<'a>(table: TableBuilder<'a, &'a Change>) -> TableBuilder<'a, &'a Change> {
    let side = |of: &Change, value: Option<f64>, side: usize| {
        let absent = [How::OnlyAfter, How::OnlyBefore][side];
        match of.matched == Some(absent) && !of.at_least[side] {
            true => Text::new().faint("–"),
            false => value_of(value, of.unit, of.at_least[side]),
        }
    };
    table
        .number("before", |of| side(of, of.before, 0))
        .number("after", |of| side(of, of.after, 1))
        .number("change", |of| changed(of))
        .number("95 % of it", |of| match (of.ratio, of.low, of.high) {
            (Some(ratio), Some(low), Some(high)) if low != high => {
                Text::from(interval(ratio, low, high))
            }
            _ => Text::new(),
        })
        .spare(2)
        .number("p", |of| match (of.p_noise, of.significant) {
            (Some(0.0), _) => Text::from("certain"),
            (Some(p), true) => chance(p).into(),
            (Some(p), false) => Text::new().faint(chance(p)),
            (None, _) => Text::new(),
        })
        .spare(1)
}

/// Returns the change in words, faint where noise may have made it.
fn changed(of: &Change) -> Text {
    let tone = match (of.significant, of.grew()) {
        (false, _) => Tone::Faint,
        (true, true) => Tone::Warning,
        (true, false) => Tone::Good,
    };
    match (of.before, of.after, of.ratio) {
        _ if of.at_least != [false; 2] => Text::new().faint("unknown"),
        (Some(before), Some(after), _) if before == after => Text::new().faint("the same"),
        (Some(_), Some(_), Some(ratio)) => Text::new().with(tone, change(ratio)),
        (Some(_), Some(_), None) => Text::new().with(tone, "new"),
        _ => Text::new().faint("unknown"),
    }
}

/// Formats a value with its unit, which may be a lower bound.
pub(super) fn value_of(number: Option<f64>, unit: Unit, is_bound: bool) -> Text {
    or_unknown(number, |number| at_least(number, unit, is_bound))
}

/// Makes the section on kernels, `each` naming what counts are of: an evaluation or a run.
fn kernels(diff: &Diff, each: &str, top: usize) -> Vec<Block> {
    let changes = of_kind(diff, ChangeKind::Kernel);
    if changes.is_empty() {
        return Vec::new();
    }
    let significant = |change: &&&Change| change.significant || change.has_typical_change();
    let changed = changes.iter().filter(significant).count();
    // Significant changes come before large but noisy ones.
    let mut order: Vec<&Change> = changes.iter().filter(significant).copied().collect();
    order.extend(changes.iter().filter(|change| !significant(change)));
    let shown = &order[..order.len().min(top)];
    let table = Table::with_rows(shown)
        .name("kernel", |change| match change.significant {
            true => Text::new().strong(change.name.as_str()),
            false => Text::from(change.name.as_str()),
        })
        .number("count", |change| counts(change))
        .spare(3);
    let table = with_figures(table).notes("note", |change| {
        let of_name = changes.iter().filter(|other| other.name == change.name);
        note(change, of_name.count() > 1)
    });
    let mut reasons: BTreeMap<NotJudged, u64> = BTreeMap::new();
    let open = changes.iter().filter(|change| !significant(change));
    for reason in open.filter_map(|change| change.not_judged()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let all = changes.len() as u64;
    let aside = match all - reasons.values().sum::<u64>() {
        0 => format!("of {each}; whether they changed cannot be judged"),
        judged if judged < all => {
            format!("of {each}; {changed} of {judged} judged kernels changed")
        }
        _ => format!(
            "of {each}; {changed} of {} changed",
            quantity::count_of(all, "kernel", "kernels")
        ),
    };
    let mut blocks = table.under("Kernels", aside);
    rest(&mut blocks, changes.len(), shown.len(), "kernels");
    if !reasons.is_empty() {
        blocks.push(Block::Sentence(Text::new().faint(not_judged(&reasons))));
    }
    blocks
}

/// Says why kernels were not judged, with their number for each reason.
fn not_judged(reasons: &BTreeMap<NotJudged, u64>) -> String {
    let texts = reasons.iter().map(|(reason, count)| {
        let kernels = quantity::count_of(*count, "kernel", "kernels");
        match reason {
            NotJudged::Small => format!("{kernels} of less than 0.1 % of the GPU time"),
            NotJudged::Unknown => format!("{kernels} without known times on both sides"),
            NotJudged::Lost => {
                format!("{kernels} of which some may be among the work that was not recorded")
            }
            NotJudged::Noise => format!(
                "{kernels} that ran too rarely for one run a side to tell a change from noise"
            ),
        }
    });
    let texts: Vec<String> = texts.collect();
    format!("Not judged: {}.", texts.join("; "))
}

/// Returns how often a kernel ran, before and after.
fn counts(change: &Change) -> Text {
    match change.counts {
        Some([before, after]) if before == after => quantity::mean_count(before).into(),
        Some([before, after]) => format!(
            "{} → {}",
            quantity::mean_count(before),
            quantity::mean_count(after)
        )
        .into(),
        None => Text::new(),
    }
}

/// Returns a note on a kernel's change: how it was matched, or the change of a typical dispatch where only that is
/// significant. Where `several` rows have its name, the note begins with the kernel's label.
fn note(of: &Change, several: bool) -> Option<Text> {
    let typical = || {
        let typical = of.typical.as_ref();
        let typical = typical.filter(|typical| typical.significant && !of.significant)?;
        let (ratio, low, high) = (typical.ratio?, typical.low?, typical.high?);
        Some(format!(
            "a typical dispatch: {} → {}, {} (95 %: {}), p {}",
            value(typical.before?, Unit::Ns),
            value(typical.after?, Unit::Ns),
            change(ratio),
            interval(ratio, low, high),
            chance(typical.p_noise?)
        ))
    };
    let was = |how: &str| {
        let before = of.before_names.first()?;
        Some(format!("before: {before}, {how}"))
    };
    let said = match of.matched {
        Some(How::OnlyBefore | How::OnlyAfter) if of.at_least != [false; 2] => {
            Some("not in what was recorded of the other side".to_owned())
        }
        Some(How::OnlyBefore) => Some("only before".to_owned()),
        Some(How::OnlyAfter) => Some("only after".to_owned()),
        Some(How::Fused | How::Split) => Some(of.what.clone()),
        Some(How::SameCode) => was("the same code"),
        Some(How::Replaced) => was("whose place it took"),
        _ => typical(),
    };
    let label = several.then(|| match &of.label {
        Some(label) => format!("under {label}"),
        None => "outside of labels".to_owned(),
    });
    let notes: Vec<String> = label.into_iter().chain(said).collect();
    (!notes.is_empty()).then(|| Text::new().faint(notes.join("; ")))
}
