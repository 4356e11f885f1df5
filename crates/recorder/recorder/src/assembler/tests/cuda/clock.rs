//! Tests the stated error bounds of device times that come on the host's clock.

use super::*;

#[test]
fn the_bound_of_device_times_comes_from_calls_and_waits() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(LAUNCH, 1, 1_000_000, 1_002_000),
        kernel(1, 1, 1_006_000, 1_050_000),
        wait(WaitKind::HostForQueue, 1, 2, 1_010_000, 1_058_000),
    ]);
    cuda.end(2_000_000);
    let (manifest, _) = cuda.finish();
    let clock = &manifest.devices[0].clock;
    assert_eq!(clock.method, ClockMethod::Brackets);
    assert_eq!(clock.error_ns, Some(8_000 + 200));
    assert_eq!(manifest.losses, []);
}

#[test]
fn a_wait_that_began_before_the_launch_had_returned_bounds_nothing() {
    // The wait is of another thread. If it began before the launch had returned, it may have returned while the
    // kernel ran.
    for (began_ns, expected) in [(1_001_000, None), (1_002_000, Some(8_000 + 200))] {
        let mut cuda = Cuda::new();
        cuda.batch(&[
            call(LAUNCH, 1, 1_000_000, 1_002_000),
            kernel(1, 1, 1_006_000, 1_050_000),
            wait(WaitKind::HostForQueue, 1, 2, began_ns, 1_058_000),
        ]);
        let (manifest, _) = cuda.finish();
        assert_eq!(manifest.devices[0].clock.error_ns, expected);
    }
}

#[test]
fn an_awaited_copy_and_an_awaited_event_bound_device_times_too() {
    let copy = |kind, memory, function| {
        let mut cuda = Cuda::new();
        cuda.event(CudaEvent::Route {
            route: hook::Route(2),
            queue: hook::Queue(1),
            kind,
            source: memory,
            destination: memory,
        });
        cuda.batch(&[
            call(function, 1, 1_000_000, 1_058_000),
            Recorded::Activity(Activity::Transfer {
                route: hook::Route(2),
                bytes: 64,
                span: span(1_006_000, 1_051_000),
                correlation: hook::Correlation(1),
                node: hook::GraphNode::NONE,
            }),
        ]);
        let (manifest, _) = cuda.finish();
        manifest.devices[0].clock.error_ns
    };
    use {MemoryPlace::*, TransferKind::*};
    assert_eq!(copy(DeviceToHost, Pageable, COPY), Some(7_000 + 200));
    assert_eq!(copy(HostToDevice, Pinned, COPY), Some(7_000 + 200));
    assert_eq!(copy(HostToDevice, Pageable, COPY), None, "it is staged");
    assert_eq!(copy(Copy, Device, COPY), None);
    assert_eq!(copy(DeviceToHost, Pageable, COPY_ASYNC), None);

    // The event is recorded between two kernels, of which only the first has to end.
    for (occurrence, expected) in [(3, Some(8_000 + 200)), (0, None)] {
        let mut cuda = Cuda::new();
        cuda.batch(&[
            call(LAUNCH, 1, 1_000_000, 1_002_000),
            kernel(1, 1, 1_006_000, 1_050_000),
            Recorded::Activity(Activity::EventRecord {
                event: hook::CudaEvent(5),
                occurrence,
                queue: hook::Queue(1),
                correlation: hook::Correlation(2),
            }),
            call(LAUNCH, 3, 1_005_000, 1_006_000),
            kernel(1, 3, 1_050_000, 1_099_000),
            Recorded::Activity(Activity::Wait {
                kind: WaitKind::HostForEvent,
                queue: hook::Queue::NONE,
                event: hook::CudaEvent(5),
                occurrence,
                span: span(1_010_000, 1_058_000),
                correlation: hook::Correlation(4),
            }),
        ]);
        let (manifest, _) = cuda.finish();
        assert_eq!(manifest.devices[0].clock.error_ns, expected);
    }
}

#[test]
fn a_wait_for_a_context_bounds_all_its_streams_and_those_of_no_other() {
    // Queues 1 and 2 are of one context. Queue 3 is of another, and a context without queues has nothing to do with
    // them.
    for (queue, expected) in [(1, Some(8_200)), (3, None), (0, None)] {
        let mut cuda = Cuda::new();
        cuda.event(CommonEvent::Queue {
            queue: hook::Queue(3),
            device: hook::Device(1),
            family: 2,
            index: 9,
            flags: 6,
            timestamp_bits: 64,
        });
        cuda.batch(&[
            call(LAUNCH, 1, 1_000_000, 1_002_000),
            kernel(2, 1, 1_006_000, 1_050_000),
            wait(WaitKind::HostForContext, queue, 2, 1_010_000, 1_058_000),
        ]);
        let (manifest, _) = cuda.finish();
        assert_eq!(manifest.devices[0].clock.error_ns, expected);
    }
}

#[test]
fn work_before_its_launch_is_counted() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(1, 1, 990, 1020)]);
    cuda.end(2000);
    let (manifest, _) = cuda.finish();
    assert_eq!(manifest.losses[0].kind, LossKind::PlausibleDeviceTimes);
    assert_eq!(manifest.losses[0].count, 1);
}

#[test]
fn a_record_that_has_come_is_of_work_that_had_ended() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(LAUNCH, 1, 1_000_000, 1_002_000),
        kernel(1, 1, 1_006_000, 1_050_000),
    ]);
    cuda.event(CudaEvent::Delivered {
        device: hook::Device(1),
        end_ns: 1_050_000,
        at_ns: 1_062_000,
    });
    // A damaged event bounds nothing.
    cuda.event(CudaEvent::Delivered {
        device: hook::Device(1),
        end_ns: i64::MIN,
        at_ns: i64::MAX,
    });
    let (manifest, _) = cuda.finish();
    assert_eq!(manifest.devices[0].clock.error_ns, Some(12_200));
}
