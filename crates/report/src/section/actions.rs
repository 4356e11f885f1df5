//! Makes the words of an action: advice goes in, the action and its reason come out; names go in, and come out short enough for a sentence.

use crate::fit;

/// The number of columns for the name of a kernel or a line of code.
const PLACE_COLUMNS: usize = 60;

/// Splits advice into the action and its reason, which what else is advised follows. Advice that begins with no reason of its own stays
/// whole.
pub(crate) fn action_and_reason(advice: &str) -> (String, Option<String>) {
    let (first, rest) = match advice.split_once("; ") {
        Some((first, rest)) => (first, format!("; {rest}")),
        None => (advice, String::new()),
    };
    match first.split(": ").collect::<Vec<_>>().as_slice() {
        [reason, action] => ((*action).to_owned(), Some(capitalised(reason) + &rest)),
        _ => (advice.to_owned(), None),
    }
}

/// Returns a text with a capital letter at its start.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns a name that fits into a sentence.
pub(crate) fn clipped(name: &str) -> String {
    fit::clip(&fit::clean(name), PLACE_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_analysis::gaps::Cause;
    use gapscope_trace::manifest::Api;

    #[test]
    fn advice_on_each_cause_is_split_into_what_to_do_and_why() {
        for cause in Cause::ALL {
            for api in [Api::Vulkan, Api::Cuda, Api::Hip] {
                let advice = cause.facts(api).advice;
                let (action, reason) = action_and_reason(advice);
                assert!(!action.contains(": "), "{advice}");
                assert!(!action.is_empty() || advice.is_empty(), "{advice}");
                if let Some(reason) = reason {
                    assert!(reason.starts_with(char::is_uppercase), "{reason}");
                }
            }
        }
    }

    #[test]
    fn further_advice_follows_the_reason() {
        let several =
            "the thread slept: wake it; a task waited for a disk for 30 % of the time: read ahead";
        let reason = "The thread slept; a task waited for a disk for 30 % of the time: read ahead";
        let split = ("wake it".to_owned(), Some(reason.to_owned()));
        assert_eq!(action_and_reason(several), split);
        let whole = "the device's own time to start work; more: do less";
        assert_eq!(action_and_reason(whole), (whole.to_owned(), None));
    }
}
