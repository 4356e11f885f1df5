//! Tests that the metrics of profiled launches become rows of the right kernel and submission.

use super::*;
use gapscope_model::kernel_profile::{METRICS, PROFILING_CALL, metric_name};
use gapscope_trace::ids::SubmissionId;

fn place(metric: &str) -> u16 {
    let place = METRICS.iter().position(|known| known.name == metric);
    place.expect("a metric") as u16
}

fn profile(correlation: u32, kernel: &'static str, values: &[(u16, f64)]) -> Recorded {
    Recorded::Event(
        CudaEvent::KernelProfiled {
            correlation: hook::Correlation(correlation),
            kernel: Cow::Borrowed(kernel),
            span: between(900, 2_000_900),
            passes: if values.is_empty() { 0 } else { 20 },
            values: Cow::Owned(values.to_vec()),
        }
        .into(),
    )
}

#[test]
fn a_profile_is_of_its_launch_whose_kernel_ran_several_times() {
    let read = [(place(metric_name::DRAM_READ), 4096.0)];
    let name = "_Z6vecAddPKfS0_Pfi";
    let (runs, own) = (
        [kernel(1, 1, 1010, 1020), kernel(1, 1, 1030, 1040)],
        call(LAUNCH, 1, 1000, 1000),
    );
    let [first, second] = runs;
    for batch in [
        vec![
            profile(1, name, &read),
            own.clone(),
            first.clone(),
            second.clone(),
        ],
        vec![
            first.clone(),
            second.clone(),
            profile(1, name, &read),
            own.clone(),
        ],
        vec![profile(1, name, &read), first, own, second],
    ] {
        let mut cuda = Cuda::new();
        cuda.batch(&batch);
        cuda.end(3_000_000);
        let (manifest, tables) = cuda.finish();
        assert_eq!(tables.dispatches.len(), 1);
        assert_eq!(manifest.losses, []);
        let m = &tables.kernel_metrics;
        assert_eq!(m.profile, [1, 1]);
        assert_eq!(m.submission, [Some(SubmissionId(0)); 2]);
        assert_eq!(m.kernel, [tables.dispatches.kernel[0]; 2]);
        let rows: Vec<_> = (0..2).map(|row| (&*m.metric[row], m.value[row])).collect();
        assert_eq!(
            rows,
            [
                (metric_name::DRAM_READ, 4096.0),
                ("launch__grid_size", 16.0)
            ]
        );
        let calls = &tables.host_calls;
        assert_eq!(calls.call, [HostCallKind::Recording]);
        assert_eq!(calls.function[0].as_deref(), Some(PROFILING_CALL));
        assert_eq!(calls.duration_ns, [2_000_000]);
    }
}

#[test]
fn a_profile_whose_kernel_left_no_record_keeps_its_kernel_by_name() {
    let mut cuda = Cuda::new();
    let values = [
        (place(metric_name::DRAM_READ), 1.0),
        (place(metric_name::L2_BYTES), f64::NAN),
        (u16::MAX, 7.0),
    ];
    cuda.batch(&[
        profile(1, "triton_poi_fused_0", &values),
        call(LAUNCH, 1, 1000, 1000),
        profile(2, "new_kernel", &values),
        call(LAUNCH, 2, 1100, 1100),
        profile(3, "refused", &[]),
    ]);
    cuda.end(3_000_000);
    let (_, tables) = cuda.finish();
    let m = &tables.kernel_metrics;
    assert_eq!(
        (m.profile.to_vec(), m.submission.to_vec()),
        (vec![1, 2], vec![None, None])
    );
    let name = |row: usize| {
        let at = tables.kernels.id.iter().position(|id| *id == m.kernel[row]);
        tables.kernels.name[at.expect("a kernel")].to_string()
    };
    assert_eq!([name(0), name(1)], ["triton_poi_fused_0", "new_kernel"]);
    assert_eq!(
        tables.host_calls.len(),
        3 + 2,
        "three profiles, two launches without work"
    );
}
