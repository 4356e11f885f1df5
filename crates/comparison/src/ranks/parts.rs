//! Finds the parts of each device in collectives (operations of several ranks): the kernels of NCCL, each with the
//! calls that launched it. Ranges are named spans that NCCL marks on the threads of the host.
//!
//! A kernel belongs to the range of NCCL in which its launching call lies. In a group (`ncclGroupStart` to `ncclGroupEnd`) with several
//! communicators, a kernel has the one that all calls of its kind name. Where they name several, its communicator is not known. Kernels
//! of graphs are launched outside of any range, and have a communicator only where the process never made another one.

use super::nccl::{Call, Member};
use super::part::{CollectivePart, Communicator, Message};
use super::ranges::{Group, Ranges};
use gapscope_timeline::collectives::{
    ALL_TO_ALL, ProcessDevice, SEND_RECV, devices_of_queues, kind_of,
};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel of NCCL, with the host call that launched it.
struct Kernel {
    interval: Interval,
    kind: &'static str,
    /// The device that ran the kernel.
    device: DeviceId,
    process: ProcessId,
    /// The queue that ran the kernel; `None` where it is not known.
    queue: Option<QueueId>,
    /// The launching thread's id, the number of the call's group among those of the thread, and the time of the
    /// launch; `None` where the launch is not known.
    launched: Option<(ThreadId, usize, i64)>,
}

/// Returns the parts in collectives of each device, in order of time.
pub(super) fn parts(
    timeline: &Timeline,
    ranges: &Ranges,
) -> BTreeMap<ProcessDevice, Vec<CollectivePart>> {
    let kernels = kernels(timeline, ranges);
    let mut called_by_kernel: Vec<Option<Called>> = vec![None; kernels.len()];
    let mut groups: BTreeMap<(ProcessId, ThreadId, usize), Vec<usize>> = BTreeMap::new();
    for (at, kernel) in kernels.iter().enumerate() {
        if let Some((thread, group, _)) = kernel.launched {
            let group = groups.entry((kernel.process, thread, group)).or_default();
            group.push(at);
        }
    }
    for ((process, thread, _), mut of_group) in groups {
        of_group.sort_by_key(|at| kernels[*at].launched.map(|(.., at_ns)| at_ns));
        let Some((.., at_ns)) = kernels[of_group[0]].launched else {
            continue;
        };
        let Some((_, group)) = ranges.launched_at((process, thread), at_ns) else {
            continue;
        };
        let devices: BTreeSet<DeviceId> = of_group.iter().map(|at| kernels[*at].device).collect();
        for device in &devices {
            let own = of_group.iter().filter(|at| kernels[**at].device == *device);
            let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for at in own {
                kinds.entry(kernels[*at].kind).or_default().push(*at);
            }
            for (kind, of_kind) in kinds {
                let calls = called(group, kind, devices.len(), of_kind.len(), |communicator| {
                    size(ranges, process, communicator)
                });
                for (at, call) in of_kind.into_iter().zip(calls) {
                    called_by_kernel[at] = Some(call);
                }
            }
        }
    }
    let mut only: BTreeMap<ProcessId, Option<Communicator>> = BTreeMap::new();
    let mut parts: BTreeMap<ProcessDevice, Vec<CollectivePart>> = BTreeMap::new();
    for (kernel, call) in kernels.into_iter().zip(called_by_kernel) {
        let process = kernel.process;
        let only = || *(only.entry(process)).or_insert_with(|| only_communicator(ranges, process));
        let of_device = parts.entry((process, kernel.device)).or_default();
        let call = call.unwrap_or_else(|| Called {
            kind: kernel.kind,
            ..Called::default()
        });
        of_device.push(CollectivePart {
            interval: kernel.interval,
            kind: call.kind,
            communicator: call.communicator.map(Communicator::Number).or_else(only),
            bytes: call.bytes,
            messages: call.messages,
            before: None,
            queue: kernel.queue,
            operation: call.operation,
        });
    }
    parts
}

