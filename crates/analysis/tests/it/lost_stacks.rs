//! A recording that was to have samples of stacks, and has none, says so.

use crate::program::findings_of;
use gapscope_trace::LossKind;

#[test]
fn missing_samples_are_lost_where_some_were_wanted_and_nothing_says_why() {
    let lost = |manifest: &str, rows: &str| {
        let findings = findings_of(&format!(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=1ms {manifest}
             process id=1 pid=10
             device id=1 process=1 api=cuda name=GPU uuid=aa
             queue id=1 device=1
             kernel id=1 process=1 name=work
             submission id=1 process=1 queue=1 thread=7 start_ns=1us duration_ns=5us kind=kernel
             dispatch submission=1 queue=1 kernel=1 start_ns=8us duration_ns=5us
             {rows}"
        ));
        let stacks = findings
            .losses
            .iter()
            .filter(|loss| loss.kind == LossKind::Stacks);
        stacks.map(|loss| loss.count).sum::<u64>()
    };
    assert_eq!(lost("stack_rate_hz=500", ""), 1);
    // None were wanted; there is one; the reason is told already.
    assert_eq!(lost("", ""), 0);
    let sample = "sample time_ns=3us process=1 thread=7 source=sampled period_ns=2ms state=running";
    assert_eq!(lost("stack_rate_hz=500", sample), 0);
    let loss = "loss what=\"stack samples\" count=3 reason=\"the machine was busy\"";
    assert_eq!(lost("stack_rate_hz=500", loss), 0);
}
