//! Draws the answer to a question about a change as a document: the prediction first, then what would hold the run, then what the
//! prediction rests on.

use crate::document::{Block, Document, Table, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::what_if::{Answer, KernelSlack, PathPart, Times};
use gapscope_timeline::quantity::{Percent, ratio};

/// Returns the document of an answer about a trace.
pub fn document(name: &str, answer: &Answer, remarks: &[String]) -> Document {
    let mut blocks = vec![Block::Title(name.to_owned(), "what if".to_owned())];
    let items = |sentences: &[String]| -> Vec<Block> {
        let texts = sentences
            .iter()
            .map(|sentence| Text::new().and(sentence.as_str()));
        texts.map(Block::Item).collect()
    };
    blocks.extend(items(&answer.changes));
    if answer.refused.is_empty() {
        blocks.push(Block::Apart(prediction(answer)));
        blocks.extend(against(answer).map(Block::Sentence));
        let title = match answer.changes.is_empty() {
            true => "What holds the run",
            false => "What would hold the run",
        };
        blocks.extend(path(&answer.path, title));
        blocks.extend(slack(&answer.slack).map(Block::Sentence));
    } else {
        let text = Text::new().with(
            Tone::Warning,
            "The recording cannot tell what the change would bring.",
        );
        blocks.push(Block::Apart(text));
        for refusal in &answer.refused {
            let text = Text::new().strong(refusal.because.as_str());
            blocks.push(Block::Item(text.and(format!(" {}", refusal.instead))));
        }
    }
    blocks.push(Block::Sentence(basis(answer)));
    blocks.extend(items(&answer.notes));
    blocks.extend(items(remarks));
    Document { blocks }
}

/// Makes the table of a critical path.
pub(crate) fn path(parts: &[PathPart], title: &str) -> Vec<Block> {
    let share =
        |share: Option<f64>| share.map_or(String::new(), |share| Percent(share).to_string());
    let table = Table::with_rows(parts);
    let rank = |part: &PathPart| part.rank.map_or(String::new(), |rank| rank.to_string());
    let table = match parts.iter().any(|part| part.rank.is_some()) {
        true => table.number("rank", rank),
        false => table,
    };
    let table = table
        .word("part", |part: &PathPart| words(part.what))
        .number("time", |part| number::duration(part.total_ns))
        .number("share", |part| Percent(part.share).to_string())
        .number("at least", move |part| share(part.low))
        .number("at most", move |part| share(part.high))
        .name("name", |part| part.name.clone().unwrap_or_default());
    table.under(
        title,
        "the critical path; bounds are over paths as long to 1 %",
    )
}

/// Returns how much longer kernels could be that are not on the critical path, in a sentence.
pub(crate) fn slack(kernels: &[KernelSlack]) -> Option<Text> {
    let kernels = kernels.iter().filter(|kernel| kernel.slack_ns > 0);
    let named: Vec<String> = kernels
        .map(|kernel| {
            let name = fit::clip(&fit::clean(&kernel.kernel), NAME_COLUMNS);
            format!("{name} {}", number::duration(kernel.slack_ns))
        })
        .collect();
    (!named.is_empty()).then(|| {
        Text::new().and(format!(
            "Each launch of these kernels could be longer by so much at no cost: {}.",
            named.join(", ")
        ))
    })
}

/// Where the mean step takes so many times as long as the median one, both are told.
const UNEVEN_STEPS: f64 = 1.05;

/// The number of columns for the name of a kernel.
const NAME_COLUMNS: usize = 40;

/// Returns what is predicted, in a sentence.
fn prediction(answer: &Answer) -> Text {
    let unit = match answer.steps {
        Some(_) => "A step",
        None => "The run",
    };
    let unit = match answer.ranks.len() {
        0 => unit.to_owned(),
        count => format!("{unit} of all {count} ranks"),
    };
    let recorded = number::duration(answer.recorded_ns);
    // Where single steps take long, a step takes longer in the mean than the median one that the report tells.
    let is_uneven = |median_ns: &i64| ratio(answer.recorded_ns, *median_ns) > UNEVEN_STEPS;
    let recorded = match answer.median_step_ns.filter(is_uneven) {
        Some(median_ns) => format!(
            "a mean of {recorded} (the median one {})",
            number::duration(median_ns)
        ),
        None => recorded,
    };
    let predicted = answer.changed_ns.zip(answer.mid_gain()).zip(answer.gain);
    let Some(((times, gain), gains)) = predicted.filter(|_| !answer.changes.is_empty()) else {
        return Text::new()
            .and(format!("{unit} took "))
            .strong(recorded)
            .and(".");
    };
    let text = Text::new()
        .and(format!("{unit} took {recorded} and would take "))
        .strong(number::duration(times.mid))
        .and(between(times))
        .and(", ");
    match Percent(gain.abs()).to_string() {
        same if same == Percent(0.0).to_string() => text.strong("as long as before").and("."),
        share if gain > 0.0 => text
            .strong(format!("{share} less"))
            .and(shares_between(gains.low, gains.high))
            .and("."),
        share => text
            .strong(format!("{share} more"))
            .and(shares_between(-gains.high, -gains.low))
            .and("."),
    }
}

/// Returns the interval in brackets; nothing where it is a point.
fn between(times: Times) -> String {
    let [low, high] = [times.low, times.high].map(number::duration);
    match low == high {
        true => String::new(),
        false => format!(" ({low} to {high})"),
    }
}

/// Returns the interval of a share in brackets; nothing where it is a point.
fn shares_between(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|share| Percent(share).to_string());
    match low == high {
        true => String::new(),
        false => format!(" ({low} to {high})"),
    }
}

/// Returns a gain as text, such as `12.2 %` or `12 % (10 % to 14 %)`.
pub(crate) fn gain_text(low: f64, mid: f64, high: f64) -> String {
    format!("{}{}", Percent(mid), shares_between(low, high))
}

/// Returns how the prediction compares with a recording, in a sentence.
fn against(answer: &Answer) -> Option<Text> {
    let recording = answer.against.as_ref()?;
    let took = number::duration(recording.recorded_ns);
    let error = recording.error?;
    let place = match recording.is_inside {
        Some(true) => "inside the interval",
        _ => "outside the interval",
    };
    let longer = ["too short", "too long"][usize::from(error >= 0.0)];
    Some(Text::new().and(format!(
        "In {} it took {took}: the prediction is {} {longer}, and the recorded time lies {place}.",
        recording.trace,
        Percent(error.abs())
    )))
}

/// Returns what the prediction rests on, in sentences.
fn basis(answer: &Answer) -> Text {
    let steps = match answer.steps {
        Some(steps) => format!(
            "{} were replayed. ",
            number::count_of(steps, "step", "steps")
        ),
        None => String::new(),
    };
    let error = answer.pooled_error.map_or(String::new(), |error| {
        format!(
            " With nothing changed, a replay with usual delays is {} off the recording.",
            Percent(error.abs())
        )
    });
    let edges = answer.edges;
    Text::new().faint(format!(
        "{steps}The replay rests on {} of what waited for what, and {}.{error}",
        number::count_of(edges.recorded, "record", "records"),
        number::count_of(edges.guessed, "guess by times", "guesses by times"),
    ))
}

/// Returns the words for a kind of thing on a path.
fn words(what: &'static str) -> &'static str {
    match what {
        "host-code" => "host's own code",
        "call" => "API call",
        "wake-up" => "wake-up after a wait",
        "launch-latency" => "launch latency",
        "queue-gap" => "gap of the queue",
        "handover" => "handover between queues",
        "opaque-work" => "other GPU work",
        what => what,
    }
}
