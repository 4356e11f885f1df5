//! Tests samples of instructions in the report.

use super::*;
use gapscope_report::explanation::{Claim, ClaimKind, Explanation};

const SAMPLES: &str = "
    kernel id=8 name=scale entry_point=scale
    pc_sample device=1 kernel=8 function=scale offset_bytes=192 stall_reason=long_scoreboard samples=60 period_cycles=4096 file=/src/scale.cu line=12
    pc_sample device=1 kernel=8 function=scale offset_bytes=208 stall_reason=wait samples=10 period_cycles=4096 file=/src/scale.cu line=12
    pc_sample device=1 kernel=8 function=scale offset_bytes=192 stall_reason=selected samples=5 period_cycles=4096 file=/src/scale.cu line=12
    pc_sample device=1 kernel=8 function=scale offset_bytes=16 stall_reason=brand_new samples=15 period_cycles=4096 file=/src/scale.cu line=10
    pc_sample device=1 function=_Z5otherv offset_bytes=416 stall_reason=wait samples=10 period_cycles=4096 no_line=not-compiled-in";

#[test]
fn hot_instructions_have_their_line_or_why_there_is_none() {
    let with = read(&format!("{HOST_BOUND}{SAMPLES}"));
    let page = terminal(&with);
    let words = words(&page);
    for part in [
        "Instructions of scale ",
        "90 samples, 90.0 % of all",
        "scale.cu:12 83.3 % long scoreboard 80.0 %, wait 13.3 %",
        "scale.cu:10 16.7 % brand new 100 %",
        "• long scoreboard 66.7 %: Waited for data from global, local or texture memory, through L1. To do: load earlier and more at once",
        "• brand new 16.7 %: gapscope does not know this reason.",
        "Instructions of other ",
        "10 samples, 10.0 % of all",
        "+0x1a0 100 % wait 100 %",
        "+0x1a0: no line information: compile with -lineinfo.",
        "A multiprocessor gives one every 4,096 cycles",
        "over the whole recording",
    ] {
        assert!(words.contains(part), "{part} in\n{page}");
    }
    let json = json_of(&with);
    let scale = &json["sampled_kernels"][0];
    assert_eq!(scale["kernel"], "scale");
    assert_eq!(scale["samples"], 90);
    assert_eq!(scale["period_cycles"], 4096);
    let place = &scale["places"][0];
    assert_eq!(place["file"], "/src/scale.cu");
    assert_eq!(place["line"], 12);
    assert_eq!(place["offset_bytes"], 192);
    assert_eq!(place["instructions"], 2);
    assert_eq!(place["samples"], 75);
    let other = &json["sampled_kernels"][1];
    assert_eq!(other["function"], "_Z5otherv");
    assert_eq!(other["places"][0]["no_line"], "not-compiled-in");
    assert!(json_of(&read(HOST_BOUND)).get("sampled_kernels").is_none());
}

#[test]
fn the_explanation_says_where_a_kernel_has_most_samples() {
    let samples = "
    pc_sample device=1 kernel=2 function=sin offset_bytes=192 stall_reason=wait samples=30 period_cycles=4096 file=/src/sin.cu line=3
    pc_sample device=1 kernel=1 function=main offset_bytes=192 stall_reason=long_scoreboard samples=120 period_cycles=4096 file=/src/mm.cu line=7
    pc_sample device=1 kernel=1 function=main offset_bytes=16 stall_reason=selected samples=40 period_cycles=4096 file=/src/mm.cu line=5";
    let trace = read(&format!("{HOST_BOUND}{samples}"));
    let timeline = Timeline::new(&trace);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    let claims = Explanation::new("t", &timeline, &findings, &[]).claims;
    let kernel = |claim: &&Claim| claim.text.starts_with("The kernel matmul");
    let claim = claims.iter().find(kernel).expect("it takes the most time");
    let place = "75.0 % of its 160 samples of instructions are at mm.cu:7: long scoreboard 100 %.";
    assert!(claim.text.contains(place), "{claims:?}");
    let advice = claim.advice.as_deref();
    assert!(advice.is_some_and(|advice| advice.starts_with("load earlier")));
    let figures = claim.figures.iter();
    let count = figures.filter(|figure| figure.name == "sample_count");
    let count: Vec<_> = count
        .map(|figure| (figure.value, figure.report.as_deref()))
        .collect();
    assert_eq!(count, [(160, Some("/sampled_kernels/0/samples"))]);
    // The other kernel has too few samples for a claim; the table has them.
    let is_claim = |claim: &&Claim| claim.kind != ClaimKind::Figures;
    let mut said = claims.iter().filter(is_claim);
    assert!(said.all(|claim| !claim.text.contains("sin.cu")));
}
