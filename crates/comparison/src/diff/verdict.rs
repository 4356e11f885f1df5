//! Writes the verdict of a comparison of runs and its sentence: the changes of figures and kernels go in.

use super::change::{Change, ChangeKind};
use super::matching::How;
use super::metric::Metric;
use super::result::{Diff, Verdict};
use super::words::{FACTOR_FROM, change, could_show, factor, interval, unknown_sides, value};
use gapscope_timeline::quantity;
use gapscope_timeline::thresholds::HOPELESS_FACTOR;

/// The maximum number of reasons that the verdict names.
const MAX_REASONS: usize = 3;
/// The least share of the greatest change that makes another change a reason.
const MIN_REASON_SHARE: f64 = 0.1;
/// The share of a change from which on something that was not tested by itself is told as its reason.
const MIN_CAUSE_SHARE: f64 = 0.5;
/// The share of the busy time that kernels and transfers may lack.
const MAX_LACKING_SHARE: f64 = 0.01;

/// Returns the verdict of a comparison, then its sentence.
pub(super) fn verdict(diff: &Diff) -> (Verdict, String) {
    let (wall, gpu) = (
        figure(diff, Metric::WallTime),
        figure(diff, Metric::GpuTime),
    );
    let known = |change: Option<&Change>| change.is_some_and(|change| change.ratio.is_some());
    if !known(wall) && !known(gpu) {
        return (Verdict::Unknown, incomparable(diff, wall));
    }
    let told = [wall, gpu]
        .into_iter()
        .flatten()
        .find(|change| change.significant);
    let reasons = reasons(diff);
    let all = wall.or(gpu).map_or_else(String::new, unclear);
    let mut sentence = String::new();
    match diff.equal_work.equal {
        Some(false) => sentence.push_str("The work is not equal. "),
        None if diff.equal_work.in_doubt => sentence.push_str("The work may not be equal. "),
        _ => {}
    }
    let verdict = match told {
        Some(change) => {
            let is_wall = change.name == Metric::WallTime.key();
            sentence.push_str(&headline(change));
            sentence.push_str(match (is_wall, diff.equal_work.per_evaluation) {
                (true, true) => " from start to end an evaluation",
                (true, false) => " from start to end",
                (false, true) => " of GPU time an evaluation",
                (false, false) => " of GPU time",
            });
            if !is_wall {
                sentence.push_str(&format!("; from start to end {all}"));
            }
            match change.grew() {
                true => Verdict::Slower,
                false => Verdict::Faster,
            }
        }
        None if reasons.is_empty() => {
            sentence.push_str(&format!("From start to end {all}"));
            match diff.equal_work.equal {
                Some(false) => Verdict::Changed,
                _ => Verdict::NoDifference,
            }
        }
        None => {
            sentence.push_str(&format!(
                "From start to end {all}, but there are changes within"
            ));
            Verdict::Changed
        }
    };
    if !reasons.is_empty() {
        sentence.push_str(&format!(": {}", reasons.join(", ")));
    }
    if verdict != Verdict::NoDifference {
        for text in unchanged(diff) {
            sentence.push_str(&format!("; {text}"));
        }
    }
    sentence.push('.');
    if told.is_some() && diff.equal_work.sizes_unknown {
        sentence.push_str(&format!(
            " How much each {} did is not known: less work would look the same.",
            diff.words.dispatch.one
        ));
    }
    (verdict, sentence)
}

/// Returns the sentence on sides whose times cannot be compared.
fn incomparable(diff: &Diff, wall: Option<&Change>) -> String {
    match diff.equal_work.is_empty {
        [true, true] => "Neither side has any GPU work: there is nothing to compare.".to_owned(),
        [true, false] => "There is no GPU work before: times cannot be compared.".to_owned(),
        [false, true] => "There is no GPU work after: times cannot be compared.".to_owned(),
        [false, false] => {
            let figures = [
                wall.and_then(|wall| wall.before),
                wall.and_then(|wall| wall.after),
            ];
            format!(
                "Times of GPU work are not known {}: only counts can be compared.",
                unknown_sides(figures)
            )
        }
    }
}

