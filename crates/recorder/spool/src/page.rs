//! Defines the control page of a process, which the hooks (gapscope's libraries in the process) and the session (the
//! process of `gapscope record`) share.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// The mapped page that a process and the session share. Either side may change any field at any time.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Page {
    /// Tells a page from other bytes; written last.
    pub(crate) magic: AtomicU64,
    /// The version of the spool.
    pub(crate) version: AtomicU32,
    /// The id of the process.
    pub pid: AtomicU32,
    /// The start of the process's recording, on the host's monotonic clock.
    pub start_ns: AtomicI64,
    /// The sequence number of the next record.
    pub next_sequence: AtomicU64,
    /// The bytes of chunk files that the process has created.
    pub bytes_created: AtomicU64,
    /// The bytes of chunk files that the session has read and deleted.
    pub bytes_drained: AtomicU64,
    /// Records that were dropped because the spool was at its limit or the disk was full. They have sequence numbers.
    pub dropped: AtomicU64,
    /// 1 while the hooks record.
    pub recording: AtomicU32,
    /// Incremented by the session at each drain, so that a process can tell whether it is being drained.
    pub drains: AtomicU32,
    /// The number of windows (`start_capture`) that the process has begun.
    pub captures: AtomicU32,
    /// The number of windows that the session has finished; they are numbered from 1 and finished in order.
    pub captures_finished: AtomicU32,
    /// Bit `n % 64` is set when the session could not write window `n`.
    pub captures_failed: AtomicU64,
    /// Rank (number in a distributed program) of the process plus one; 0 when it has none.
    pub(crate) rank_and_one: AtomicU32,
    /// The number of ranks; meaningless without a rank.
    pub(crate) world_size: AtomicU32,
    /// The local rank plus one; 0 when unknown.
    pub(crate) local_rank_and_one: AtomicU32,
    /// The number of forked processes that could not create their spool: nothing of them is recorded.
    pub unrecorded_children: AtomicU64,
    /// The PID namespace of `pid`, as in [`pid_namespace`].
    pub pid_namespace: AtomicU64,
    /// The number of forked processes that filter their system calls and have begun no spool for that reason.
    pub filtered_children: AtomicU64,
    /// 1 once the session has seen that the process filters its system calls: from then on the hook avoids those that
    /// it can do without.
    pub filters_system_calls: AtomicU32,
    /// The version of the pool whose first page this is; 0 in a file.
    pub(crate) pool_version: AtomicU32,
    /// 1 once a process has claimed the pool.
    pub(crate) claimed: AtomicU32,
    /// 1 once nothing will be read from the pool any more.
    pub(crate) finished: AtomicU32,
    /// 1 where the times of the process are known to be on the session's clock.
    pub on_session_clock: AtomicU32,
}
