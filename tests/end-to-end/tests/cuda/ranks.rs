//! Tests recordings of programs of several ranks (processes of a distributed program).

use super::*;
use crate::recording::{Recording, Run, assert_contains};

/// Records two ranks as a launcher starts them. The second rank starts to launch 50 ms later, and launches fewer
/// kernels.
fn two_ranks(stub: &Stub) -> Recording {
    let program = product::built("fake-cuda-program").display().to_string();
    let script = "RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 \"$0\" launch:100 sync labels:3 sync & \
                  RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 \"$0\" sleep:50 launch:70 sync & wait";
    Program::new(["sh", "-c", script, program.as_str()], stub).recorded()
}

#[test]
fn ranks_have_a_trace_each_under_one_folder() {
    let stub = Stub::new(&[]);
    let recording = two_ranks(&stub);
    let whole = recording.trace();
    assert_eq!(whole.manifest.ranks, [0, 1]);
    assert!(
        whole.tables.dispatches.is_empty(),
        "the launcher itself used no GPU"
    );
    for (rank, dispatches) in [(0, 103), (1, 70)] {
        let trace = open(&recording.path().join(format!("rank={rank}")));
        let own = trace.manifest.rank.expect("its rank");
        assert_eq!(
            (own.rank, own.local_rank, own.world_size),
            (rank, Some(rank), 2)
        );
        assert_eq!(trace.tables.dispatches.len(), dispatches);
        assert!(trace.manifest.complete);
        assert_eq!(trace.manifest.losses, []);
    }
    let found = report(&recording.path(), &[]);
    assert_eq!(found["world_size"], 2);
    assert_eq!(found["ranks"][1]["dispatch_count"], 70);
    assert_eq!(
        found["not_comparable_because"],
        Value::Null,
        "one host, one clock"
    );
    let mut command = Command::new(product::built("gapscope"));
    let one = Run::from_command(command.arg("report").arg(recording.path().join("rank=1"))).ok();
    assert_contains(&one.stdout, "70 kernels");
}

#[test]
fn a_process_that_is_alone_in_its_world_is_an_ordinary_trace() {
    let stub = Stub::new(&[]);
    let program = stub
        .program("launch:5 sync")
        .variable("RANK", "0")
        .variable("WORLD_SIZE", "1");
    let recording = program.recorded();
    assert_eq!(recording.trace().tables.dispatches.len(), 5);
    assert!(!recording.path().join("rank=0").exists());
}
