//! The text form: valid and invalid input, and round trips.

use gapscope_trace::Trace;
use gapscope_trace::manifest::{Exit, SamplingMode};
use gapscope_trace::tables::{HostCallKind, Timing};

fn error(text: &str) -> String {
    Trace::from_text(text)
        .expect_err("it must be refused")
        .to_string()
}

#[test]
fn rows_and_manifest_are_read() {
    let trace = Trace::from_text(
        r#"
        # A comment.
        manifest sampling_mode=dispatch-serialised start_ns=0 end_ns=1ms exit.code=3 host.cores=8
        manifest command=python command="my program.py" command=5   # and another
        device id=1 api=vulkan name="Some GPU" clock.method=calibrated clock.error_ns=1.5us heaps=1024 heaps=5
        queue id=1 device=1 capabilities=compute capabilities=transfer name=5
        kernel id=1 name="sin \"f32\"" name_source=entry-point
        command_buffer id=7 queue=1 start_ns=0 duration_ns=1ms
        command_buffer id=8 queue=1
        dispatch command_buffer=7 queue=1 kernel=1 start_ns=100us duration_ns=1.5us
        host_call thread=7 call=wait-fences start_ns=0 duration_ns=0.1ms
        loss what="dispatch times" count=3 reason="the device was lost"
        unmeasured what=temperature reason="the driver does not tell it"
        "#,
    )
    .expect("it is a trace");
    let m = &trace.manifest;
    assert!(m.complete);
    assert_eq!(m.sampling_mode, SamplingMode::DispatchSerialised);
    assert_eq!(m.end_ns, 1_000_000);
    assert_eq!(m.exit, Some(Exit::Code(3)));
    assert_eq!(m.host.cores, Some(8));
    assert_eq!(m.command, ["python", "my program.py", "5"]);
    assert_eq!(m.devices[0].clock.error_ns, Some(1_500));
    assert_eq!(m.devices[0].heaps, [1024, 5]);
    assert_eq!(m.queues[0].name.as_deref(), Some("5"));
    assert_eq!(m.losses[0].count, 3);
    assert_eq!(m.unmeasured[0].what, "temperature");
    let t = &trace.tables;
    assert_eq!(t.kernels.name, ["sin \"f32\"".into()]);
    assert_eq!(
        t.command_buffers.timing,
        [Timing::Measured, Timing::Unknown]
    );
    assert_eq!(t.dispatches.start_ns, [Some(100_000)]);
    assert_eq!(t.dispatches.duration_ns, [Some(1_500)]);
    assert_eq!(t.dispatches.label, [None]);
    assert_eq!(t.host_calls.call, [HostCallKind::WaitFences]);
    assert_eq!(t.host_calls.count, [1]);
    assert_eq!(t.host_calls.busy_ns, [100_000]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    assert_eq!(
        error("queue id=1\n\nkernel id=x"),
        "line 3: `x` is not a value of `id`"
    );
    assert!(error("dispach kernel=1").starts_with("line 1: `dispach` begins no row"));
    assert!(error("dispatch krnel=1").contains("has no column `krnel`; it has command_buffer,"));
    assert!(error("queue devise=1").contains("has no `devise`"));
    assert!(error("dispatch kernel=1 kernel=2").contains("twice"));
    assert!(error("queue id=1 id=2").contains("twice"));
    assert!(error("kernel name=\"sin").contains("not closed"));
    assert!(error("kernel name=\"sin\"cos").contains("follows"));
    assert!(error("kernel id").contains("column=value"));
    assert!(error("host_call call=wait-fence").contains("not a value of `call`"));
    assert!(error("manifest exit.cod=1").contains("not a value of `exit.cod`"));
    assert!(error("manifest start_ns=0.5ns").contains("not a whole number"));
    assert!(error("manifest start_ns=us").contains("not a time"));
    assert!(error("manifest start_ns=5min").contains("no known unit"));
    assert!(error("dispatch start_ns=10000000000s").contains("not a value"));
}

#[test]
fn the_empty_text_is_an_empty_complete_trace() {
    let trace = Trace::from_text("").expect("it is a trace");
    assert!(trace.manifest.complete);
    assert_eq!(Trace::from_text(&trace.to_text()), Ok(trace));
}