/// Says of a figure that noise may have changed what is known: its interval, and the least change that would have been told.
fn unclear(change: &Change) -> String {
    let ends = change.low.zip(change.high).zip(change.ratio);
    match ends.zip(change.least_ratio_told) {
        Some(_) if is_likely(change) => {
            format!("{}, which is likely and not certain", headline(change))
        }
        Some((_, least)) if least >= HOPELESS_FACTOR => {
            format!(
                "the two sides could not be told apart ({})",
                could_show(least)
            )
        }
        Some((((low, high), ratio), least)) => format!(
            "the two sides could not be told apart ({}; {})",
            interval(ratio, low, high),
            could_show(least)
        ),
        None => {
            "the two sides could not be told apart (how much runs vary is not known)".to_owned()
        }
    }
}

/// Returns true for a change that is not told, as one in so many may be noise, although its own interval is off 1.
fn is_likely(change: &Change) -> bool {
    !change.significant
        && (change.low.zip(change.high)).is_some_and(|(low, high)| low > 1.0 || high < 1.0)
}

/// Formats the change of the verdict, such as `12.3 % slower (10.9 … 13.8 %)`.
fn headline(change: &Change) -> String {
    let (Some(ratio), Some(low), Some(high)) = (change.ratio, change.low, change.high) else {
        return String::new();
    };
    if ratio >= FACTOR_FROM {
        return format!(
            "{} as long ({} … {})",
            factor(ratio),
            factor(low).trim_end_matches(" ×"),
            factor(high)
        );
    }
    if ratio <= 1.0 / FACTOR_FROM {
        let [by, least, most] = [ratio, high, low].map(|ratio| factor(1.0 / ratio));
        return format!("{by} as fast ({} … {most})", least.trim_end_matches(" ×"));
    }
    let slower = ratio > 1.0;
    let percent = |ratio: f64| {
        let by = if slower { ratio - 1.0 } else { 1.0 - ratio } * 100.0;
        let digits = if by.abs() < 1.0 { 2 } else { 1 };
        format!("{by:.digits$}").replace('-', "−")
    };
    let (least, most) = if slower { (low, high) } else { (high, low) };
    let word = if slower { "slower" } else { "faster" };
    format!(
        "{} % {word} ({} … {} %)",
        percent(ratio),
        percent(least),
        percent(most)
    )
}

/// Returns texts for the greatest changes; each kernel is named once.
fn reasons(diff: &Diff) -> Vec<String> {
    let told = |change: &&Change| match change.kind {
        ChangeKind::Kernel => change.significant || change.has_typical_change(),
        ChangeKind::Idle => change.significant || is_most_of_idle_time(diff, change),
        ChangeKind::Time => change.significant && change.name == Metric::TransferTime.key(),
        _ => false,
    };
    let weight = |change: &Change| change.by().map_or(0.0, f64::abs);
    let changes: Vec<&Change> = diff.changes.iter().filter(told).collect();
    let most = changes.first().map_or(0.0, |change| weight(change));
    let great = (changes.into_iter()).filter(|change| weight(change) >= MIN_REASON_SHARE * most);
    let mut groups: Vec<Vec<&Change>> = Vec::new();
    for change in great {
        let same = |group: &&mut Vec<&Change>| is_same_kernel(group[0], change);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(change),
            None => groups.push(vec![change]),
        }
    }
    let reason = |group: Vec<&Change>| match group[0].kind {
        ChangeKind::Idle => idle(group[0]),
        ChangeKind::Time => transfers(group[0]),
        _ => kernel(diff, &group),
    };
    let texts = groups.into_iter().take(MAX_REASONS).filter_map(reason);
    match overlap(diff).filter(|(by, _)| by.abs() >= MIN_REASON_SHARE * most) {
        Some((by, text)) if by.abs() > most => std::iter::once(text).chain(texts).collect(),
        Some((_, text)) => texts.chain([text]).collect(),
        None => texts.collect(),
    }
}

