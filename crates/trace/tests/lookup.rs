//! Finds rows by id.

use gapscope_trace::Trace;
use gapscope_trace::ids::{LabelId, ProcessId, QueueId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, LabelPaths, NONE};

#[test]
fn ids_are_found_wherever_they_lie() {
    let dense = IdIndex::new(&[3, 1, 1].map(LabelId));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|id| dense.get(LabelId(id))),
        [None, Some(1), None, Some(0), None]
    );
    let sparse = IdIndex::new(&[u64::MAX, 5, u64::MAX].map(SubmissionId));
    assert_eq!(
        [u64::MAX, 5, 6].map(|id| sparse.get(SubmissionId(id))),
        [Some(0), Some(1), None]
    );
    assert_eq!(
        (sparse.row(SubmissionId(5)), sparse.row(SubmissionId(6))),
        (1, NONE)
    );
    let far = IdIndex::new(&[u64::MAX, u64::MAX - 2, u64::MAX].map(SubmissionId));
    assert_eq!(
        [u64::MAX - 2, u64::MAX - 1, u64::MAX, 0].map(|id| far.get(SubmissionId(id))),
        [Some(1), None, Some(0), None]
    );
    assert_eq!(IdIndex::<LabelId>::new(&[]).get(LabelId(0)), None);
}

#[test]
fn a_label_has_the_path_of_those_around_it() {
    let trace = Trace::from_text(
        "label id=1 text=step
         label id=3 text=matmul parent=2
         label id=2 text=attention parent=1
         label id=4 text=orphan parent=9
         label id=5 text=loop parent=5",
    )
    .expect("it is a trace");
    let paths = LabelPaths::new(&trace.tables.labels);
    assert_eq!(paths.get(LabelId(3)), Some("step / attention / matmul"));
    assert_eq!(paths.get(LabelId(1)), Some("step"));
    assert_eq!(paths.get(LabelId(4)), Some("orphan"));
    assert!(
        paths
            .get(LabelId(5))
            .is_some_and(|path| path.ends_with("loop / loop"))
    );
    assert_eq!(paths.get(LabelId(9)), None);
}

#[test]
fn a_queue_leads_to_its_device() {
    let trace = Trace::from_text("device id=4 name=GPU process=2\nqueue id=7 device=4\nqueue id=8 device=5\nprocess id=2 pid=9")
        .expect("it is a trace");
    let m = &trace.manifest;
    assert_eq!(
        m.device_of_queue(QueueId(7)).map(|d| d.name.as_str()),
        Some("GPU")
    );
    assert!(m.device_of_queue(QueueId(8)).is_none());
    assert_eq!(m.process(ProcessId(2)).map(|p| p.pid), Some(9));
}
