//! Tests what the profiler says of work that it does not see, scopes, the switch, results that nobody asked for, and
//! the memory of dropped pipelines.

use super::*;
use crate::kernel_profile::{Drift, Verdict};

/// A helper of the program, which knows nothing of the profiler.
fn dispatch_in_pass(pass: &mut ComputePass<'_>, gpu: &Gpu, dispatches: u32) {
    pass.set_pipeline(&gpu.pipeline);
    pass.set_bind_group(0, &gpu.bindings, &[]);
    for _ in 0..dispatches {
        pass.dispatch_workgroups(GROUPS, 1, 1);
    }
}

/// Another helper, which begins a pass of its own.
fn dispatch_in_encoder(encoder: &mut CommandEncoder, gpu: &Gpu, dispatches: u32) {
    let mut pass = encoder.begin_compute_pass(&Default::default());
    dispatch_in_pass(&mut pass, gpu, dispatches);
}

/// Runs a command buffer with one dispatch that is listed and as many of helpers; returns the snapshot.
fn with_helpers(gpu: &Gpu, profiler: &Profiler, in_pass: u32, in_encoder: u32) -> Snapshot {
    gpu.run(profiler, &[1]);
    profiler.profile().reset();
    let mut encoder = profiler.encoder("forward");
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&gpu.pipeline);
        pass.set_bind_group(0, &gpu.bindings, &[]);
        pass.dispatch_workgroups(GROUPS, 1, 1);
        if in_pass > 0 {
            dispatch_in_pass(&mut pass, gpu, in_pass);
            pass.dispatch_workgroups(GROUPS, 1, 1);
        }
    }
    if in_encoder > 0 {
        dispatch_in_encoder(&mut encoder, gpu, in_encoder);
    }
    gpu.queue.submit([encoder.finish()]);
    profiler.wait().unwrap();
    profiler.profile().snapshot()
}

fn drift(snapshot: &Snapshot) -> &Drift {
    snapshot.drift.first().expect("it is compared")
}

#[test]
fn work_of_helper_functions_is_time_that_the_dispatches_do_not_cover() {
    let Some(gpu) = gpu(ALL) else { return };
    for (in_pass, in_encoder) in [(20, 0), (0, 20)] {
        let snapshot = with_helpers(&gpu, &gpu.profiler(), in_pass, in_encoder);
        let drift = drift(&snapshot);
        assert_eq!(drift.verdict, Verdict::Uncovered, "{drift:?}");
        assert!(drift.covered_share() < 0.5, "{drift:?}");
        let text = snapshot.to_string();
        assert!(text.contains("dispatches cover "), "{text}");
        assert_eq!(
            lost(&snapshot, "command buffers whose dispatches are not listed"),
            1
        );
    }
    let snapshot = with_helpers(&gpu, &gpu.profiler(), 0, 0);
    assert!(snapshot.losses.is_empty(), "{:?}", snapshot.losses);
}

#[test]
fn a_command_buffer_with_work_of_helpers_only_is_compared() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    let mut encoder = profiler.encoder("all of it");
    dispatch_in_encoder(&mut encoder, &gpu, 3);
    gpu.queue.submit([encoder.finish()]);
    profiler.wait().unwrap();
    let snapshot = profiler.profile().snapshot();
    let drift = drift(&snapshot);
    assert_eq!(
        (drift.verdict, drift.dispatch_sum_ns),
        (Verdict::Uncovered, 0)
    );
}

#[test]
fn without_timestamps_around_command_buffers_their_times_are_unknown_where_work_is_hidden() {
    let inside_passes = PASSES.union(Features::TIMESTAMP_QUERY_INSIDE_PASSES);
    for (features, in_pass, in_encoder) in
        [(inside_passes, 3, 0), (inside_passes, 0, 3), (PASSES, 0, 3)]
    {
        let Some(gpu) = gpu(features) else { return };
        let snapshot = with_helpers(&gpu, &gpu.profiler(), in_pass, in_encoder);
        assert!(snapshot.labels.is_empty(), "{:?}", snapshot.labels);
        assert_eq!(lost(&snapshot, "command-buffer times"), 1);
    }
}

