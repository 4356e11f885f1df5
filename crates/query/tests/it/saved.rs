//! Runs each saved query and compares it with the trace.

use crate::{LATE, TEXT, TestFolder, csv, one};
use gapscope_query::saved;

#[test]
fn every_saved_query_runs_on_one_trace_and_on_many() {
    let folder = TestFolder::new();
    let text = format!("{TEXT}{LATE}");
    folder.trace("runs/model=a/rank=0", &text);
    folder.trace("runs/model=a/rank=1", &text);
    for names in [&["runs/*/rank=0"][..], &["runs/*/rank=*"]] {
        let session = folder.session(names);
        for saved in saved::ALL {
            let answer = csv(&session, &session.saved(saved.name).unwrap());
            let several = answer.starts_with("trace,model,rank,");
            assert_eq!(several, names[0].ends_with('*'), "{}: {answer}", saved.name);
            assert!(answer.lines().count() > 1, "{}: {answer}", saved.name);
        }
    }
}

#[test]
fn they_say_what_the_trace_shows() {
    let (_place, session) = one();
    let ask = |name: &str| csv(&session, &session.saved(name).unwrap());
    assert_eq!(
        ask("kernels"),
        "kernel_name,dispatches,total_ms,mean_us,longest_us,without_time\n\
         matmul,2,0.06,30.0,40.0,0\nsoftmax,1,0.01,10.0,10.0,0\n,1,,,,1\n"
    );
    assert_eq!(
        ask("transfers"),
        "kind,transfers,bytes,total_ms,gb_per_s\ncopy,1,4000,0.001,4.0\n"
    );
    assert_eq!(
        ask("host-calls"),
        "call,calls,busy_ms,longest_us,bytes\nsubmit,1,0.01,10.0,\npoll-fence,5,0.003,3.0,\n"
    );
    // Work from 100 to 201 us with gaps of 10 and 20 us.
    assert_eq!(
        ask("busy"),
        "device_name,span_ms,busy_ms,idle_ms,idle_percent\nSome GPU,0.101,0.071,0.03,29.7\n"
    );
}

#[test]
fn the_code_of_idle_time_is_that_of_the_submitting_threads_samples_in_it() {
    let folder = TestFolder::new();
    folder.trace("t.gapscope", &format!("{TEXT}{LATE}"));
    let session = folder.session(&["t.gapscope"]);
    // Not counted: another thread, a hook's sample, and a sample while the device worked.
    assert_eq!(
        csv(&session, &session.saved("code").unwrap()),
        "cause,code,samples,about_ms\n\
         host-late,train.py:41 main > resize > read,2,0.08\n\
         host-late,unknown code,1,0.04\n"
    );
}

#[test]
fn a_name_that_there_is_not_gets_those_that_there_are() {
    let (_place, session) = one();
    let error = session.saved("nosuch").unwrap_err().to_string();
    assert!(
        error.starts_with("no saved query is called nosuch: there are kernels, "),
        "{error}"
    );
}
