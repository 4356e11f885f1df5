//! Traces to export, with the counts that must come out of each.

use gapscope_export::{Exported, Scene};
use gapscope_trace::Trace;
use gapscope_trace::tables::Table;
use serde_json::Value;
use std::collections::BTreeMap;

/// Overlapping work on a queue, a folded poll that crosses a submission, two submissions of one call, nested labels,
/// memory, and rows without times.
pub const CROSSING: &str = "\
manifest sampling_mode=dispatch start_ns=1ms end_ns=2ms start_unix_ns=1790000000000000000
process id=1 pid=100 executable=/usr/bin/program
thread process=1 thread=101 name=worker
device id=1 process=1 name=\"Some GPU\" uuid=00ff
queue id=1 device=1 name=compute
queue id=2 device=1 family=1
kernel id=1 process=1 name=matmul local_x=64 local_y=1 local_z=1 source=00ff
label id=1 text=step
label id=2 text=attention parent=1
submission id=1 process=1 queue=1 thread=101 start_ns=1010us duration_ns=10us command_buffers=1
submission id=2 process=1 queue=1 thread=101 start_ns=1010us duration_ns=10us command_buffers=1
submission id=3 process=1 queue=2 thread=101 start_ns=1300us duration_ns=10us command_buffers=1
host_call process=1 thread=101 call=submit start_ns=1010us duration_ns=10us queue=1
host_call process=1 thread=101 call=poll-fence start_ns=1290us duration_ns=15us count=5 busy_ns=3us queue=1 result=1
host_call process=1 thread=101 call=submit start_ns=1300us duration_ns=10us queue=2
host_call process=9 thread=7 call=map-memory start_ns=1400us duration_ns=0
command_buffer id=1 process=1 queue=1 submission=1 start_ns=1100us duration_ns=100us dispatches=3 label=1
command_buffer id=2 process=1 queue=1 submission=2 start_ns=1150us duration_ns=100us dispatches=1
command_buffer id=3 process=1 queue=2 submission=3 timing=not-seen dispatches=1
dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=1100us duration_ns=40us groups_x=16 groups_y=2 groups_z=1 label=2
dispatch command_buffer=1 position=1 queue=1 kernel=1 start_ns=1110us duration_ns=40123ns label=2
dispatch command_buffer=1 position=2 queue=1 kernel=1 start_ns=1120us duration_ns=10us
dispatch command_buffer=2 position=0 queue=1 kernel=77 start_ns=1180us duration_ns=70us
dispatch command_buffer=3 position=0 queue=2 kernel=1
transfer command_buffer=2 position=1 queue=1 kind=copy bytes=4096 start_ns=1240us duration_ns=5us
transfer command_buffer=2 position=2 queue=1 kind=fill
opaque_work command_buffer=2 position=3 queue=1 kind=render-pass start_ns=1246us duration_ns=4us
marker process=1 scope=command-buffer label=1 queue=1 command_buffer=1 start_ns=1100us duration_ns=100us
marker process=1 scope=command-buffer label=2 queue=1 command_buffer=1 start_ns=1100us duration_ns=51us
marker process=1 scope=thread label=1 thread=101 start_ns=1000us duration_ns=0
marker process=1 scope=queue label=2 queue=1 thread=101
memory process=1 device=1 at_ns=1001us event=allocate allocation=1 bytes=65536 heap=0
memory process=1 device=1 at_ns=1900us event=free allocation=1 bytes=65536 heap=0
";

/// Work that host calls launch by themselves, without a command buffer.
pub const LAUNCHES: &str = "\
manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
process id=1 pid=7 executable=/usr/bin/python
thread process=1 thread=7 name=main
device id=1 process=1 api=cuda name=\"Some GPU\"
queue id=1 device=1
kernel id=1 process=1 name=gemm
submission id=1 process=1 queue=1 kind=kernel thread=7 start_ns=100us duration_ns=10us command_buffers=0 function=cudaLaunchKernel
submission id=2 process=1 queue=1 kind=transfer thread=7 start_ns=115us duration_ns=3us command_buffers=0 function=cudaMemsetAsync
submission id=3 process=1 queue=1 kind=transfer thread=7 start_ns=130us duration_ns=20us command_buffers=0 function=cudaMemcpy
host_call process=1 thread=7 call=other-call start_ns=95us duration_ns=18us function=cublasGemmEx
host_call process=1 thread=7 call=copy-and-wait start_ns=130us duration_ns=20us queue=1 function=cudaMemcpy
transfer submission=3 position=0 queue=1 kind=device-to-host bytes=64 start_ns=140us duration_ns=1us
dispatch submission=1 position=0 queue=1 kernel=1 start_ns=120us duration_ns=5us
transfer submission=2 position=0 queue=1 kind=fill bytes=64 start_ns=126us duration_ns=1us
";

