//! Cuts windows: they hold the work submitted in them, and everything that it refers to.

use gapscope_trace::Trace;
use gapscope_trace::ids::*;

fn trace() -> Trace {
    Trace::from_text(
        r#"
        manifest start_ns=0 end_ns=1ms start_unix_ns=5ms
        process id=0 pid=10
        process id=1 pid=11
        device id=0 process=0 api=vulkan
        device id=1 process=1 api=vulkan
        queue id=0 device=0
        queue id=1 device=1
        kernel id=0 process=0 name=a
        kernel id=1 process=1 name=other
        submission id=0 process=0 queue=0 thread=1 start_ns=90us duration_ns=5us command_buffers=1
        submission id=1 process=0 queue=0 thread=1 start_ns=100us duration_ns=5us command_buffers=1
        submission id=2 process=1 queue=1 thread=1 start_ns=110us duration_ns=5us command_buffers=1
        submission id=3 process=0 queue=0 thread=1 start_ns=210us duration_ns=5us command_buffers=1
        command_buffer id=0 process=0 queue=0 submission=0 start_ns=96us duration_ns=20us
        command_buffer id=1 process=0 queue=0 submission=1 start_ns=120us duration_ns=20us
        command_buffer id=2 process=1 queue=1 submission=2 start_ns=120us duration_ns=20us
        command_buffer id=3 process=0 queue=0 submission=3 start_ns=220us duration_ns=20us
        dispatch command_buffer=0 queue=0 kernel=0 start_ns=97us duration_ns=1us
        dispatch command_buffer=1 queue=0 kernel=0 start_ns=121us duration_ns=1us
        dispatch command_buffer=2 queue=1 kernel=1 start_ns=121us duration_ns=1us
        dispatch submission=1 queue=0 kernel=0 start_ns=125us duration_ns=1us
        dispatch submission=3 queue=0 kernel=0 start_ns=225us duration_ns=1us
        host_call process=0 thread=1 call=wait-fences start_ns=50us duration_ns=60us
        host_call process=0 thread=1 call=wait-fences start_ns=300us duration_ns=60us
        dependency submission=1 waits_for=0
        buffer id=1 process=0 device=0 bytes=64 allocation=1
        buffer id=2 process=0 device=0 bytes=64 allocation=2
        label id=0 text=step
        marker process=0 scope=thread label=0 thread=1 start_ns=10us
        marker process=0 scope=thread label=0 thread=1 start_ns=10us duration_ns=10us
        memory process=0 device=0 at_ns=1us event=allocate allocation=1 bytes=64 heap=0
        memory process=0 device=0 at_ns=400us event=free allocation=1 bytes=64 heap=0
        memory process=0 device=0 at_ns=500us event=allocate allocation=2 bytes=64 heap=0
        "#,
    )
    .expect("it is a trace")
}

#[test]
fn work_is_in_the_window_in_which_it_was_submitted() {
    let window = trace().window(&[ProcessId(0)], 100_000, 200_000);
    let t = &window.tables;
    assert_eq!(t.submissions.id, [SubmissionId(1)]);
    assert_eq!(t.command_buffers.id, [CommandBufferId(1)]);
    // One dispatch is in the command buffer, the other was launched by a host call.
    assert_eq!(t.dispatches.start_ns, [Some(121_000), Some(125_000)]);
    assert_eq!(t.kernels.name, ["a".into()]);
    assert_eq!(t.host_calls.start_ns, [50_000], "it ends in the window");
    assert_eq!(t.markers.duration_ns, [None], "it is open in the window");
    assert_eq!(
        t.memory.at_ns,
        [1_000],
        "what was allocated before is known"
    );
}

#[test]
fn the_manifest_is_that_of_the_window() {
    let manifest = trace().window(&[ProcessId(0)], 100_000, 200_000).manifest;
    assert_eq!((manifest.start_ns, manifest.end_ns), (100_000, 200_000));
    assert_eq!(manifest.start_unix_ns, Some(5_100_000));
    assert_eq!(manifest.processes.len(), 1);
    assert_eq!(manifest.devices.len(), 1);
    assert_eq!(manifest.queues.len(), 1);
}

#[test]
fn a_window_of_everything_is_everything() {
    let all = trace();
    assert_eq!(all.window(&[ProcessId(0), ProcessId(1)], 0, 1_000_000), all);
}

#[test]
fn counters_of_its_gpu_are_in_the_window_with_what_held_at_its_start() {
    let trace = Trace::from_text(
        "manifest start_ns=0 end_ns=1ms
        process id=0 pid=10\nprocess id=1 pid=11
        device id=0 process=0 uuid=aa\ndevice id=1 process=1 uuid=aa\ndevice id=2 process=0 uuid=bb
        counter id=1 name=power unit=watts device=0 source=driver
        counter id=2 name=power unit=watts device=2 source=driver
        counter id=3 name=stall unit=percent source=kernel
        counter_value counter=1 start_ns=10us value=100
        counter_value counter=1 start_ns=20us value=200
        counter_value counter=1 start_ns=150us value=300
        counter_value counter=1 start_ns=250us value=400
        counter_value counter=2 start_ns=10us value=1
        counter_value counter=3 start_ns=10us duration_ns=20us value=5
        counter_value counter=3 start_ns=90us duration_ns=20us value=6",
    )
    .expect("it is a trace");
    let window = trace.window(&[ProcessId(1)], 100_000, 200_000);
    let t = &window.tables;
    assert_eq!(t.counters.id, [CounterId(1), CounterId(3)]);
    // The other process' device is the same GPU.
    assert_eq!(t.counters.device, [Some(DeviceId(1)), None]);
    assert_eq!(t.counter_values.start_ns, [100_000, 150_000, 90_000]);
    assert_eq!(t.counter_values.value, [200.0, 300.0, 6.0]);
}
