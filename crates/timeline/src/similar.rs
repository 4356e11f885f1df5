//! Finds the known names, as of tables, columns or figures, that are most similar to a misspelt one.

/// Returns up to three names of `known` that are most similar to `name`, the best first; none if no likeness is 0.8.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|known| (likeness(&name, &known.to_lowercase()), known))
        .filter(|(score, _)| *score >= 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns the likeness of two names, from 0 to 1.
fn likeness(a: &str, b: &str) -> f64 {
    // This matches `name` with `kernel_name`, and `kernels` with `kernel`.
    let contained = a.len() >= 3 && b.len() >= 3 && (b.contains(a) || a.contains(b));
    let score = strsim::jaro_winkler(a, b);
    if contained { score.max(0.85) } else { score }
}

/// Joins names for a sentence: `a`, `a or b`, `a, b or c`.
pub fn join_or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let columns = ["start_ns", "duration_ns", "kernel", "kernel_name", "queue"];
        assert_eq!(similar("duraton_ns", columns), ["duration_ns"]);
        assert_eq!(similar("Kernel", columns), ["kernel", "kernel_name"]);
        assert_eq!(similar("name", columns), ["kernel_name"]);
        assert!(similar("zebra", columns).is_empty());
    }

    #[test]
    fn names_are_joined() {
        assert_eq!(join_or(&["a"]), "a");
        assert_eq!(join_or(&["a", "b", "c"]), "a, b or c");
    }
}
