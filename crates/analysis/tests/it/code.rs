//! The code behind idle time in the findings.

use crate::program::{Program, findings_under};

#[test]
fn the_code_behind_the_gaps_of_a_label_stays() {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch stack_rate_hz=500
         process id=1 pid=10
         thread process=1 thread=7 name=main
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work
         label id=1 text=train
         label id=2 text=evaluate
         frame id=1 kind=python function=load file=/home/a/train.py line=41
         frame id=2 kind=python function=score file=/home/a/train.py line=70
         stack id=1 frame=1
         stack id=2 frame=2",
    );
    for step in 0..8 {
        let start = step * 50_000;
        let id = p.mark(1, "kernel", [start - 100, start - 90]);
        let label = 1 + step / 4;
        p.line(&format!(
            "dispatch submission={id} queue=1 kernel=1 label={label} start_ns={start}us duration_ns=10ms"
        ));
        for at in (start + 11_000..start + 49_000).step_by(2000) {
            p.line(&format!(
                "sample time_ns={at}us process=1 thread=7 stack={label} state=running source=sampled period_ns=2ms"
            ));
        }
    }
    let trace = p.trace();
    for (label, line) in [("train", 41), ("evaluate", 70)] {
        let code = findings_under(&trace, label).code.expect(label);
        let first = &code.causes[0].code[0];
        assert_eq!(first.frames[0].line, Some(line), "{label}");
        assert_eq!(first.samples, code.samples, "{label}");
        let covered = code.causes[0].total_ns - code.causes[0].without_samples_ns;
        assert!(covered > 100_000_000, "{label}: {covered}");
    }
}