/// Samples of a thread with calls, of one without, and of a worker process. One sample has no stack, one is a hook's.
/// All but the first are in order of time.
pub const SAMPLED: &str = r#"
manifest sampling_mode=dispatch start_ns=0 end_ns=1ms start_unix_ns=1790000000000000000
process id=1 pid=100 executable=/usr/bin/python
process id=2 pid=200 parent_pid=100 executable=/usr/bin/python hook=sampled
thread process=1 thread=101 name=main
thread process=1 thread=102 name=loader
device id=1 process=1 api=vulkan name=GPU
queue id=1 device=1 name=compute
kernel id=1 process=1 name=k
submission id=1 process=1 queue=1 thread=101 start_ns=100us duration_ns=10us command_buffers=1
host_call process=1 thread=101 call=submit start_ns=100us duration_ns=10us queue=1
command_buffer id=1 process=1 queue=1 submission=1 start_ns=120us duration_ns=10us dispatches=1
dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=120us duration_ns=10us
frame id=5 kind=python function=main file=/app/train.py line=41
frame id=6 kind=python function=main file=/app/train.py line=42
frame id=7 kind=native function=read library=/usr/lib/libc.so.6
frame id=8 kind=native library=/usr/lib/libexample.so address=4660
stack id=0 frame=5
stack id=1 frame=6
stack id=2 parent=1 frame=7
stack id=3 parent=2 frame=8
sample time_ns=600us process=1 thread=101 stack=0 state=running source=sampled period_ns=100us
sample time_ns=200us process=1 thread=101 stack=2 state=blocked source=sampled period_ns=100us system_call=read
sample time_ns=300us process=1 thread=101 stack=2 state=blocked source=sampled period_ns=100us system_call=read
sample time_ns=310us process=1 thread=101 stack=1 state=running source=after-wait
sample time_ns=400us process=1 thread=101 state=running source=sampled period_ns=100us
sample time_ns=400us process=1 thread=102 stack=3 state=running source=sampled period_ns=100us
sample time_ns=500us process=2 thread=200 stack=0 state=running source=sampled period_ns=100us
"#;

/// Returns a value that must be a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Returns a value that must be a text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Counts the results of `key` for the elements of a list.
pub fn counts<T: Ord>(elements: &Value, key: impl Fn(&Value) -> Option<T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for key in list(elements).iter().filter_map(key) {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// Writes a trace by the function of a format, and checks the counts that the function returns.
pub fn written(
    trace: &Trace,
    write: fn(&Scene, &mut Vec<u8>) -> std::io::Result<Exported>,
) -> Vec<u8> {
    let mut out = Vec::new();
    assert_counted(&write(&Scene::new(trace), &mut out).unwrap(), trace);
    out
}

macro_rules! reported {
    ($name:literal) => {
        include_str!(concat!("../../../report/tests/traces/", $name, ".txt"))
    };
}

/// Returns each trace with its name.
pub fn all() -> Vec<(&'static str, Trace)> {
    let texts = [
        ("crossing", CROSSING),
        ("launches", LAUNCHES),
        ("command_buffers_only", reported!("command_buffers_only")),
        ("host_bound", reported!("host_bound")),
        ("nothing", reported!("nothing")),
        ("two_queues", reported!("two_queues")),
        ("v1", include_str!("../../../../fixtures/v1.txt")),
        ("v3", include_str!("../../../../fixtures/v3.txt")),
        ("sampled", SAMPLED),
    ];
    let traces = texts.map(|(name, text)| (name, Trace::from_text(text).unwrap()));
    traces.into_iter().collect()
}

/// Counts the rows with times by category of events, from the tables alone.
pub fn timed_rows(trace: &Trace) -> BTreeMap<String, u64> {
    let t = &trace.tables;
    macro_rules! timed {
        ($table:ident) => {{
            let times = t.$table.start_ns.iter().zip(&t.$table.duration_ns);
            let timed = times.filter(|(start, duration)| start.is_some() && duration.is_some());
            timed.count() as u64
        }};
    }
    let counts = [
        ("dispatch", timed!(dispatches)),
        ("transfer", timed!(transfers)),
        ("opaque work", timed!(opaque_work)),
        ("command buffer", timed!(command_buffers)),
        ("label", timed!(markers)),
        ("host call", t.host_calls.len() as u64),
        ("launch", launches(trace) as u64),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(name, count)| (name.to_owned(), count));
    counts.collect()
}

/// Counts the submissions that have no row of host calls and name their thread.
fn launches(trace: &Trace) -> usize {
    let t = &trace.tables;
    let call = |row: usize| (t.host_calls.thread.at(row), t.host_calls.start_ns[row]);
    let calls: Vec<_> = (0..t.host_calls.len()).map(call).collect();
    let launches = (0..t.submissions.len()).map(|row| t.submissions.row(row));
    launches
        .filter(|s| s.thread.is_some() && !calls.contains(&(s.thread, s.start_ns)))
        .count()
}

/// Checks that an export's counts agree with the tables.
pub fn assert_counted(exported: &Exported, trace: &Trace) {
    let of = |table: &str| {
        let mut rows = exported.rows.iter();
        rows.find(|rows| rows.table == table).unwrap()
    };
    let dispatches = of("dispatches");
    let timed = timed_rows(trace).get("dispatch").copied().unwrap_or(0);
    assert_eq!(dispatches.written, timed);
    let all = trace.tables.dispatches.len() as u64;
    assert_eq!(dispatches.without_times, all - timed);
    assert_eq!(
        of("host_calls").written,
        trace.tables.host_calls.len() as u64
    );
}

/// Counters of a GPU, a queue and the host. The queue's is not known for a while.
pub const MEASURED: &str = r#"
manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
process id=1 pid=100 executable=/usr/bin/app
device id=1 process=1 api=vulkan name=GPU
queue id=1 device=1 family=0 index=0
kernel id=1 name=k
dispatch queue=1 kernel=1 start_ns=10us duration_ns=10us
counter id=1 name="memory clock" unit=hertz device=1 source="the driver"
counter id=2 name=occupancy unit=percent queue=1 source=sampler
counter id=3 name=load unit=percent source=system
counter_value counter=1 start_ns=100us value=1500000000
counter_value counter=1 start_ns=300us value=900000000.5
counter_value counter=2 start_ns=20us duration_ns=10us value=12.5
counter_value counter=2 start_ns=50us duration_ns=10us value=50
counter_value counter=3 start_ns=0 value=75
counter_value counter=3 start_ns=500us value=25
"#;
