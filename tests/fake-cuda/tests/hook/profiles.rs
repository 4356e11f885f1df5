//! Launches that are profiled one by one.

use crate::stub::Stub;
use gapscope_spool::model::kernel_profile::METRICS;

#[test]
fn only_chosen_launches_are_profiled_and_their_calls_are_moments() {
    let stub = Stub::new().with("GAPSCOPE_PROFILE_KERNELS", "2 add");
    let outcome = stub.run("launch:5 sync");
    let process = outcome.only();
    assert_eq!(process.profiles.len(), 2);
    let launches = process.calls_of("cuLaunchKernel");
    assert_eq!(launches.len(), 5);
    for (at, launch) in launches.iter().enumerate() {
        let profile = (process.profiles.iter()).find(|p| p.correlation == launch.correlation);
        assert_eq!(profile.is_some(), at < 2, "{at}");
        let Some(profile) = profile else {
            assert!(launch.span.duration_ns > 0);
            continue;
        };
        assert_eq!(
            (profile.kernel.as_str(), profile.passes),
            ("_Z3addPfS_i", 3)
        );
        assert_eq!(launch.span.duration_ns, 0);
        assert!(profile.span.start_ns <= launch.span.start_ns);
        assert!(launch.span.start_ns <= profile.span.end_ns());
        // One metric is not of this chip.
        assert_eq!(profile.values.len(), METRICS.len() - 1);
    }
}

#[test]
fn of_several_threads_one_is_profiled_at_a_time() {
    let stub = Stub::new()
        .with("GAPSCOPE_PROFILE_KERNELS", "4 add")
        .with("FAKE_CUDA_PROFILER_MS", "5");
    let outcome = stub.run("threads:4:200 sync");
    let process = outcome.only();
    // Other threads may have launched in the same context meanwhile: then nothing counts for the chosen launch.
    let measured = process.profiles.iter().filter(|profile| profile.passes > 0);
    assert!(measured.count() <= 4);
    let mut spans: Vec<_> = process.profiles.iter().map(|p| p.span).collect();
    spans.sort_by_key(|span| span.start_ns);
    let follow = |two: &[gapscope_spool::event::Span]| two[0].end_ns() <= two[1].start_ns;
    assert!(spans.windows(2).all(follow), "{spans:?}");
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 800);
}

#[test]
fn a_refusal_is_one_sentence_and_the_program_goes_on() {
    let stub = Stub::new()
        .with("GAPSCOPE_PROFILE_KERNELS", "4 add")
        .with("FAKE_CUDA_PROFILER", "busy");
    let outcome = stub.run("launch:50 sync");
    let process = outcome.only();
    let said = process.notes.iter().filter(|n| n.contains("profiled"));
    let said: Vec<_> = said.collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("CUPTI_ERROR_HARDWARE_BUSY"), "{said:?}");
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 50);
}

#[test]
fn a_forked_child_profiles_nothing() {
    let stub = Stub::new().with("GAPSCOPE_PROFILE_KERNELS", "9 add");
    let outcome = stub.run("launch:1 fork:launch launch:1 sync");
    assert_eq!(outcome.only().profiles.len(), 2);
}
