//! Makes the tables of a report on a comparison of runs.

use crate::document::{Block, Column, Row, Table, Text, Tone};
use crate::section::{or_unknown, rest};
use gapscope_comparison::diff::{
    Change, ChangeKind, Diff, How, Unit, chance, change, interval, value,
};
use gapscope_timeline::quantity;

/// Makes the sections that have a table.
pub(super) fn all(diff: &Diff, top: usize) -> Vec<Vec<Block>> {
    let each = match diff.equal_work.per_evaluation {
        true => "an evaluation",
        false => "a run",
    };
    let times = of_kinds(diff, &[ChangeKind::Time]);
    let idle = of_kinds(diff, &[ChangeKind::Idle]);
    let counts = of_kinds(diff, &[ChangeKind::Count]);
    [
        section("Time", &format!("of {each}"), "time", &times, usize::MAX),
        section(
            "Idle time by cause",
            &format!("of {each}"),
            "cause",
            &idle,
            top,
        ),
        kernels(diff, each, top),
        section(
            "Counts and sizes",
            &format!("of {each}"),
            "figure",
            &counts,
            usize::MAX,
        ),
    ]
    .into_iter()
    .filter(|blocks| !blocks.is_empty())
    .collect()
}

/// Returns the changes of the given kinds that are known on at least one side.
fn of_kinds<'a>(diff: &'a Diff, kinds: &[ChangeKind]) -> Vec<&'a Change> {
    let known = |change: &&Change| {
        let some = change.before.is_some() || change.after.is_some();
        let nothing = change.before == Some(0.0) && change.after == Some(0.0);
        kinds.contains(&change.kind) && some && !nothing
    };
    diff.changes.iter().filter(known).collect()
}

fn section(title: &str, aside: &str, what: &str, changes: &[&Change], top: usize) -> Vec<Block> {
    if changes.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::word(what),
        Column::number("before"),
        Column::number("after"),
        Column::number("change"),
        Column::number("95 % of it").spare(2),
        Column::number("p").spare(1),
    ]);
    let shown = &changes[..changes.len().min(top)];
    for change in shown {
        let name = change.what.trim_start_matches("idle: ");
        table.rows.push(Row {
            cells: [vec![Text::from(name)], figures(change)].concat(),
            note: None,
        });
    }
    let mut blocks = vec![
        Block::Heading(title.into(), aside.into()),
        Block::Table(table),
    ];
    rest(&mut blocks, changes.len(), shown.len(), "rows");
    blocks
}

/// Returns the cells of a change: before, after, change, interval and chance.
fn figures(of: &Change) -> Vec<Text> {
    let tone = match (of.significant, of.grew()) {
        (false, _) => Tone::Faint,
        (true, true) => Tone::Warning,
        (true, false) => Tone::Good,
    };
    let changed = match (of.before, of.after, of.ratio) {
        (Some(before), Some(after), _) if before == after => Text::new().faint("the same"),
        (Some(_), Some(_), Some(ratio)) => Text::new().with(tone, change(ratio)),
        (Some(_), Some(_), None) => Text::new().with(tone, "new"),
        _ => Text::new().faint("unknown"),
    };
    let range = match (of.ratio, of.low, of.high) {
        (Some(ratio), Some(low), Some(high)) if low != high => {
            Text::from(interval(ratio, low, high))
        }
        _ => Text::new(),
    };
    let p = match (of.p_noise, of.significant) {
        (Some(0.0), _) => Text::from("certain"),
        (Some(p), true) => chance(p).into(),
        (Some(p), false) => Text::new().faint(chance(p)),
        (None, _) => Text::new(),
    };
    let side = |value: Option<f64>, absent: How| match of.matched == Some(absent) {
        true => Text::new().faint("–"),
        false => value_of(value, of.unit),
    };
    vec![
        side(of.before, How::OnlyAfter),
        side(of.after, How::OnlyBefore),
        changed,
        range,
        p,
    ]
}

/// Formats a value with its unit.
pub(super) fn value_of(number: Option<f64>, unit: Unit) -> Text {
    or_unknown(number, |number| value(number, unit))
}

fn kernels(diff: &Diff, each: &str, top: usize) -> Vec<Block> {
    let changes = of_kinds(diff, &[ChangeKind::Kernel]);
    if changes.is_empty() {
        return Vec::new();
    }
    let significant = |change: &&&Change| {
        change.significant
            || change
                .typical
                .as_ref()
                .is_some_and(|typical| typical.significant)
    };
    let changed = changes.iter().filter(significant).count();
    let mut columns = vec![Column::name("kernel")];
    columns.extend([
        Column::number("count").spare(3),
        Column::number("before"),
        Column::number("after"),
        Column::number("change"),
        Column::number("95 % of it").spare(2),
        Column::number("p").spare(1),
    ]);
    let mut table = Table::new(columns);
    table.note_title = "note".to_owned();
    // Significant changes come before large but noisy ones.
    let mut order: Vec<&&Change> = changes.iter().filter(significant).collect();
    order.extend(changes.iter().filter(|change| !significant(change)));
    let shown = &order[..order.len().min(top)];
    for change in shown {
        let name = match change.significant {
            true => Text::new().strong(change.name.as_str()),
            false => Text::from(change.name.as_str()),
        };
        let mut cells = vec![name, counts(change)];
        cells.extend(figures(change));
        let several = changes
            .iter()
            .filter(|other| other.name == change.name)
            .count()
            > 1;
        table.rows.push(Row {
            cells,
            note: note(change, several),
        });
    }
    let aside = format!(
        "of {each}; {changed} of {} changed",
        quantity::count_of(changes.len() as u64, "kernel", "kernels")
    );
    let mut blocks = vec![Block::Heading("Kernels".into(), aside), Block::Table(table)];
    rest(&mut blocks, changes.len(), shown.len(), "kernels");
    blocks
}

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

/// Returns a note on a kernel's change, with the kernel's label where several have its name.
fn note(of: &Change, several: bool) -> Option<Text> {
    let typical = || {
        let typical = of
            .typical
            .as_ref()
            .filter(|typical| typical.significant && !of.significant)?;
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
    let said = match of.matched {
        Some(How::OnlyBefore) => Some("only before".to_owned()),
        Some(How::OnlyAfter) => Some("only after".to_owned()),
        Some(How::Fused | How::Split) => Some(of.what.clone()),
        _ => typical(),
    };
    let label = of
        .label
        .as_ref()
        .filter(|_| several)
        .map(|label| format!("under {label}"));
    let notes: Vec<String> = label.into_iter().chain(said).collect();
    (!notes.is_empty()).then(|| Text::new().faint(notes.join("; ")))
}
