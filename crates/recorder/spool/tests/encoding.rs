//! Encodes events as bytes: each group survives a round trip, and frequent events are small.

use gapscope_spool::event::{
    CommonEvent, CudaEvent, Event, EventGroup, HostCallKind, Instance, LabelEdge, LabelScope,
    LossKind, Outcome, SemaphoreValue, Span, SubmitFunction, VulkanEvent,
};
use gapscope_spool::ids;
use std::borrow::Cow;

/// Eleven days after the start of the system.
const NOW_NS: i64 = 1_000_000_000_000_000;

fn span() -> Span {
    Span::between(NOW_NS, NOW_NS + 5_000)
}

fn submission() -> VulkanEvent<'static> {
    let instances = vec![Instance {
        instance: ids::Instance(20_000),
        recording: ids::CommandRecording(20_000),
    }];
    let semaphores = vec![SemaphoreValue {
        semaphore: ids::Semaphore(3),
        value: 20_000,
    }];
    VulkanEvent::Submit {
        submission: ids::Submission(7),
        function: SubmitFunction::QueueSubmit,
        queue: ids::Queue(1),
        span: span(),
        instances: Cow::Owned(instances),
        waits: Cow::Borrowed(&[]),
        signals: Cow::Owned(semaphores),
    }
}

fn call() -> VulkanEvent<'static> {
    VulkanEvent::HostCall {
        call: HostCallKind::WaitFences,
        function: None,
        span: span(),
        count: 1,
        busy_ns: 5_000,
        queue: Some(ids::Queue(1)),
        bytes: None,
        result: 0,
        waits_for: Some(ids::Submission(7)),
    }
}

fn label() -> CommonEvent<'static> {
    CommonEvent::Label {
        scope: LabelScope::Thread,
        edge: LabelEdge::Begin,
        text: ids::Text(40),
        at_ns: NOW_NS,
    }
}

/// The sizes are at most those of version 2.
#[test]
fn frequent_events_are_small() {
    let seen = VulkanEvent::InstanceEnd {
        instance: ids::Instance(20_000),
        outcome: Outcome::Timed,
        seen_ns: NOW_NS,
    };
    let called = CudaEvent::Called {
        function: ids::Function(40),
        span: span(),
        correlation: ids::Correlation(20_000),
        result: 0,
    };
    for (version_2, bytes) in [
        (35, submission().encoded_bytes()),
        (25, call().encoded_bytes()),
        (13, seen.encoded_bytes()),
        (12, label().encoded_bytes()),
        (16, called.encoded_bytes()),
    ] {
        let bytes = bytes.expect("a size");
        assert!(bytes <= version_2, "{bytes} bytes, {version_2} before");
    }
}

#[test]
fn events_come_back_as_they_were() {
    fn back<E: EventGroup>(event: &E) -> Option<String> {
        let mut space = [0; 256];
        let length = event.encode(&mut space).expect("it fits");
        Event::decode(E::GROUP, &space[..length]).map(|event| format!("{event:?}"))
    }
    let loss = CommonEvent::Loss {
        kind: LossKind::DispatchTimes,
        count: 7,
        reason: Cow::Borrowed("the sample buffer was full"),
    };
    let ends = CudaEvent::LaunchesEnd {
        below: ids::Launch(9),
    };
    assert_eq!(
        back(&loss),
        Some(format!("{:?}", Event::from(loss.clone())))
    );
    assert_eq!(
        back(&submission()),
        Some(format!("{:?}", Event::from(submission())))
    );
    assert_eq!(
        back(&ends),
        Some(format!("{:?}", Event::from(ends.clone())))
    );
}
