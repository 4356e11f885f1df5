//! Tests each capability on a real device, which may be a software GPU, by the features that it is created with.

use super::{Capability, Profiler};
use crate::kernel_profile::{Profile, Sampling, Snapshot, host_now_ns};
use ::wgpu::*;
use std::sync::Arc;

const SHADER: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(64)
fn spin(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var i = 0u; i < 200u; i++) { x[id.x] = x[id.x] * 0.5 + 1.0; }
}
";

const GROUPS: u32 = 64;

struct Gpu {
    device: Device,
    queue: Queue,
    pipeline: ComputePipeline,
    bindings: BindGroup,
}

/// Opens a device with `features`; `None` if there is no GPU and none is required.
fn gpu(features: Features) -> Option<Gpu> {
    let instance = Instance::new(InstanceDescriptor::new_without_display_handle());
    let adapters = pollster::block_on(instance.enumerate_adapters(Backends::PRIMARY));
    let Some(adapter) = adapters.first() else {
        let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|value| value == "1");
        assert!(!required, "there is no GPU adapter");
        eprintln!("skipped: there is no GPU adapter");
        return None;
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&DeviceDescriptor {
        required_features: features,
        ..Default::default()
    }))
    .expect("the software GPU has all timestamps");
    let module = device.create_shader_module(ShaderModuleDescriptor {
        label: None,
        source: ShaderSource::Wgsl(SHADER.into()),
    });
    let pipeline = device.create_compute_pipeline(&ComputePipelineDescriptor {
        label: Some("spin"),
        layout: None,
        module: &module,
        entry_point: Some("spin"),
        compilation_options: Default::default(),
        cache: None,
    });
    let buffer = device.create_buffer(&BufferDescriptor {
        label: None,
        size: u64::from(GROUPS) * 64 * 4,
        usage: BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    let bindings = device.create_bind_group(&BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[BindGroupEntry {
            binding: 0,
            resource: buffer.as_entire_binding(),
        }],
    });
    Some(Gpu {
        device,
        queue,
        pipeline,
        bindings,
    })
}

impl Gpu {
    fn profiler(&self) -> Profiler {
        let profile = Arc::new(Profile::new());
        let profiler = Profiler::with_profile(&self.device, &self.queue, profile);
        profiler.name_pipeline(&self.pipeline, "spin");
        profiler
    }

    /// Encodes passes, each with this number of dispatches.
    fn encode(&self, profiler: &Profiler, passes: impl IntoIterator<Item = u32>) -> CommandBuffer {
        let mut encoder = profiler.encoder("forward");
        for (number, dispatches) in passes.into_iter().enumerate() {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
                label: Some(&format!("layer {number}")),
                timestamp_writes: None,
            });
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.bindings, &[]);
            for _ in 0..dispatches {
                pass.dispatch_workgroups(GROUPS, 1, 1);
            }
        }
        encoder.finish()
    }

    /// Runs passes, and returns the snapshot with the host times of their start and end.
    fn run(&self, profiler: &Profiler, passes: &[u32]) -> (Snapshot, (u64, u64)) {
        // This submission compiles the kernel, which would otherwise count as the first dispatch's time.
        self.queue.submit([self.encode(profiler, [1])]);
        profiler.wait().unwrap();
        profiler.profile().reset();
        let started = host_now_ns();
        self.queue
            .submit([self.encode(profiler, passes.iter().copied())]);
        assert_eq!(
            profiler.wait().unwrap(),
            usize::from(profiler.capability() != Capability::Nothing)
        );
        (profiler.profile().snapshot(), (started, host_now_ns()))
    }
}

const NOTHING: Features = Features::empty();
const PASSES: Features = Features::TIMESTAMP_QUERY;
const ENCODERS: Features = PASSES.union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);
const ALL: Features = ENCODERS.union(Features::TIMESTAMP_QUERY_INSIDE_PASSES);

/// Checks that the result has the sampling mode and its note once.
fn assert_noted(snapshot: &Snapshot, sampling: Sampling, sentence: &str) {
    assert_eq!(snapshot.sampling, sampling);
    let notes = snapshot.notes.iter().filter(|n| n.contains("wgpu timed"));
    assert_eq!(notes.count(), 1, "{:?}", snapshot.notes);
    assert!(snapshot.notes[0].contains(sentence), "{:?}", snapshot.notes);
    assert!(snapshot.to_string().contains(sentence));
}

fn lost(snapshot: &Snapshot, what: &str) -> u64 {
    let losses = snapshot
        .losses
        .iter()
        .filter(|loss| loss.kind.as_str() == what);
    losses.map(|loss| loss.count).sum()
}