/// Returns the kernels of NCCL in order of time.
fn kernels(timeline: &Timeline, ranges: &Ranges) -> Vec<Kernel> {
    let trace = timeline.trace;
    let names = &trace.tables.kernels.name;
    let kinds: Vec<Option<&'static str>> = names.iter().map(|name| kind_of(name)).collect();
    let submissions = &trace.tables.submissions;
    let devices = devices_of_queues(timeline);
    let mut kernels = Vec::new();
    timeline.each_work(|work| {
        if work.kind() != WorkKind::Dispatch {
            return;
        }
        let Some(kind) = timeline.kernel_row(work.row()).and_then(|row| kinds[row]) else {
            return;
        };
        let queue = timeline.queue_of(work) as usize;
        let (process, device) = devices.get(queue).copied().unwrap_or_default();
        let row = timeline.submission_of(work) as usize;
        let launched = (submissions.thread.get(row)).and_then(|thread| {
            let at_ns = submissions.start_ns[row];
            let (group, _) = ranges.launched_at((submissions.process[row], thread), at_ns)?;
            Some((thread, group, at_ns))
        });
        kernels.push(Kernel {
            interval: work.interval,
            kind,
            device,
            process,
            queue: (timeline.queues.get(queue)).and_then(|queue| queue.row.and(Some(queue.id))),
            launched,
        });
    });
    kernels
}

/// The properties of a kernel that its launching calls tell.
#[derive(Debug, Clone, Default)]
struct Called {
    kind: &'static str,
    /// NCCL's number of the communicator; `None` where it is not told, or calls name several.
    communicator: Option<u64>,
    bytes: Option<u64>,
    /// The messages that the kernel sends and receives; empty where it has none, or they are not known.
    messages: Box<[Message]>,
    /// The number of the operation, or of the first of several in one kernel.
    operation: Option<u64>,
}

/// Returns the properties that the calls of a group tell of its `count` kernels of a kind on one of so many devices,
/// in the order of their launches.
fn called(
    group: &Group,
    kind: &'static str,
    devices: usize,
    count: usize,
    size: impl Fn(Option<u64>) -> Option<u32>,
) -> Vec<Called> {
    // NCCL does everything by messages in one kernel, gathers and scatters too.
    let by_messages =
        |call: &Call| matches!(call.kind, SEND_RECV | ALL_TO_ALL | "Gather" | "Scatter");
    let mut calls: Vec<&Call> = (group.calls.iter())
        .filter(|call| call.kind == kind || kind == SEND_RECV && by_messages(call))
        .collect();
    if calls.is_empty() {
        // A kernel may do collectives of several kinds, and has the name of one.
        calls = group.calls.iter().collect();
    }
    let of_kind = calls.iter().all(|call| call.kind == kind);
    let communicators: BTreeSet<Option<u64>> = calls.iter().map(|call| call.communicator).collect();
    let communicator = match communicators.len() {
        1 => calls[0].communicator,
        _ => {
            // The kernel does not get the process's only communicator either, as several are named.
            let unknown = Called {
                kind,
                ..Called::default()
            };
            return vec![unknown; count];
        }
    };
    let one = Called {
        kind,
        communicator,
        operation: calls[0].operation,
        ..Called::default()
    };
    if kind == SEND_RECV {
        let mut one = one;
        if let ([call], 1) = (calls.as_slice(), count)
            && call.kind != SEND_RECV
        {
            (one.kind, one.bytes) = (call.kind, call.bytes);
        } else if (count, devices) == (1, 1) && of_kind {
            one = messages(one, &calls, size(communicator));
        }
        return vec![one; count];
    }
    let each = calls.len() / devices;
    if !of_kind || each * devices != calls.len() {
        return vec![one; count];
    }
    if count == each && devices == 1 {
        let with = |call: &&Call| Called {
            bytes: call.bytes,
            operation: call.operation,
            ..one.clone()
        };
        return calls.iter().map(with).collect();
    }
    let same = calls.iter().all(|call| call.bytes == calls[0].bytes);
    let bytes = match count {
        _ if devices > 1 && !same => None,
        1 if devices == 1 => (calls.iter())
            .map(|call| call.bytes)
            .try_fold(0u64, |sum, bytes| sum.checked_add(bytes?)),
        1 => (calls[0].bytes).and_then(|bytes| bytes.checked_mul(each as u64)),
        _ if count == each => calls[0].bytes,
        _ => None,
    };
    vec![Called { bytes, ..one }; count]
}