#[test]
fn a_pass_that_is_timed_at_its_boundaries_holds_the_work_of_helpers() {
    let Some(gpu) = gpu(ENCODERS) else { return };
    let snapshot = with_helpers(&gpu, &gpu.profiler(), 20, 0);
    assert_eq!(drift(&snapshot).compared, "passes");
    assert!(
        snapshot.kernels.is_empty(),
        "a dispatch has no time of others: {:?}",
        snapshot.kernels
    );
}

#[test]
fn a_dispatch_never_has_the_name_of_another_kernel() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    let snapshot = with_helpers(&gpu, &profiler, 1, 0);
    // The dispatch behind the helper's: which pipeline is set is not known.
    let dispatches = profiler.profile().dump_dispatches().remove(0).1;
    let kernels: Vec<_> = dispatches.iter().map(|d| d.kernel.as_ref()).collect();
    assert_eq!(kernels, ["spin", ""], "{snapshot}");
}

#[test]
fn scopes_time_wgpus_own_encoders_and_passes_in_any_nesting() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    for round in 0..2 {
        profiler.profile().reset();
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let scopes = profiler.scopes("frame");
        {
            let mut forward = scopes.scope("forward", &mut encoder);
            {
                let mut pass = forward.compute_pass(&ComputePassDescriptor {
                    label: Some("layer"),
                    timestamp_writes: None,
                });
                let mut heads = pass.scope("heads");
                dispatch_in_pass(&mut heads, &gpu, 4);
            }
            dispatch_in_encoder(&mut forward, &gpu, 2);
        }
        let tail = scopes.open_scope("tail", None, &mut encoder);
        dispatch_in_encoder(&mut encoder, &gpu, 2);
        scopes.end(tail, &mut encoder);
        scopes.resolve(&mut encoder);
        gpu.queue.submit([encoder.finish()]);
        assert_eq!(profiler.wait().unwrap(), 1, "round {round}");
    }
    let snapshot = profiler.profile().snapshot();
    assert!(snapshot.losses.is_empty(), "{:?}", snapshot.losses);
    let time = |path: &str| {
        let scope = snapshot.scopes.iter().find(|(name, _)| name == path);
        scope
            .unwrap_or_else(|| panic!("no {path}: {snapshot}"))
            .1
            .total_ns
    };
    let (forward, tail) = (time("forward"), time("tail"));
    assert!(time("forward > layer > heads") <= time("forward > layer"));
    assert!(time("forward > layer") <= forward);
    assert!(forward + tail <= snapshot.labels[0].1.total_ns);
    assert!(snapshot.drift.is_empty(), "scopes list no dispatches");
}

#[test]
fn scopes_time_render_passes() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    let texture = gpu.device.create_texture(&TextureDescriptor {
        label: None,
        size: Extent3d {
            width: 64,
            height: 64,
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: TextureDimension::D2,
        format: TextureFormat::Rgba8Unorm,
        usage: TextureUsages::RENDER_ATTACHMENT,
        view_formats: &[],
    });
    let view = texture.create_view(&Default::default());
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let scopes = profiler.scopes("frame");
    {
        let mut pass = scopes.render_pass(
            &mut encoder,
            &RenderPassDescriptor {
                label: Some("sky"),
                color_attachments: &[Some(RenderPassColorAttachment {
                    view: &view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: Operations {
                        load: LoadOp::Clear(Color::BLUE),
                        store: StoreOp::Store,
                    },
                })],
                ..Default::default()
            },
        );
        drop(pass.scope("stars"));
    }
    scopes.resolve(&mut encoder);
    gpu.queue.submit([encoder.finish()]);
    profiler.wait().unwrap();
    let snapshot = profiler.profile().snapshot();
    let names: Vec<_> = snapshot.scopes.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["sky", "sky > stars"], "{snapshot}");
}

