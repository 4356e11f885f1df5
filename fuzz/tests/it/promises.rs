//! Tests that a broken promise is found.

use fastrand::Rng;
use fuzz::outcome::harmless;
use fuzz::sections::{self, Section};
use fuzz::{Target, bytes, memory, replay, run, targets};
use gapscope_capture::AnyCapture;
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
        "/../fixtures/v3.gapscope/dispatches.parquet"
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

/// `examples/seeds` writes new inputs after the events or the files of the spool have changed.
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

/// The input takes the most memory for its length; `open` asserts that the memory is within its bound.
#[test]
fn a_capture_takes_memory_by_its_length() {
    let header = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fixtures/v1.gapcapture/capture.jsonl"
    ));
    let header = header.unwrap().lines().next().unwrap().to_owned();
    let queue = r#"{"queue":{"id":0,"family":0,"index":0,"flags":0}}"#;
    let many = |item: &str| vec![item; 100_000].join(",");
    let lines = |line: &str| -> Vec<String> {
        (0..10_000)
            .map(|at| line.replace('#', &at.to_string()))
            .collect()
    };
    let commands = |items: &str| format!(r#"{{"commands":{{"id":1,"commands":[{items}]}}}}"#);
    let submission = |batches: &str| {
        format!(r#"{{"submission":{{"queue":0,"called_ns":0,"batches":[{batches}]}}}}"#)
    };
    for dense in [
        commands(&many(r#"{"label":"end"}"#)),
        commands(&many(r#"{"barrier":{}}"#)),
        submission(&many(r#"{"commands":[]}"#)),
        format!(
            r#"{{"pipeline_layout":{{"id":0,"flags":0,"sets":[{}],"push_constants":[]}}}}"#,
            many("null")
        ),
        lines(r##"{"memory":{"id":#,"bytes":1,"properties":0}}"##).join("\n"),
        lines(r##"{"set_layout":{"id":#,"flags":0,"bindings":[]}}"##).join("\n"),
        lines(r##"{"commands":{"id":#,"commands":[]}}"##).join("\n"),
        lines(&submission("")).join("\n"),
        format!(r#"{{"{}":0}}"#, "x".repeat(1_000_000)),
        format!(r#"{{"memory":{{"id":0,"x":{}"#, "[".repeat(1_000_000)),
    ] {
        let input = format!("{header}\n{queue}\n{dense}\n");
        let opened = targets::capture::open(input.as_bytes()).expect("it opens");
        let (AnyCapture::Vulkan(capture), problem) = opened else {
            panic!("a capture of Vulkan");
        };
        let taken = capture.commands.len() + capture.steps.len() + capture.memories.len();
        let taken = taken + capture.set_layouts.len() + capture.pipeline_layouts.len();
        assert_eq!(problem.is_none(), taken > 0, "{problem:?}");
    }
}

/// A change that gives nothing but noise finds nothing.
#[test]
fn most_changes_of_a_capture_leave_records() {
    let target = targets::capture::TARGET;
    let kept = replay::corpus(&target)
        .into_iter()
        .map(|path| std::fs::read(path).unwrap());
    let mut rng = Rng::with_seed(7);
    let (mut inputs, mut opened, mut whole) = (0, 0, 0);
    for input in kept {
        for _ in 0..20 {
            let mut changed = input.clone();
            (target.mutate)(&mut changed, &mut rng, &mut bytes::change);
            inputs += 1;
            if let Ok((_, problem)) = targets::capture::open(&changed) {
                opened += 1;
                whole += u32::from(problem.is_none());
            }
        }
    }
    assert!(opened * 10 > inputs * 9, "{opened} of {inputs} open");
    assert!(whole * 5 > inputs, "{whole} of {inputs} have no problem");
    assert!(
        whole * 5 < inputs * 4,
        "{whole} of {inputs} have no problem"
    );
}

/// Tests the meaning of the kept inputs: each version is read, and endless lists are given up.
#[test]
fn memory_of_each_python_has_its_stack() {
    let frame = |function: &str, line| (function.to_owned(), "/p/train.py".to_owned(), Some(line));
    let expected = vec![frame("outer", 11), frame("inner", 11)];
    let mut versions = 0;
    for path in replay::corpus(&targets::interpreter::TARGET) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stacks = targets::interpreter::stacks(&std::fs::read(&path).unwrap());
        if name.starts_with("two-frames") {
            versions += 1;
            for stack in stacks {
                assert_eq!(stack.as_ref(), Some(&expected), "{name}");
            }
        } else if name.starts_with("fault-circle") || name.starts_with("calls-itself") {
            assert_eq!(stacks, [None, None, None], "{name}");
        }
    }
    assert_eq!(versions, 5, "3.11 to 3.15");
}