/// Returns the properties of a kernel of messages. The kernel is an exchange among all ranks where it has a message
/// to and from every rank.
fn messages(mut one: Called, calls: &[&Call], size: Option<u32>) -> Called {
    let messages: Option<Vec<Message>> = (calls.iter())
        .map(|call| {
            let (peer, sends) = call.peer?;
            let bytes = call.bytes;
            Some(Message { peer, sends, bytes })
        })
        .collect();
    let Some(messages) = messages else {
        return one;
    };
    let peers = |sends: bool| -> BTreeSet<u32> {
        let of = messages.iter().filter(|m| m.sends == sends);
        of.map(|m| m.peer).collect()
    };
    let (to, from) = (peers(true), peers(false));
    let size = size.unwrap_or(0) as usize;
    // A rank's own part need not be a message. Between two ranks that is a plain exchange.
    let all = size > 1 && (to.len() == size || to.len() + 1 == size && size > 2);
    if all && to == from && messages.len() == to.len() + from.len() {
        let first = messages[0].bytes;
        one.bytes = first.filter(|_| messages.iter().all(|m| m.bytes == first));
        one.kind = ALL_TO_ALL;
        return one;
    }
    one.messages = messages.into();
    one
}

/// Returns the number of ranks of a communicator, by what a process says of it. A communicator without a number is
/// the only one that the process made.
fn size(ranges: &Ranges, process: ProcessId, communicator: Option<u64>) -> Option<u32> {
    if communicator.is_none() {
        return match ranges.made(process) {
            [one] => one.size,
            _ => None,
        };
    }
    let mut members = ranges.members(process);
    members.find(|m| m.communicator == communicator)?.size
}

/// Returns the communicator of a process that never made another one.
fn only_communicator(ranges: &Ranges, process: ProcessId) -> Option<Communicator> {
    let made = ranges.made(process);
    let Member {
        communicator, size, ..
    } = made.first()?;
    let number = communicator.or_else(|| {
        let of_process = ranges.calls.iter().filter(|call| call.process == process);
        let named: BTreeSet<u64> = of_process.filter_map(|c| c.call.communicator).collect();
        named.first().copied().filter(|_| named.len() == 1)
    });
    let same =
        |member: &Member| member.communicator.is_some() && member.communicator == *communicator;
    match made {
        [_] if size.is_some() => Some(number.map_or(Communicator::Only, Communicator::Number)),
        all if all.iter().all(same) => number.map(Communicator::Number),
        _ => None,
    }
}

/// Returns the place of a process in each of its communicators. If it has `several` devices, which of them is which member is not known.
pub(super) fn members(
    ranges: &Ranges,
    process: ProcessId,
    several: bool,
) -> BTreeMap<Communicator, Member> {
    let mut members: BTreeMap<Communicator, Member> = BTreeMap::new();
    let only = only_communicator(ranges, process);
    for member in ranges.members(process) {
        let Some(communicator) = member.communicator.map(Communicator::Number).or(only) else {
            continue;
        };
        let place = members.entry(communicator).or_insert(*member);
        place.size = place.size.or(member.size);
        place.rank = place.rank.or(member.rank).filter(|_| !several);
    }
    members
}