fn total(of: &[(String, crate::kernel_profile::ProfileEntry)]) -> u64 {
    of.iter().map(|(_, times)| times.total_ns).sum()
}

/// Checks what holds for every timing of passes: passes lie in their command buffer and inside the host's times.
fn assert_passes_within(profiler: &Profiler, snapshot: &Snapshot, (started, seen): (u64, u64)) {
    assert_eq!(snapshot.passes.len(), 2, "{:?}", snapshot.passes);
    let (label, whole) = &snapshot.labels[0];
    assert_eq!((label.as_str(), whole.count), ("forward", 1));
    assert!(snapshot.passes.iter().all(|(_, times)| times.total_ns > 0));
    assert!(
        total(&snapshot.passes) <= whole.total_ns,
        "passes do not overlap here"
    );
    assert!(
        whole.total_ns <= seen - started,
        "the host saw it take no less"
    );
    let error_ns = snapshot.clock_error_ns.expect("the bounds say it");
    assert!(error_ns <= seen - started);
    for (_, dispatches) in profiler.profile().dump_dispatches() {
        for dispatch in dispatches.iter().filter(|d| d.start_gpu_ns.is_some()) {
            let inside = started.saturating_sub(error_ns)..=seen + error_ns;
            for at in [dispatch.start_gpu_ns, dispatch.end_gpu_ns] {
                assert!(inside.contains(&at.unwrap()), "{dispatch:?}");
            }
        }
    }
}

#[test]
fn inside_passes_each_dispatch_is_timed() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    assert_eq!(profiler.capability(), Capability::Dispatches);
    let (snapshot, host) = gpu.run(&profiler, &[3, 1]);
    assert_noted(&snapshot, Sampling::Dispatch, "wgpu timed each dispatch");
    assert!(snapshot.losses.is_empty(), "{:?}", snapshot.losses);
    assert_passes_within(&profiler, &snapshot, host);
    let kernel = &snapshot.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.times.count), ("spin", 4));
    assert!(kernel.times.total_ns <= total(&snapshot.passes));
    assert_eq!(snapshot.drift.len(), 1);
}

#[test]
fn at_pass_boundaries_passes_are_timed_and_a_dispatch_that_is_alone() {
    for (features, sentence) in [
        (PASSES, "from its first pass to its last"),
        (ENCODERS, "and each command buffer: single dispatches"),
    ] {
        let Some(gpu) = gpu(features) else { return };
        let profiler = gpu.profiler();
        assert_eq!(profiler.capability(), Capability::Passes);
        let (snapshot, host) = gpu.run(&profiler, &[3, 1]);
        assert_noted(&snapshot, Sampling::Pass, sentence);
        assert_passes_within(&profiler, &snapshot, host);
        let kernel = &snapshot.kernels[0];
        assert_eq!((kernel.name.as_str(), kernel.times.count), ("spin", 1));
        assert_eq!(lost(&snapshot, "dispatch times"), 3);
        let dispatches = profiler.profile().dump_dispatches().remove(0).1;
        let known: Vec<_> = dispatches.iter().map(|d| d.gpu_ns.is_some()).collect();
        assert_eq!(known, [false, false, false, true]);
        assert!(dispatches.iter().all(|d| d.groups == Some([GROUPS, 1, 1])));
        assert_eq!(dispatches[0].op_kind, "layer 0");
        let alone = snapshot.passes.iter().find(|(name, _)| name == "layer 1");
        assert_eq!(alone.unwrap().1.total_ns, kernel.times.total_ns);
    }
}

#[test]
fn command_buffers_alone_are_timed_when_no_more_is_wanted() {
    let Some(gpu) = gpu(ENCODERS) else { return };
    let profiler = gpu.profiler().at_most(Capability::CommandBuffers);
    assert_eq!(profiler.capability(), Capability::CommandBuffers);
    let (snapshot, (started, seen)) = gpu.run(&profiler, &[3, 1]);
    assert_noted(&snapshot, Sampling::CommandBuffer, "as the program wanted");
    assert!((1..=seen - started).contains(&total(&snapshot.labels)));
    assert!(snapshot.passes.is_empty() && snapshot.kernels.is_empty());
    assert_eq!(lost(&snapshot, "dispatch times"), 4);
}

#[test]
fn the_most_that_is_wanted_and_possible_is_chosen() {
    let choose = Capability::choose;
    assert_eq!(choose(ALL, Capability::Passes), Capability::Passes);
    assert_eq!(choose(ALL, Capability::Nothing), Capability::Nothing);
    assert_eq!(choose(NOTHING, Capability::Passes), Capability::Nothing);
    // Without timestamps between passes, a command buffer's time is that of its passes.
    assert_eq!(
        choose(PASSES, Capability::CommandBuffers),
        Capability::Passes
    );
}

