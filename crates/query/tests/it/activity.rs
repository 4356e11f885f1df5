//! `device_activity` and `process_activity` agree with SQL over the work itself.

use crate::{TestFolder, csv};
use gapscope_trace::Trace;
use gapscope_trace::synthetic::Synthetic;

/// Computes busy time in SQL by sorting all timed work, with its device and process.
const BY_SQL: &str = "
with timed as (
  select queue, start_ns, start_ns + duration_ns as end_ns from dispatches
  union all select queue, start_ns, start_ns + duration_ns from transfers
  union all select queue, start_ns, start_ns + duration_ns from opaque_work
), work as (
  select d.id as device, d.process, w.start_ns, w.end_ns from timed w
  join queues q on q.id = w.queue join devices d on d.id = q.device where w.end_ns is not null
), runs as (
  select *, max(end_ns) over (partition by KEY order by start_ns rows between unbounded preceding and 1 preceding) as before_ns
  from work
)
select KEY, count(*) as pieces, min(start_ns) as start_ns, max(end_ns) as end_ns, sum(end_ns - start_ns) as work_ns,
  max(end_ns) - min(start_ns) - coalesce(sum(start_ns - before_ns) filter (where start_ns > before_ns), 0) as busy_ns
from runs group by KEY order by KEY";

#[test]
fn figures_are_those_of_the_work() {
    let folder = TestFolder::new();
    let of = Synthetic {
        dispatches: 20_000,
        devices: 3,
        ..Synthetic::default()
    };
    folder.write("t.gapscope", of.trace());
    let session = folder.session(&["t.gapscope"]);
    for (key, table) in [
        ("device", "device_activity"),
        ("process", "process_activity"),
    ] {
        let sql = format!(
            "select {key}, pieces, start_ns, end_ns, work_ns, busy_ns from {table} order by {key}"
        );
        let answer = csv(&session, &sql);
        assert_eq!(answer, csv(&session, &BY_SQL.replace("KEY", key)));
        assert!(answer.lines().count() > 1);
    }
}

#[test]
fn processes_share_a_physical_device_and_devices_without_an_identity_are_apart() {
    let folder = TestFolder::new();
    let text = "manifest sampling_mode=dispatch\nprocess id=1 pid=10\nprocess id=2 pid=20
        device id=1 process=1 name=A uuid=aa\ndevice id=2 process=2 name=A uuid=aa
        device id=3 process=1 name=B\ndevice id=4 process=2 name=B
        queue id=1 device=1\nqueue id=2 device=2\nqueue id=3 device=3\nqueue id=4 device=4
        dispatch queue=1 kernel=1 start_ns=0 duration_ns=10
        dispatch queue=2 kernel=1 start_ns=5 duration_ns=10
        dispatch queue=2 kernel=1
        transfer queue=3 kind=copy start_ns=0 duration_ns=3
        transfer queue=4 kind=copy start_ns=100 duration_ns=4
        dispatch queue=9 kernel=1 start_ns=50 duration_ns=1
        command_buffer id=1 queue=1 start_ns=0 duration_ns=1000";
    folder.trace("t.gapscope", text);
    let session = folder.session(&["t.gapscope"]);
    for (sql, answer) in [
        (
            "select device, device_name, pieces, work_ns, busy_ns from device_activity order by device",
            "device,device_name,pieces,work_ns,busy_ns\n1,A,2,20,15\n3,B,1,3,3\n4,B,1,4,4\n",
        ),
        (
            "select process, pieces, start_ns, end_ns, busy_ns from process_activity order by process",
            "process,pieces,start_ns,end_ns,busy_ns\n1,2,0,10,10\n2,2,5,104,14\n",
        ),
    ] {
        assert_eq!(csv(&session, sql), answer);
    }
    // Where only command buffers were timed, they are the work.
    let mut trace = Trace::from_text(text).unwrap();
    trace.manifest.sampling_mode = gapscope_trace::manifest::SamplingMode::CommandBuffer;
    trace.tables.dispatches.start_ns.change(|_| None);
    folder.write("whole.gapscope", trace);
    let session = folder.session(&["whole.gapscope"]);
    let sql = "select busy_ns from device_activity where device = 1";
    assert_eq!(csv(&session, sql), "busy_ns\n1000\n");
}
