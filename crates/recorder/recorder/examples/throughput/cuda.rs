//! Fills a spool (the log of events that a recorded program writes) as the CUDA library would: launches of 40 kernels
//! in 25 sizes on two streams, with jitter, a wait at each 500th launch, calls and kernels in batches of their own,
//! the kernels half a batch later than their calls.

use crate::made_up;
use gapscope_spool::Spool;
use gapscope_spool::event::{
    Activity, ActivityBatch, Api, CommonEvent, CudaEvent, LaunchShape, Packer, Span, WaitKind,
};
use gapscope_spool::ids as hook;
use gapscope_spool::model::cuda::FunctionClass;

/// The number of kernels.
const KERNELS: u32 = 40;
/// The number of launch shapes: kernel, stream and sizes, which launches share.
const SHAPES: u32 = 50;
/// The activities in a batch.
const BATCH: u32 = 4096;
/// The id of the function that launches.
const LAUNCH: u32 = 1;
/// The id of the function that waits.
const SYNCHRONIZE: u32 = 2;

/// Writes activities into the spool in batches.
struct Batches<'a> {
    spool: &'a Spool,
    packer: Packer,
    /// Number of activities in the batches that were written.
    written: u64,
}

impl Batches<'_> {
    fn push(&mut self, activity: &Activity) {
        self.packer.push(activity);
        if self.packer.count() >= BATCH {
            self.write();
        }
    }

    fn write(&mut self) {
        let (first, count) = (self.written, self.packer.count());
        self.spool.write(&CudaEvent::Activities(ActivityBatch {
            first,
            count,
            bytes: self.packer.bytes(),
        }));
        self.written += u64::from(count);
        self.packer.clear();
    }
}

/// Returns the number of calls, kernels and waits.
pub fn fill(spool: &Spool, launches: u32) -> u64 {
    spool.write(&made_up::device(1, Api::Cuda, 1.0));
    for number in [1, 2] {
        spool.write(&made_up::queue(number, 1));
    }
    for (function, name) in [
        (LAUNCH, "cudaLaunchKernel"),
        (SYNCHRONIZE, "cudaStreamSynchronize"),
    ] {
        spool.write(&CudaEvent::Function {
            function: hook::Function(function),
            class: FunctionClass::from_function(name).unwrap_or_default(),
            name: name.into(),
        });
    }
    for kernel in 1..=KERNELS {
        let name = format!("_ZN2at6native{}kernel_{kernel:02}Ei", 9);
        spool.write(&made_up::kernel(kernel, &name));
    }
    for launch in 1..=SHAPES {
        spool.write(&CudaEvent::Launch {
            launch: hook::Launch(launch),
            shape: LaunchShape {
                kernel: hook::Kernel(1 + launch % KERNELS),
                queue: hook::Queue(1 + launch % 2),
                groups: [64 * launch, 1, 1],
                local_size: [128, 1, 1],
                static_shared_bytes: 0,
                dynamic_shared_bytes: 1024 * (launch % 3),
                local_bytes: 0,
                registers: 32,
            },
        });
    }
    let mut noise = 1u64;
    let mut jitter = move |below: i64| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (noise >> 40) as i64 % below
    };
    let mut batches = Batches {
        spool,
        packer: Packer::new(1 << 17),
        written: 0,
    };
    let (mut host_ns, mut device_ns, mut calls) = (1_000_000_000i64, 0i64, 0);
    let mut call = |function, correlation, start_ns, duration_ns| {
        calls += 1;
        spool.write(&CudaEvent::Called {
            function: hook::Function(function),
            span: Span {
                start_ns,
                duration_ns,
            },
            correlation: hook::Correlation(correlation),
            result: 0,
        });
    };
    for launch in 1..=launches {
        let (took, correlation) = (2_000 + jitter(700), launch * 2);
        call(LAUNCH, correlation, host_ns, took);
        let start_ns = device_ns.max(host_ns + 4_000 + jitter(300));
        let duration_ns = 1_500 + jitter(3_000);
        device_ns = start_ns + duration_ns;
        batches.push(&Activity::Kernel {
            launch: hook::Launch(1 + (launch * 7) % SHAPES),
            span: Some(Span {
                start_ns,
                duration_ns,
            }),
            correlation: hook::Correlation(correlation),
            node: hook::GraphNode::NONE,
        });
        host_ns += took + 1_000 + jitter(400);
        if launch % 500 == 0 {
            let (start_ns, duration_ns) = (host_ns, device_ns.max(host_ns) + 3_000 - host_ns);
            call(SYNCHRONIZE, correlation + 1, start_ns, duration_ns);
            batches.push(&Activity::Wait {
                kind: WaitKind::HostForQueue,
                queue: hook::Queue(1),
                event: hook::CudaEvent::NONE,
                occurrence: 0,
                span: Some(Span {
                    start_ns,
                    duration_ns,
                }),
                correlation: hook::Correlation(correlation + 1),
            });
            host_ns = start_ns + duration_ns + 2_000;
        }
    }
    batches.write();
    spool.write(&CommonEvent::ProcessEnd { at_ns: host_ns });
    batches.written + calls
}