/// Returns true for idle time of a cause that could not be tested by itself, since one side has none of it or one run does not show its
/// spread, where all idle time changed and most of that change is this one.
fn is_most_of_idle_time(diff: &Diff, change: &Change) -> bool {
    let all = figure(diff, Metric::IdleTime).filter(|all| all.significant);
    let all = all
        .and_then(Change::by)
        .filter(|_| change.p_noise.is_none());
    (change.by().zip(all)).is_some_and(|(by, all)| by / all >= MIN_CAUSE_SHARE)
}

/// Returns the change of a figure of the whole run.
fn figure(diff: &Diff, metric: Metric) -> Option<&Change> {
    let key = metric.key();
    let mut changes = diff.changes.iter();
    changes.find(|change| change.kind != ChangeKind::Kernel && change.name == key)
}

/// Returns by how much less work ran at the same time as other work after than before, in nanoseconds, and a text on that; `None` unless
/// that is most of the change of the time in which the one GPU was busy.
fn overlap(diff: &Diff) -> Option<(f64, String)> {
    let busy = figure(diff, Metric::GpuTime).filter(|busy| busy.significant || is_likely(busy))?;
    if diff.before.devices.len() != 1 || diff.after.devices.len() != 1 {
        return None;
    }
    let works = diff.changes.iter().filter(|change| {
        change.kind == ChangeKind::Kernel || change.name == Metric::TransferTime.key()
    });
    let (mut before, mut after) = (-busy.before?, -busy.after?);
    for work in works {
        before += work.before?;
        after += work.after?;
    }
    // Work that is neither a kernel nor a transfer, such as a graph that was timed as a whole, makes a GPU busier than these.
    let unknown = [(before, busy.before?), (after, busy.after?)];
    if unknown
        .iter()
        .any(|(overlap, busy)| *overlap < -MAX_LACKING_SHARE * busy)
    {
        return None;
    }
    let by = before - after;
    let time = quantity::duration_f64(by.abs());
    let text = match by > 0.0 {
        true => format!("{time} of work no longer ran beside other work"),
        false => format!("{time} more work ran beside other work"),
    };
    (by / busy.by()? >= MIN_CAUSE_SHARE).then_some((by, text))
}

/// Returns true for two changes of one kernel under different labels.
fn is_same_kernel(one: &Change, other: &Change) -> bool {
    let is_kernel = |change: &Change| {
        let renamed = !change.before_names.is_empty() || !change.after_names.is_empty();
        change.kind == ChangeKind::Kernel && !renamed
    };
    is_kernel(one) && is_kernel(other) && one.name == other.name
}

/// Returns the text for a change of idle time.
fn idle(change: &Change) -> Option<String> {
    let by = change.by()?;
    Some(format!(
        "{} {} idle ({})",
        quantity::duration_f64(by.abs()),
        if by > 0.0 { "more" } else { "less" },
        change.what.trim_start_matches("idle: ")
    ))
}

/// Returns the text for a change of the time that transfers took.
fn transfers(change: &Change) -> Option<String> {
    let takes = takes(change.ratio?).replacen("takes", "take", 1);
    Some(format!("{} {takes}", change.what))
}

/// Returns the text for the changes of one kernel, such as "`softmax` takes 2.10 × as long"; `None` if a side is
/// unknown. Where the kernel ran under several labels, each change is told with its label.
fn kernel(diff: &Diff, changes: &[&Change]) -> Option<String> {
    let first = changes[0];
    let rows = diff
        .changes
        .iter()
        .filter(|other| is_same_kernel(first, other));
    let is_elsewhere = rows.count() > 1;
    let place = |change: &Change| match (&change.label, is_elsewhere) {
        (_, false) => String::new(),
        (Some(label), true) => format!(" under `{label}`"),
        (None, true) => " outside of labels".to_owned(),
    };
    let texts = changes.iter().map(|change| {
        let (before, after) = (change.before?, change.after?);
        let place = place(change);
        Some(match change.matched {
            Some(How::OnlyAfter) => format!("is new{place} ({})", value(after, change.unit)),
            Some(How::OnlyBefore) if is_elsewhere => {
                format!("no longer runs{place} ({})", value(before, change.unit))
            }
            Some(How::OnlyBefore) => format!("is gone ({})", value(before, change.unit)),
            _ => match change.typical.as_ref().filter(|_| !change.significant) {
                Some(typical) => format!("{} a dispatch{place}", takes(typical.ratio?)),
                None => format!("{}{}{place}", takes(change.ratio?), counts(change)),
            },
        })
    });
    let texts: Option<Vec<String>> = texts.collect();
    let name = match first.matched {
        Some(How::Fused | How::Split) => format!("{},", first.what),
        Some(How::Replaced) => match first.before_names.first() {
            Some(before) => format!("`{before}` became `{}`,", first.name),
            None => format!("`{}`", first.name),
        },
        Some(How::SameCode) => match first.before_names.first() {
            Some(before) => format!("`{}` (before: `{before}`)", first.name),
            None => format!("`{}`", first.name),
        },
        _ => format!("`{}`", first.name),
    };
    Some(format!("{name} {}", quantity::listed(&texts?)))
}

