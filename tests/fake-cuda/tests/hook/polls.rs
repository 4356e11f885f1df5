//! Programs that wait by asking again and again.

use crate::stub::Stub;

#[test]
fn polls_are_counted_and_folded_into_few_entries() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_KERNEL_NS", "3000000")
        .run("polls:5 sync");
    let process = outcome.whole();
    let asked: Vec<u64> = outcome
        .output
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [events, streams] = asked[..] else {
        panic!("{}", outcome.output)
    };
    assert!(events > 100 && streams > 20, "{}", outcome.output);
    for (name, asked, waits) in [("cuEventQuery", events, 5), ("cuStreamQuery", streams, 1)] {
        let polls: Vec<_> = process.polls.iter().filter(|p| p.name == name).collect();
        let count: u64 = polls.iter().map(|p| u64::from(p.count)).sum();
        assert_eq!(count, asked, "{name}");
        assert!(polls.len() >= waits);
        // Each tick of the flush may part them, and a pause of the host's scheduler.
        assert!((polls.len() as u64) < asked / 3 + 20, "{}", polls.len());
        for polls in polls {
            assert!(polls.busy_ns <= polls.span.duration_ns as u64);
            assert_eq!(polls.thread, process.pid);
            assert!([0, 600].contains(&polls.result));
        }
    }
    assert!(
        process.calls_of("cuEventQuery").is_empty(),
        "no other entries"
    );
    // What the program did between the polls parts them.
    for polls in &process.polls {
        for call in process.calls.iter().filter(|c| c.thread == polls.thread) {
            let call = call.span.expect("known times");
            assert!(call.end_ns() <= polls.span.start_ns || polls.span.end_ns() <= call.start_ns);
        }
    }
}
