//! Makes the section on what would help most: the changes whose gains are known, the greatest first, or why none is known.

use super::actions::{action_and_reason, clipped};
use crate::document::{Block, Table, Text};
use crate::number::Percent;
use crate::what_if::{self, gain_text};
use gapscope_analysis::Findings;
use gapscope_analysis::first_step::first_step;
use gapscope_analysis::what_if::gains::{GainSubject, Gains, PredictedGain, UnknownGain};

const TITLE: &str = "What would help most";

/// Makes the section; none where the findings name nothing to change.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let gains = &findings.gains;
    if gains.gains.is_empty() {
        return without(gains);
    }
    let aside = match gains.gains_of_steps {
        Some(_) => "how much less time a step takes",
        None => "how much less time the replayed part of the run takes",
    };
    let share = |share: f64| Percent(share).to_string();
    let table = Table::with_rows(&gains.gains)
        .number("gain", |gain: &PredictedGain| share(gain.mid))
        .number("at least", |gain| share(gain.low))
        .number("at most", |gain| share(gain.high))
        .name("change", |gain| gain.change.clone());
    let mut blocks = table.under(TITLE, aside);
    let sentences = joint(gains).into_iter().chain(others_unknown(gains));
    blocks.extend(sentences.map(|text| Block::Sentence(text.into())));
    let text = "Gains are from replays of what waited for what, and do not add up. To ask about other changes: gapscope what-if TRACE --set CHANGE.";
    blocks.push(Block::Sentence(Text::new().faint(text)));
    blocks.extend(what_if::path(&gains.path, "What holds the run"));
    blocks.extend(what_if::slack(&gains.slack).map(Block::Sentence));
    blocks
}

/// Returns what to do after the first step, in a sentence: the change that is replayed together with the first one. Where the first step is
/// none of the replayed changes, nothing is known of the two together.
pub(crate) fn next(findings: &Findings) -> Option<String> {
    let gains = &findings.gains;
    let joint = gains.joint_gain.as_ref()?;
    let [first, second] = &joint.changes;
    let step = first_step(findings)?.gain?;
    if step.change != *first {
        return None;
    }
    let second = gains.gains.iter().find(|gain| gain.change == *second)?;
    Some(format!(
        "Next: {}, {}; both {}.",
        words(findings, &second.subject),
        Percent(second.mid),
        Percent(joint.mid)
    ))
}

/// Names a change, without a capital.
fn words(findings: &Findings, subject: &GainSubject) -> String {
    match subject {
        GainSubject::Idle(cause) => {
            let advice = findings.advice_on(*cause).unwrap_or_default();
            let (action, _) = action_and_reason(advice);
            action
        }
        GainSubject::Kernel(name, factor) => {
            let name = clipped(name);
            match *factor == 0.5 {
                true => format!("halve {name}"),
                false => format!("bring {name} to its limit"),
            }
        }
        GainSubject::OverlappedTransfers => "copy while kernels run".to_owned(),
        GainSubject::HalvedTransfers => "halve the time of copies".to_owned(),
        GainSubject::Code(place) => format!("take {place} out of the loop"),
    }
}

/// Returns what the first two changes bring together, in a sentence.
fn joint(gains: &Gains) -> Option<String> {
    let joint = gains.joint_gain.as_ref()?;
    let [first, second] = &joint.changes;
    Some(format!(
        "{first} and {second} together: {}.",
        gain_text(joint.low, joint.mid, joint.high)
    ))
}

/// Returns of which changes the gain is not known, in a sentence.
fn others_unknown(gains: &Gains) -> Option<String> {
    let changes = gains.gains_unknown.iter();
    let changes: Vec<&str> = changes.filter_map(|gain| gain.change.as_deref()).collect();
    let first = gains.unknown_because()?;
    Some(format!(
        "The gain of {} is not known. {}",
        changes.join(", "),
        first.because
    ))
}

/// Returns why there is no ranking; nothing where there was nothing to ask.
fn without(gains: &Gains) -> Vec<Block> {
    let mut sentences = Vec::new();
    if gains.are_all_small() {
        let text = "Each change that was replayed would save less than 1 % of the time.";
        sentences.push(text.to_owned());
    }
    if let Some(unknown) = gains.unknown_because() {
        let UnknownGain {
            change,
            because,
            instead,
        } = unknown;
        let what = match change {
            Some(change) => format!("The gain of {change}"),
            None => "What a change would bring".to_owned(),
        };
        sentences.push(format!("{what} is not known. {because} {instead}"));
    }
    if sentences.is_empty() {
        return Vec::new();
    }
    let heading = Block::Heading(TITLE.into(), String::new());
    let sentences = sentences
        .into_iter()
        .map(|text| Block::Sentence(text.into()));
    [heading].into_iter().chain(sentences).collect()
}
