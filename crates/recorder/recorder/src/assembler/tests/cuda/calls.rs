//! Tests the rows of host calls, of time that the driver took, and of memory.

use super::*;
use gapscope_trace::ids::{QueueId, ThreadId};

#[test]
fn other_calls_are_host_calls_and_polls_are_folded() {
    let mut cuda = Cuda::new();
    let waited = |correlation, start_ns, end_ns| {
        wait(WaitKind::HostForQueue, 2, correlation, start_ns, end_ns)
    };
    cuda.batch(&[
        call(MALLOC, 1, 1000, 1500),
        polls(QUERY, between(1600, 1601), 1),
        polls(QUERY, between(1700, 1702), 1),
    ]);
    cuda.batch(&[call(SYNCHRONIZE, 4, 2000, 2500), waited(4, 2001, 2499)]);
    cuda.batch(&[
        waited(5, 3001, 3499),
        call(SYNCHRONIZE, 5, 3000, 3500),
        call(SYNCHRONIZE, 6, 4000, 4500),
    ]);
    cuda.end(9000);
    let (_, tables) = cuda.finish();
    let h = &tables.host_calls;
    use HostCallKind::*;
    assert_eq!(
        h.call,
        [
            AllocateMemory,
            PollEvent,
            WaitQueueIdle,
            WaitQueueIdle,
            WaitQueueIdle
        ]
    );
    let mut queues: Vec<_> = (0..h.len())
        .map(|row| (h.start_ns[row], h.queue.at(row)))
        .collect();
    queues.sort_unstable();
    let queue = Some(QueueId(1));
    assert_eq!(
        queues,
        [
            (1000, None),
            (1600, None),
            (2000, queue),
            (3000, queue),
            (4000, None)
        ]
    );
    assert_eq!(
        (h.count[1], h.start_ns[1], h.duration_ns[1], h.busy_ns[1]),
        (2, 1600, 102, 2)
    );
    assert_eq!(h.function[0].as_deref(), Some("cudaMalloc"));
}

#[test]
fn polls_that_come_folded_go_on_where_the_last_ones_ended() {
    let mut cuda = Cuda::new();
    let polls = |start_ns, end_ns, count| polls(QUERY, between(start_ns, end_ns), count);
    cuda.batch(&[polls(1_000, 90_000, 40), polls(150_000, 190_000, 20)]);
    // The records come much later, after another call.
    cuda.batch(&[
        polls(900_000, 910_000, 1),
        call(MALLOC, 9, 920_000, 921_000),
    ]);
    cuda.end(2_000_000);
    let (_, tables) = cuda.finish();
    let h = &tables.host_calls;
    assert_eq!(h.count, [60, 1, 1]);
    assert_eq!(h.start_ns, [1_000, 900_000, 920_000]);
    assert_eq!(h.duration_ns[0], 189_000);
    assert_eq!((h.busy_ns[0], h.result[0]), (60, 600));
}

#[test]
fn polls_of_different_outcomes_are_different_rows() {
    let mut cuda = Cuda::new();
    let polls = |start_ns, count, result| {
        Recorded::Event(
            CudaEvent::Polled {
                function: hook::Function(QUERY),
                thread: hook::Thread(10),
                span: between(start_ns, start_ns + 500),
                count,
                busy_ns: 500,
                result,
            }
            .into(),
        )
    };
    cuda.batch(&[
        polls(1_000, 40, 600),
        polls(2_000, 7, 600),
        polls(3_000, 1, 0),
        polls(4_000, 2, 0),
        polls(5_000, 3, 600),
    ]);
    let (_, tables) = cuda.finish();
    let h = &tables.host_calls;
    assert_eq!(h.result, [600, 0, 600]);
    assert_eq!(h.count, [47, 3, 3]);
}

#[test]
fn a_wait_for_an_execution_context_is_a_wait_for_a_device_at_once() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(WAIT_EXECUTION_CONTEXT, 1, 1000, 14_000)]);
    let h = &cuda.tables.host_calls;
    assert_eq!(h.call, [HostCallKind::WaitDeviceIdle]);
    assert_eq!(
        h.function[0].as_deref(),
        Some("cudaExecutionCtxSynchronize")
    );
    // A call of an unknown function is a call all the same.
    cuda.batch(&[call(999, 2, 20_000, 21_000)]);
    assert_eq!(cuda.tables.host_calls.call[1], HostCallKind::OtherCall);
}

#[test]
fn time_that_no_thread_is_named_for_is_of_an_unknown_one() {
    let mut cuda = Cuda::new();
    let overhead = |thread, start_ns| {
        Recorded::Activity(Activity::Overhead {
            kind: OverheadKind::BufferFlush,
            thread: hook::Thread(thread),
            span: span(start_ns, start_ns + 100),
        })
    };
    cuda.batch(&[overhead(0, 1_000), overhead(10, 2_000)]);
    cuda.end(9_000);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.host_calls.thread, [None, Some(ThreadId(10))]);
}

#[test]
fn a_pool_is_device_memory_of_its_size() {
    let mut cuda = Cuda::new();
    for (edge, bytes, at_ns) in [
        (PoolEdge::Change, 100, 1),
        (PoolEdge::Change, 300, 2),
        (PoolEdge::Change, 300, 3),
        // The time was not delivered; the next event has the size of the pool.
        (PoolEdge::Change, 500, 0),
        (PoolEdge::End, 0, 4),
    ] {
        cuda.event(CudaEvent::Pool(PoolState {
            pool: hook::Pool(1),
            device: hook::Device(1),
            edge,
            bytes,
            at_ns,
        }));
    }
    let (manifest, tables) = cuda.finish();
    assert_eq!(tables.memory.bytes, [100, 100, 300, 300]);
    assert_eq!(tables.memory.at_ns, [1, 2, 2, 4]);
    let lost = manifest
        .losses
        .iter()
        .find(|l| l.kind == LossKind::MemoryEvents);
    assert_eq!(lost.map(|l| l.count), Some(1));
}
