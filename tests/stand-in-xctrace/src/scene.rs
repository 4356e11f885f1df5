//! Invented work of a Mac. Times are nanoseconds from the trace's start.

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The system's id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A thread of the recorded process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The system's id.
    pub tid: u64,
    /// Its name.
    pub name: String,
}

/// The kind of work that an encoder encodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncoderKind {
    /// Dispatches.
    Compute,
    /// Copies and fills.
    Blit,
    /// Draws.
    Render,
}

/// An encoder, and when the GPU ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoder {
    /// Metal's id.
    pub id: u64,
    /// The kind of work.
    pub kind: EncoderKind,
    /// The label that the program set; may be empty.
    pub label: String,
    /// The runs on the GPU.
    pub gpu: Vec<GpuRow>,
}

/// A run on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuRow {
    /// When the GPU started.
    pub start_ns: i64,
    /// How long it ran.
    pub duration_ns: i64,
    /// How deep it is nested.
    pub depth: u64,
}

/// GPU work of another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherWork {
    /// The process.
    pub process: Process,
    /// When the GPU started it.
    pub start_ns: i64,
    /// How long it ran.
    pub duration_ns: i64,
}

/// A debug group of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugGroup {
    /// When it was pushed.
    pub start_ns: i64,
    /// How long it was open.
    pub duration_ns: i64,
    /// Its text.
    pub text: String,
}

/// An allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// When it was made.
    pub at_ns: i64,
    /// How long it lived, if it was freed.
    pub lifetime_ns: Option<i64>,
    /// Its size.
    pub bytes: u64,
}

/// A committed command buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandBuffer {
    /// Metal's id.
    pub id: u64,
    /// When it was created.
    pub created_ns: i64,
    /// When it was committed.
    pub committed_ns: i64,
    /// When it was seen finished.
    pub completed_ns: Option<i64>,
    /// The label that the program set; may be empty.
    pub label: String,
    /// Its encoders.
    pub encoders: Vec<Encoder>,
}

/// A recording of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// The recorded process.
    pub process: Process,
    /// Its arguments as one text.
    pub arguments: String,
    /// How it ended.
    pub exit_status: i32,
    /// Its main thread.
    pub thread: Thread,
    /// Nanoseconds of the recording.
    pub duration_ns: i64,
    /// Mach's absolute time at the start, in ticks of 125/3 ns.
    pub epoch_ticks: u64,
    /// Its command buffers.
    pub command_buffers: Vec<CommandBuffer>,
    /// GPU work of other processes.
    pub others: Vec<OtherWork>,
    /// Debug groups of the program on its main thread.
    pub debug_groups: Vec<DebugGroup>,
    /// Signposts, in the order of time.
    pub signposts: Vec<Signpost>,
    /// Names of its compute shaders.
    pub shaders: Vec<String>,
    /// Its allocations.
    pub allocations: Vec<Allocation>,
}

/// A signpost of the program's main thread (`os_signpost`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signpost {
    /// When it was emitted.
    pub at_ns: i64,
    /// `Begin`, `End` or `Event`.
    pub event_type: &'static str,
    /// The id by which ends find their begins.
    pub id: u64,
    /// The subsystem that emitted it.
    pub subsystem: &'static str,
    /// Its message; empty at ends.
    pub message: String,
}

/// The first id of resources, encoders and command buffers, which the machine counts together.
const FIRST_ID: u64 = 0x15_4d18_9050;

impl Scene {
    /// Creates a process that commits `count` command buffers of one compute encoder each, a millisecond apart, and waits for each.
    /// Command buffer n is created at n ms + 100 us, committed 300 us later, starts 50 us after that, runs for 200 us + n ns, and is seen
    /// finished 40 us after its end.
    pub fn chain(count: u64) -> Scene {
        let command_buffers = (0..count)
            .map(|n| {
                let created_ns = n as i64 * 1_000_000 + 100_000;
                let committed_ns = created_ns + 300_000;
                let start_ns = committed_ns + 50_000;
                let duration_ns = 200_000 + n as i64;
                CommandBuffer {
                    id: FIRST_ID + 2 * n,
                    created_ns,
                    committed_ns,
                    completed_ns: Some(start_ns + duration_ns + 40_000),
                    label: String::new(),
                    encoders: vec![Encoder {
                        id: FIRST_ID + 2 * n + 1,
                        kind: EncoderKind::Compute,
                        label: String::new(),
                        gpu: vec![GpuRow {
                            start_ns,
                            duration_ns,
                            depth: 0,
                        }],
                    }],
                }
            })
            .collect();
        Scene {
            process: Process {
                pid: 99926,
                name: "python".to_owned(),
            },
            arguments: "train.py --steps 3".to_owned(),
            exit_status: 0,
            thread: Thread {
                tid: 0x11a_b5b7,
                name: "Main Thread".to_owned(),
            },
            duration_ns: count as i64 * 1_000_000 + 1_000_000,
            epoch_ticks: 2_897_656_234_073,
            command_buffers,
            others: Vec::new(),
            debug_groups: Vec::new(),
            signposts: Vec::new(),
            shaders: Vec::new(),
            allocations: Vec::new(),
        }
    }

    /// Creates the same without labels of its own, under the SDK's labels `eager` and `compiled` in turn, each from the command buffer's
    /// creation until it was seen finished.
    pub fn chain_under_signposts(count: u64) -> Scene {
        let mut scene = Scene::chain(count);
        let ways = ["eager", "compiled"].into_iter().cycle();
        for ((command_buffer, way), id) in scene.command_buffers.iter().zip(ways).zip(1..) {
            let post = |at_ns, event_type, message: &str| Signpost {
                at_ns,
                event_type,
                id,
                subsystem: "gapscope",
                message: message.to_owned(),
            };
            let ended_ns = command_buffer
                .completed_ns
                .unwrap_or(command_buffer.committed_ns);
            scene.signposts.extend([
                post(command_buffer.created_ns, "Begin", way),
                post(ended_ns, "End", ""),
            ]);
        }
        scene
    }

    /// Creates the same with labels `step N` for command buffers and `matmul N` for their encoders.
    pub fn labelled_chain(count: u64) -> Scene {
        let mut scene = Scene::chain(count);
        for (n, command_buffer) in scene.command_buffers.iter_mut().enumerate() {
            command_buffer.label = format!("step {n}");
            for encoder in &mut command_buffer.encoders {
                encoder.label = format!("matmul {n}");
            }
        }
        scene
    }
}
