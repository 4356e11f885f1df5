//! Devices, streams, transfers, waits, memory and overheads.

use crate::stub::{Stub, Truth};
use gapscope_spool::event::{OverheadKind, PoolEdge, StreamKind, TransferKind, heap};

#[test]
fn devices_that_do_work_are_part_of_the_trace_and_others_are_not() {
    let stub = Stub::new().with("FAKE_CUDA_DEVICES", "4");
    let outcome = stub.run("launch:10 sync device:2 launch:5 sync");
    let process = outcome.whole();
    let mut ids: Vec<u32> = process.devices.iter().map(|(id, _, _)| *id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 3]);
    assert_eq!(process.devices[0].1, "Fake GPU");
    assert_eq!(process.devices[0].2, [150_000_000_000]);
    assert_eq!(process.capabilities, [(9, 0); 2]);
    let on = |device: u32| {
        process
            .kernels
            .iter()
            .filter(|k| process.queues[&k.shape.queue.0].0 == device)
            .count()
    };
    assert_eq!((on(1), on(3)), (10, 5));
}

#[test]
fn a_device_of_which_cupti_tells_late_has_its_name_nevertheless() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_DEVICE_RECORD", "late")
        .run("launch:10 sync flushes:2");
    let process = outcome.whole();
    assert_eq!(process.devices.len(), 1);
    assert_eq!(process.devices[0].1, "Fake GPU");
}

#[test]
fn streams_say_what_they_are() {
    let outcome = Stub::new().run("launch:1 threads:1:1 waits own-stream green sync");
    let process = outcome.whole();
    let mut kinds: Vec<_> = process
        .kernels
        .iter()
        .map(|k| process.streams[&k.shape.queue.0])
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            (StreamKind::Default, 0),
            (StreamKind::NonBlocking, -1),
            (StreamKind::Blocking, -1),
            // The thread's own default stream waits for the default stream, too.
            (StreamKind::Blocking, 0),
            (StreamKind::Default, 0),
            (StreamKind::NonBlocking, 0),
        ]
    );
}

#[test]
fn transfers_have_direction_bytes_and_the_times_of_the_device() {
    let outcome = Stub::new().run("copies sync");
    let process = outcome.whole();
    let kinds: Vec<_> = process
        .transfers
        .iter()
        .map(|t| (t.kind, t.bytes))
        .collect();
    assert_eq!(
        kinds,
        [
            (TransferKind::HostToDevice, 4096),
            (TransferKind::Fill, 1024),
            (TransferKind::DeviceToHost, 512),
        ]
    );
    for (transfer, truth) in process.transfers.iter().zip(outcome.truth_of("transfer")) {
        let span = transfer.span.expect("known times");
        assert_eq!(span, truth.span());
        assert_eq!(transfer.correlation, truth.correlation);
    }
}

#[test]
fn each_free_ends_the_allocation_of_its_address_at_that_time() {
    let outcome = Stub::new().run("memory pool");
    let process = outcome.whole();
    let bytes: Vec<_> = process
        .allocations
        .values()
        .map(|(heap, bytes, _)| (*heap, *bytes))
        .collect();
    assert_eq!(
        bytes,
        [
            (heap::DEVICE, 4096),
            (heap::DEVICE, 4096),
            (heap::DEVICE, 8192),
            (heap::DEVICE, 100),
            (heap::POOL, 1 << 20),
        ]
    );
    let freed: Vec<u32> = process.frees.iter().map(|(memory, _)| *memory).collect();
    assert_eq!(freed, [1, 2, 3, 5]);
    for (memory, at_ns) in &process.frees {
        assert!(*at_ns >= process.allocations[memory].2);
    }
    assert_eq!(process.pools, [(PoolEdge::Change, 1 << 20)]);
}

#[test]
fn memory_records_that_come_the_last_first_are_paired_by_their_times() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_ORDER", "reverse")
        .run("launch:1 memory");
    let process = outcome.only();
    assert_eq!(process.allocations.len(), 4);
    assert_eq!(
        process.frees.len() as u64
            + process.lost("memory frees", "their allocation was not recorded"),
        3
    );
    for (memory, at_ns) in &process.frees {
        assert!(
            *at_ns >= process.allocations[memory].2,
            "no memory is freed before it is allocated"
        );
    }
}

#[test]
fn copies_between_devices_are_on_their_queue_and_make_both_devices_part_of_the_trace() {
    let stub = Stub::new().with("FAKE_CUDA_DEVICES", "2");
    let outcome = stub.run("peer read sync");
    let process = outcome.whole();
    let mut copies: Vec<_> = process
        .transfers
        .iter()
        .map(|t| (t.kind, t.bytes, process.queues[&t.queue].0))
        .collect();
    copies.sort_unstable_by_key(|(_, bytes, ..)| *bytes);
    // The copy there ran on the second device's stream, the one back on the first one's.
    assert_eq!(
        copies,
        [
            (TransferKind::DeviceToHost, 256, 1),
            (TransferKind::PeerToPeer, 512, 1),
            (TransferKind::PeerToPeer, 4096, 2),
        ]
    );
    let truth = outcome.truth_of("transfer").into_iter();
    let mut truth: Vec<_> = truth.map(Truth::span).collect();
    let spans = process.transfers.iter().map(|t| t.span);
    let mut spans: Vec<_> = spans.map(|span| span.expect("known times")).collect();
    truth.sort_unstable_by_key(|span| span.start_ns);
    spans.sort_unstable_by_key(|span| span.start_ns);
    assert_eq!(spans, truth);
    assert_eq!(process.devices.len(), 2);
}

#[test]
fn managed_memory_is_told_from_the_devices_own() {
    let outcome = Stub::new().run("managed memory");
    let process = outcome.only();
    let heaps: Vec<u32> = process
        .allocations
        .values()
        .map(|(heap, ..)| *heap)
        .collect();
    assert_eq!(heaps[0], heap::MANAGED);
    assert!(heaps[1..].iter().all(|h| *h == heap::DEVICE));
    assert_eq!(process.frees[0].0, 1);
}

#[test]
fn parts_of_a_gpu_have_names_and_uuids_of_their_own() {
    let stub = Stub::new().with("FAKE_CUDA_MIG", "1");
    let outcome = stub.run("launch:5 sync");
    let process = outcome.whole();
    let [(_, name, _)] = &process.devices[..] else {
        panic!("{:?}", process.devices)
    };
    assert_eq!(name, "Fake GPU MIG 1g.18gb 7/1");
    assert_eq!(process.uuids, [[0x70; 16]]);
    assert_eq!(process.partitions, [true]);
}

#[test]
fn buffers_of_threads_are_asked_for_where_cupti_does_not_give_them_by_itself() {
    for (version, asked) in [("18", 0), ("21", 1), ("28", 1), ("130001", 0)] {
        let stub = Stub::new().with("FAKE_CUDA_API_VERSION", version);
        let outcome = stub.run("launch:5 attribute:9 attribute:5 sync");
        assert!(outcome.status.success());
        let expected = format!("attribute 9: {asked}\nattribute 5: 1\n");
        assert_eq!(outcome.output, expected, "{version}");
        assert_eq!(outcome.only().kernels.len(), 5);
    }
}

#[test]
fn lazy_loading_is_an_overhead_of_the_thread_that_paid_it() {
    let outcome = Stub::new().run("launch:10 sync");
    let process = outcome.whole();
    assert_eq!(
        process.overheads,
        [(OverheadKind::FunctionLoading, process.pid)]
    );
}
