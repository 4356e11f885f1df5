//! A broken promise is found.

use fastrand::Rng;
use fuzz::outcome::harmless;
use fuzz::sections::{self, Section};
use fuzz::{Target, bytes, memory, replay, run, targets};
use std::panic::catch_unwind;

#[test]
fn text_that_steers_a_terminal_is_found() {
    harmless("a line\n\u{1b}[1;33mcoloured\u{1b}[0m µs → …\n");
    for text in [
        "\u{1b}[2J",
        "\u{1b}]0;title\u{7}",
        "a\rb",
        "a\u{9b}31m",
        "a\u{202e}b",
        "\u{2066}",
    ] {
        assert!(catch_unwind(|| harmless(text)).is_err(), "{text:?}");
    }
}

#[test]
fn there_is_no_memory_past_the_limit() {
    let mut bytes: Vec<u8> = Vec::new();
    assert!(bytes.try_reserve_exact(memory::LIMIT_BYTES).is_err());
    assert!(bytes.try_reserve_exact(memory::LIMIT_BYTES / 4).is_ok());
}

#[test]
fn a_panic_of_a_target_goes_on() {
    let target = Target {
        name: "panics",
        read: |input| assert!(input.is_empty(), "it is not empty"),
        mutate: |_, _, _| {},
    };
    run(&target, b"");
    assert!(catch_unwind(|| run(&target, b"x")).is_err());
}

#[test]
fn sections_are_read_as_they_were_written() {
    let section = |tag, bytes: &[u8]| Section {
        tag,
        bytes: bytes.to_vec(),
    };
    let all = [section(1, b"a"), section(255, b""), section(0, &[7; 300])];
    let input = sections::write(&all);
    assert_eq!(sections::read(&input), all);
    let cut = sections::read(&input[..input.len() - 299]);
    assert_eq!(cut.last(), Some(&section(0, &[7])));
}

/// A change that gives nothing but noise finds nothing.
#[test]
fn most_changes_of_a_table_leave_it_readable_as_far_as_its_footer() {
    let target = targets::table::TARGET;
    let file = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fixtures/v2.gapscope/dispatches.parquet"
    ));
    let mut original = vec![0];
    original.extend(file.unwrap());
    let mut rng = Rng::with_seed(7);
    let mut changed = 0;
    let whole = (0..1000)
        .filter(|_| {
            let mut input = original.clone();
            (target.mutate)(&mut input, &mut rng, &mut bytes::change);
            changed += u32::from(input != original);
            let (end, mark) = input.split_at(input.len() - 8);
            let length = u32::from_le_bytes(mark[..4].try_into().unwrap()) as usize;
            mark.ends_with(b"PAR1") && length < end.len()
        })
        .count();
    assert!(whole > 900, "{whole} of 1,000 have a footer");
    assert!(changed > 900, "{changed} of 1,000 differ");
}

/// After the events or the files of the spool have changed, `examples/seeds.rs` writes new ones.
#[test]
fn kept_inputs_are_of_this_version_of_the_spool() {
    let inputs = |target| {
        let paths = replay::corpus(target).into_iter();
        paths.map(|path| std::fs::read(path).unwrap())
    };
    let (mut events, mut decoded, mut delivered) = (0, 0, 0);
    for input in inputs(&targets::events::TARGET) {
        let (of_input, of_them) = targets::events::assemble(&input);
        events += of_input;
        decoded += of_them;
    }
    assert!(decoded * 2 > events, "{decoded} of {events} events");
    for input in inputs(&targets::spool::TARGET) {
        delivered += targets::spool::drain(&input);
    }
    assert!(delivered > 1000, "{delivered} records");
}
