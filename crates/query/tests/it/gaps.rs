//! The table `gaps` agrees with the report.

use crate::{TestFolder, count, csv};
use gapscope_analysis::{Findings, Options};
use gapscope_trace::Trace;
use gapscope_trace::synthetic::Synthetic;

/// The first command buffer compiles and is slow; then the host waits, and is late.
fn warming_up() -> Trace {
    let mut text = "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
        process id=1 pid=100\ndevice id=3 process=1 name=\"Some GPU\" uuid=00ff\nqueue id=1 device=3
        kernel id=1 process=1 name=k\nlabel id=1 text=step\nlabel id=2 text=inner parent=1
        host_call process=1 thread=7 call=create-pipelines start_ns=1ms duration_ns=6050us\n"
        .to_owned();
    for at in 0..40 {
        let (submit, start) = (at * 2 + 1, at * 2 + 2);
        text += &format!(
            "submission id={at} process=1 queue=1 thread=7 start_ns={submit}ms duration_ns=100us command_buffers=1
            host_call process=1 thread=7 call=submit start_ns={submit}ms duration_ns=100us queue=1
            command_buffer id={at} process=1 queue=1 submission={at} start_ns={start}ms duration_ns=1ms dispatches=1 label=2
            dispatch command_buffer={at} queue=1 kernel=1 start_ns={start}ms duration_ns=1ms\n"
        );
    }
    Trace::from_text(&text).unwrap()
}

fn reported(trace: &Trace, exclude_warm_up: bool) -> String {
    let options = Options {
        exclude_warm_up,
        ..Options::default()
    };
    let findings = Findings::new(trace, &options);
    let gaps = findings.gaps.iter().filter(|gap| gap.total_ns > 0);
    let gaps = gaps.map(|gap| format!("{},{}\n", gap.cause, gap.total_ns));
    let mut gaps: Vec<String> = gaps.collect();
    gaps.sort();
    assert!(!gaps.is_empty());
    format!("cause,ns\n{}", gaps.concat())
}

#[test]
fn they_sum_to_the_idle_time_of_the_report() {
    let synthetic = Synthetic {
        dispatches: 20_000,
        devices: 2,
        ..Synthetic::default()
    };
    for trace in [synthetic.trace(), warming_up()] {
        let folder = TestFolder::new();
        folder.write("t.gapscope", trace.clone());
        let session = folder.session(&["t.gapscope"]);
        let by_cause = |filter: &str| {
            let sql = format!(
                "select cause, sum(duration_ns) as ns from gaps {filter} group by cause order by cause"
            );
            csv(&session, &sql)
        };
        assert_eq!(by_cause(""), reported(&trace, false));
        assert_eq!(by_cause("where not warm_up"), reported(&trace, true));
        assert!(session.take_remarks().is_empty());
    }
}

#[test]
fn a_gap_has_its_device_its_parts_and_what_ended_it() {
    let folder = TestFolder::new();
    folder.write("runs/rank=4", warming_up());
    folder.write("runs/rank=5", warming_up());
    let session = folder.session(&["runs/rank=*"]);
    let sql = "select rank, device, device_name, label_path, submission, gap_ns, count(*) as parts, sum(duration_ns) as ns
        from gaps where rank = 5 group by all order by submission limit 1";
    assert_eq!(
        csv(&session, sql),
        "rank,device,device_name,label_path,submission,gap_ns,parts,ns\n5,3,Some GPU,step / inner,1,1000000,2,1000000\n"
    );
    let around =
        "select distinct kernel_before, kernel_after, process, thread from gaps where rank = 5";
    let works = "kernel_before,kernel_after,process,thread\nk,k,1,7\n";
    assert_eq!(csv(&session, around), works);
    // The column counts from the start of the recording, whatever the clock's zero is.
    let mut late = warming_up();
    late.manifest.start_ns = -7;
    folder.write("late.gapscope", late);
    let started = "select distinct start_ns - from_start_ns as start_ns from gaps";
    let late = folder.session(&["late.gapscope"]);
    assert_eq!(csv(&late, started), "start_ns\n-7\n");
    let plan = csv(&session, &format!("explain {around}"));
    assert!(plan.contains("ComputedScan: gaps, traces=1"), "{plan}");
    let joined = "gaps g join devices d on d.trace = g.trace and d.id = g.device";
    // Two parts each.
    assert_eq!(count(&session, joined), 2 * 2 * 39);
}

#[test]
fn a_trace_without_a_table_is_said() {
    let folder = TestFolder::new();
    folder.write("t.gapscope", warming_up());
    std::fs::remove_file(folder.path("t.gapscope/dispatches.parquet")).unwrap();
    let session = folder.session(&["t.gapscope"]);
    assert_eq!(count(&session, "gaps"), 0);
    let remarks = session.take_remarks();
    let mut unknown = remarks.iter().map(|r| r.ends_with("its gaps are unknown"));
    assert!(unknown.any(|is_unknown| is_unknown), "{remarks:?}");
    csv(&session, "select count(*) from submissions");
    assert!(session.take_remarks().is_empty());
}
