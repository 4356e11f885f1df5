//! Tests lines of code in the report.

use super::{read, terminal, words};

/// A trace with thirty samples in a gap, of a thread that is in `load` of `train.py`, called from two lines of the module.
#[test]
fn stacks_that_read_the_same_are_one_line() {
    let mut text = "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms stack_rate_hz=500
        process id=1 pid=7
        thread process=1 thread=7 name=main
        device id=1 process=1
        queue id=1 device=1
        submission id=1 process=1 queue=1 thread=7 start_ns=9ms duration_ns=100us
        submission id=2 process=1 queue=1 thread=7 start_ns=81ms duration_ns=1ms
        command_buffer id=1 process=1 queue=1 submission=1 dispatches=1
        command_buffer id=2 process=1 queue=1 submission=2 dispatches=1
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=10ms duration_ns=1ms
        dispatch command_buffer=2 queue=1 kernel=1 start_ns=83ms duration_ns=1ms
        host_call process=1 thread=7 call=wait-queue-idle start_ns=10ms duration_ns=2ms
        frame id=0 kind=python function=<module> file=/home/a/train.py line=60
        frame id=1 kind=python function=<module> file=/home/a/train.py line=70
        frame id=2 kind=python function=load file=/home/a/train.py line=41
        stack id=0 frame=0
        stack id=1 frame=1
        stack id=2 parent=0 frame=2
        stack id=3 parent=1 frame=2\n"
        .to_owned();
    for at in 0..30 {
        let (time_ms, stack) = (15 + 2 * at, 2 + at % 2);
        text += &format!(
            "sample time_ns={time_ms}ms process=1 thread=7 stack={stack} state=running source=sampled period_ns=2ms\n"
        );
    }
    assert!(!terminal(&read(&text)).contains("The sampler got"));
    text += "loss what=\"stack samples\" count=20 reason=busy\n";
    let page = terminal(&read(&text));
    let words = words(&page);
    assert!(
        words.contains("The sampler got 30 of 50 samples in the recording"),
        "{page}"
    );
    assert!(words.contains("→ train.py:41 load 100 %"), "{page}");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("  train.py:41 load "));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 1, "{page}");
    assert!(rows[0].contains(&"30"), "{page}");
}
