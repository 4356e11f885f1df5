//! Tells from the text of a label whether it is called like a step of a program.

/// The words that programs call the turns of their main loop.
const STEPS: [&str; 10] = [
    "step",
    "profilerstep",
    "iteration",
    "iter",
    "batch",
    "minibatch",
    "frame",
    "token",
    "tick",
    "trainstep",
];
/// The words for turns that hold others. They count where no label has one of the other words.
const ROUNDS: [&str; 4] = ["epoch", "episode", "round", "loop"];
/// Words beside which those above mean a part of a step.
const PARTS: [&str; 16] = [
    "optimizer",
    "optim",
    "scheduler",
    "lr",
    "scaler",
    "zero",
    "grad",
    "load",
    "loader",
    "dataloader",
    "norm",
    "embed",
    "embedding",
    "init",
    "next",
    "get",
];

/// How surely a text names a step: the least is the surest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A label of a profiler for steps.
    Profiler,
    /// A label that is called like a step.
    Step,
    /// A function of Python that is.
    Function,
    /// A label that is called like a turn that holds steps.
    Round,
}

/// Returns how surely a text names a step; `None` where it does not. The word for a step must be the last one, or the first and
/// followed by a number or a mark: `train_step`, `step 12 of 100`, `batch: 3`, and not `batch_norm`.
pub(super) fn kind_of(text: &str) -> Option<Kind> {
    if text.len() > 200 {
        return None;
    }
    if text.starts_with("ProfilerStep") || text.starts_with("ProfileStep") {
        return Some(Kind::Profiler);
    }
    let function = text.rsplit_once("): ").map(|(_, function)| function);
    let words = words(function.unwrap_or(text));
    if words.iter().any(|(word, _)| PARTS.contains(&word.as_str())) {
        return None;
    }
    let named = |all: &[&str]| {
        let is_one = |word: &str| {
            let one = word.strip_suffix('s').unwrap_or(word);
            all.contains(&word) || all.contains(&one)
        };
        let last = words.last().is_some_and(|(word, _)| is_one(word));
        let first = words.first();
        last || first.is_some_and(|(word, is_apart)| *is_apart && is_one(word))
    };
    match (named(&STEPS), named(&ROUNDS)) {
        (true, _) if function.is_some() => Some(Kind::Function),
        (true, _) => Some(Kind::Step),
        (false, true) if function.is_none() => Some(Kind::Round),
        _ => None,
    }
}

/// Returns the words of a text in lower case, each with whether a number or a mark follows. `trainStep` has two words.
fn words(text: &str) -> Vec<(String, bool)> {
    let mut words: Vec<(String, bool)> = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for letter in text.chars() {
        let begins = letter.is_uppercase() && was_lower;
        if (begins || !letter.is_alphabetic()) && !word.is_empty() {
            words.push((std::mem::take(&mut word), false));
        }
        match letter.is_alphabetic() {
            true => word.extend(letter.to_lowercase()),
            false => {
                let is_mark = letter.is_ascii_digit() || "#:=([".contains(letter);
                if let Some((_, is_apart)) = words.last_mut() {
                    *is_apart |= is_mark;
                }
            }
        }
        was_lower = letter.is_lowercase();
    }
    if !word.is_empty() {
        words.push((word, false));
    }
    words
}

/// Returns a text with `*` in place of each number.
pub(super) fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut was_digit = false;
    for letter in text.chars() {
        let is_digit = letter.is_ascii_digit();
        match (is_digit, was_digit) {
            (true, true) => {}
            (true, false) => plain.push('*'),
            (false, _) => plain.push(letter),
        }
        was_digit = is_digit;
    }
    plain
}

/// Returns the number of the step that a label is: the number behind the word for a step, or else the first one of the text, or the one that
/// the program gave the label as its value.
pub(super) fn number_of(text: &str, payload: Option<&str>) -> Option<u64> {
    let (behind_word, first) = numbers(text);
    let of_payload = || {
        let payload = payload?.trim();
        let whole = payload.strip_prefix('#').unwrap_or(payload).parse().ok();
        whole.or_else(|| numbers(payload).0)
    };
    behind_word.or(first).or_else(of_payload)
}

/// Returns the first number of a text that a word for a step precedes, and the first of all.
fn numbers(text: &str) -> (Option<u64>, Option<u64>) {
    let (mut first, mut is_behind) = (None, false);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let class = |letter: char| (letter.is_ascii_digit(), letter.is_alphabetic());
        let end = rest.find(|other| class(other) != class(letter));
        let (run, next) = rest.split_at(end.unwrap_or(rest.len()));
        rest = next;
        match class(letter) {
            (true, _) => {
                let number = run.parse().ok();
                if is_behind && number.is_some() {
                    return (number, first.or(number));
                }
                first = first.or(number);
            }
            (_, true) => {
                let word = run.to_lowercase();
                let word = word.strip_suffix('s').unwrap_or(&word);
                is_behind = STEPS.iter().any(|step| word.ends_with(step));
            }
            _ => {}
        }
    }
    (None, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_steps_by_their_words() {
        for text in [
            "step",
            "steps",
            "train_step",
            "trainStep",
            "step 12",
            "step 3 of 100: loss 0.1",
            "iteration 12",
            "iter=4",
            "batch 7",
            "Frame #3",
            "decode token",
        ] {
            assert_eq!(kind_of(text), Some(Kind::Step), "{text}");
        }
        assert_eq!(kind_of("ProfilerStep#3"), Some(Kind::Profiler));
        assert_eq!(kind_of("train.py(41): train_step"), Some(Kind::Function));
        assert_eq!(kind_of("epoch 3"), Some(Kind::Round));
        for text in [
            "layer 3",
            "batch_norm",
            "BatchNorm2d",
            "Optimizer.step#SGD.step",
            "StepLR",
            "token_embedding",
            "load_batch",
            "footstep3x",
            "blocks.3.attn",
            "forward",
            "stepping stone",
            "frame buffer copy",
        ] {
            assert_eq!(kind_of(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_taken_out() {
        for (text, plain) in [("step 12", "step *"), ("a3/4b", "a*/*b"), ("step", "step")] {
            assert_eq!(without_numbers(text), plain);
        }
    }

    #[test]
    fn a_step_has_the_number_behind_its_word_or_the_first_or_that_of_its_value() {
        for (text, payload, number) in [
            ("ProfilerStep#12", None, Some(12)),
            ("Iteration 12", None, Some(12)),
            ("step=12", None, Some(12)),
            ("epoch 3, steps [7] of 100", None, Some(7)),
            ("rank 2: train_step 9", Some("4"), Some(9)),
            ("12th turn", None, Some(12)),
            ("ProfilerStep", Some("7"), Some(7)),
            ("train_step", Some("loss=3, step=8"), Some(8)),
            ("train_step", Some("sizes=[3, 4]"), None),
            ("train_step", Some("-3"), None),
            ("step 99999999999999999999999", None, None),
            ("step", None, None),
        ] {
            assert_eq!(number_of(text, payload), number, "{text} {payload:?}");
        }
    }
}