#[test]
fn scopes_without_the_features_are_counted_with_the_reason() {
    let Some(gpu) = gpu(PASSES) else { return };
    let profiler = gpu.profiler();
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let scopes = profiler.scopes("frame");
    {
        let mut whole = scopes.scope("whole", &mut encoder);
        let mut pass = whole.compute_pass(&Default::default());
        dispatch_in_pass(&mut pass.scope("inside"), &gpu, 1);
    }
    scopes.resolve(&mut encoder);
    gpu.queue.submit([encoder.finish()]);
    profiler.wait().unwrap();
    let snapshot = profiler.profile().snapshot();
    assert_eq!(lost(&snapshot, "scope times"), 2);
    assert_eq!(snapshot.scopes.len(), 1, "{snapshot}");
    drop(profiler.scopes("never resolved"));
    let snapshot = profiler.profile().snapshot();
    let reasons = snapshot.losses.iter().map(|loss| &*loss.reason);
    assert!(reasons.clone().any(|why| why.contains("Scopes::resolve")));
}

#[test]
fn a_switch_turns_everything_off_at_run_time() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    let clone = profiler.at_most(Capability::Passes);
    clone.set_enabled(false);
    gpu.queue.submit([gpu.encode(&profiler, [2])]);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let scopes = profiler.scopes("frame");
    drop(scopes.scope("off", &mut encoder));
    scopes.resolve(&mut encoder);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(profiler.wait().unwrap(), 0);
    let snapshot = profiler.profile().snapshot();
    assert!(snapshot.labels.is_empty() && snapshot.losses.is_empty());
    clone.set_enabled(true);
    gpu.queue.submit([gpu.encode(&profiler, [2])]);
    assert_eq!(profiler.wait().unwrap(), 1);
}

#[test]
fn results_are_shown_without_harvest_and_those_on_their_way_are_counted() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    gpu.queue.submit([gpu.encode(&profiler, [2])]);
    let finished = gpu.encode(&profiler, [2]);
    let snapshot = profiler.profile().snapshot();
    let timed: u64 = snapshot.labels.iter().map(|(_, times)| times.count).sum();
    assert_eq!(timed + lost(&snapshot, "command buffers"), 2, "{snapshot}");
    gpu.queue.submit([finished]);
    // Nobody calls `harvest`, and the profiler is dropped.
    let profile = Arc::new(Profile::new());
    let other = Profiler::with_profile(&gpu.device, &gpu.queue, Arc::clone(&profile));
    gpu.queue.submit([gpu.encode(&other, [3])]);
    drop(other);
    gpu.device.poll(PollType::wait_indefinitely()).unwrap();
    assert_eq!(profile.snapshot().dispatches, 3);
    let snapshot = profiler.profile().snapshot();
    assert_eq!(
        (snapshot.dispatches, lost(&snapshot, "command buffers")),
        (4, 0)
    );
}

#[test]
fn pipelines_that_the_program_drops_are_dropped() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler();
    let module = gpu.device.create_shader_module(ShaderModuleDescriptor {
        label: None,
        source: ShaderSource::Wgsl(SHADER.into()),
    });
    let pipeline = |label| {
        profiler.create_compute_pipeline(&ComputePipelineDescriptor {
            label: Some(label),
            layout: None,
            module: &module,
            entry_point: Some("spin"),
            compilation_options: Default::default(),
            cache: None,
        })
    };
    let kept = pipeline("kept");
    let resident_before = resident_bytes();
    for _ in 0..2000 {
        drop(pipeline("dropped"));
    }
    gpu.device.poll(PollType::wait_indefinitely()).unwrap();
    let grown = resident_bytes().saturating_sub(resident_before);
    assert!(grown < 40 << 20, "{grown} bytes for 2000 dropped pipelines");
    assert_eq!(profiler.0.name_of(&kept).as_deref(), Some("kept"));
    assert_ne!(profiler.0.name_of(&gpu.pipeline).as_deref(), Some("kept"));
}

/// Returns the memory of this process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok());
    pages.map_or(0, |pages: u64| pages * 4096)
}

#[test]
fn nothing_is_timed_because_the_program_wanted_nothing() {
    let Some(gpu) = gpu(ALL) else { return };
    let profiler = gpu.profiler().at_most(Capability::Nothing);
    let (snapshot, _) = gpu.run(&profiler, &[1]);
    assert!(snapshot.notes[0].contains("as the program wanted"));
    let reasons = snapshot.losses.iter().map(|loss| &*loss.reason);
    assert!(
        reasons
            .clone()
            .all(|why| why.contains("the program wanted")),
        "{snapshot}"
    );
}