/// Returns a text that a kernel ran a different number of times.
fn counts(change: &Change) -> String {
    match change.counts {
        Some([before, after]) if before > 0.0 && (after / before - 1.0).abs() > 0.01 => format!(
            " and runs {} times instead of {}",
            quantity::mean_count(after),
            quantity::mean_count(before)
        ),
        _ => String::new(),
    }
}

/// Returns the words for a ratio of times, from a certain size on as a factor.
fn takes(ratio: f64) -> String {
    if ratio >= FACTOR_FROM || ratio <= 1.0 / FACTOR_FROM {
        return format!("takes {} as long", factor(ratio));
    }
    let percent = (ratio - 1.0).abs() * 100.0;
    let word = if ratio > 1.0 { "longer" } else { "less time" };
    format!("takes {percent:.1} % {word}")
}

/// Returns texts on launches and submissions, which are as many as before where their numbers are the same, and on gaps and GPU time, of which
/// only the changes are known that could have been told.
fn unchanged(diff: &Diff) -> Vec<String> {
    let mut texts = Vec::new();
    let is_same = |metric: Metric| {
        figure(diff, metric).is_some_and(|change| {
            change.before.is_some()
                && change.before == change.after
                && change.at_least == [false; 2]
        })
    };
    if is_same(Metric::Dispatches) && is_same(Metric::Submissions) {
        let words = &diff.words;
        texts.push(format!(
            "as many {} and {} as before",
            words.dispatch.many, words.submission.many
        ));
    }
    let unclear = |(metric, name): (Metric, &'static str)| {
        let change = figure(diff, metric)?;
        let both = change.before.is_some() && change.after.is_some();
        (both && !change.significant && change.at_least == [false; 2]).then_some((name, change))
    };
    let figures = [(Metric::IdleTime, "gaps"), (Metric::GpuTime, "GPU time")];
    let (likely, unclear): (Vec<_>, Vec<_>) =
        (figures.into_iter().filter_map(unclear)).partition(|(_, change)| is_likely(change));
    for (name, likely) in likely {
        if let (Some(ratio), Some(low), Some(high)) = (likely.ratio, likely.low, likely.high) {
            texts.push(format!(
                "{name} {} ({}), which is likely and not certain",
                change(ratio),
                interval(ratio, low, high)
            ));
        }
    }
    let least = |change: &Change| change.least_ratio_told;
    let (hopeless, some): (Vec<_>, Vec<_>) = (unclear.into_iter())
        .partition(|(_, change)| least(change).is_some_and(|least| least >= HOPELESS_FACTOR));
    for group in [some, hopeless] {
        let names: Vec<&str> = group.iter().map(|(name, _)| *name).collect();
        let names = quantity::listed(&names);
        let greatest = group.iter().filter_map(|(_, change)| least(change));
        match greatest.reduce(f64::max) {
            _ if group.is_empty() => {}
            Some(least) => texts.push(format!(
                "{names} could not be told apart ({})",
                could_show(least)
            )),
            None => texts.push(format!("whether {names} changed is not known")),
        }
    }
    texts
}
