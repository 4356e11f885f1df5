//! Formats the numbers of ranks: a list goes in, and a text with ranges for runs comes out.

/// Returns numbers as text, with ranges for runs, such as `3, 64 to 71`.
pub fn list(numbers: &[u32]) -> String {
    const RUNS: usize = 6;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let named = runs.iter().take(RUNS);
    let named = named.map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    });
    let text = named.collect::<Vec<_>>().join(", ");
    match runs.len() > RUNS {
        true => format!("{text}, … ({} in all)", numbers.len()),
        false => text,
    }
}

/// Returns ranks as the subject of a sentence, such as `ranks 2 and 5`.
pub fn named(numbers: &[u32]) -> String {
    match numbers {
        [one] => format!("rank {one}"),
        [first, second] => format!("ranks {first} and {second}"),
        [first, second, third] => format!("ranks {first}, {second} and {third}"),
        many => format!("ranks {}", list(many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_subject_of_a_sentence() {
        assert_eq!(named(&[3]), "rank 3");
        assert_eq!(named(&[2, 5]), "ranks 2 and 5");
        assert_eq!(named(&[1, 2, 3]), "ranks 1, 2 and 3");
        assert_eq!(named(&[1, 2, 3, 4, 7]), "ranks 1 to 4, 7");
    }

    #[test]
    fn ranks_are_listed_in_runs() {
        assert_eq!(list(&[1, 2, 4, 5, 6, 9]), "1, 2, 4 to 6, 9");
        let many: Vec<u32> = (0..40).step_by(2).collect();
        assert_eq!(list(&many), "0, 2, 4, 6, 8, 10, … (20 in all)");
    }
}