#[test]
fn without_timestamps_nothing_is_timed_and_everything_counted() {
    let Some(gpu) = gpu(NOTHING) else { return };
    let profiler = gpu.profiler();
    assert_eq!(profiler.capability(), Capability::Nothing);
    let (snapshot, _) = gpu.run(&profiler, &[3, 1]);
    assert_noted(&snapshot, Sampling::None, "wgpu timed nothing");
    assert!(
        snapshot.labels.is_empty() && snapshot.passes.is_empty() && snapshot.kernels.is_empty()
    );
    assert_eq!(lost(&snapshot, "dispatch times"), 4);
    assert_eq!(lost(&snapshot, "command-buffer times"), 1);
    assert_eq!(snapshot.clock_error_ns, None);
}

/// A chunk holds 512 pairs of queries; the command buffer's own pair shifts the border.
#[test]
fn nothing_is_cut_off_where_chunks_end() {
    let Some(gpu) = gpu(ALL) else { return };
    for most in [Capability::Dispatches, Capability::Passes] {
        let profiler = gpu.profiler().at_most(most);
        let (snapshot, _) = gpu.run(&profiler, &[1; 1100]);
        assert!(snapshot.losses.is_empty(), "{:?}", snapshot.losses);
        let timed: u64 = snapshot.passes.iter().map(|(_, times)| times.count).sum();
        assert_eq!((timed, snapshot.kernels[0].times.count), (1100, 1100));
        assert!(total(&snapshot.passes) <= total(&snapshot.labels));
    }
}

#[test]
fn a_command_buffer_that_is_never_submitted_is_counted() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    drop(gpu.encode(&profiler, [2]));
    profiler.wait().unwrap();
    let snapshot = profiler.profile().snapshot();
    assert_eq!(lost(&snapshot, "dispatch times"), 2);
    assert_eq!(lost(&snapshot, "command-buffer times"), 1);
    assert!(
        snapshot
            .losses
            .iter()
            .all(|l| l.reason.contains("never submitted"))
    );
    // The queries have not been used up for others.
    gpu.queue.submit([gpu.encode(&profiler, [2])]);
    assert_eq!(profiler.wait().unwrap(), 1);
    assert_eq!(profiler.profile().snapshot().kernels[0].times.count, 2);
}

#[test]
fn a_pass_that_the_program_times_itself_keeps_its_timestamps() {
    let Some(gpu) = gpu(ENCODERS) else { return };
    let profiler = gpu.profiler();
    let own = gpu.device.create_query_set(&QuerySetDescriptor {
        label: None,
        ty: QueryType::Timestamp,
        count: 2,
    });
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.push_debug_group("encoded before");
    encoder.pop_debug_group();
    let mut encoder = profiler.wrap(encoder, "its own");
    let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
        label: None,
        timestamp_writes: Some(ComputePassTimestampWrites {
            query_set: &own,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        }),
    });
    pass.set_pipeline(&gpu.pipeline);
    pass.set_bind_group(0, &gpu.bindings, &[]);
    pass.dispatch_workgroups(GROUPS, 1, 1);
    drop(pass);
    let buffer = |usage| {
        gpu.device.create_buffer(&BufferDescriptor {
            label: None,
            size: 16,
            usage,
            mapped_at_creation: false,
        })
    };
    let resolved = buffer(BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC);
    let readable = buffer(BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    encoder.resolve_query_set(&own, 0..2, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &readable, 0, 16);
    gpu.queue.submit([encoder.finish()]);
    readable.map_async(MapMode::Read, .., |mapped| mapped.unwrap());
    profiler.wait().unwrap();
    let view = readable.get_mapped_range(..).unwrap();
    let ticks: Vec<u64> = view
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| u64::from_le_bytes(*b))
        .collect();
    assert!(0 < ticks[0] && ticks[0] < ticks[1], "{ticks:?}");
    let snapshot = profiler.profile().snapshot();
    for what in ["pass times", "dispatch times"] {
        let mut losses = snapshot.losses.iter();
        let loss = losses.find(|loss| loss.kind.as_str() == what).unwrap();
        let reason = "the program times this pass itself";
        assert_eq!((loss.count, &*loss.reason), (1, reason));
    }
    assert_eq!(
        snapshot.labels[0].1.count, 1,
        "the command buffer is timed all the same"
    );
}

mod unlisted;
