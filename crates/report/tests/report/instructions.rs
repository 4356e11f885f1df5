//! Samples of instructions on pages.

use super::*;

const SAMPLES: &str = "
    kernel id=8 name=scale entry_point=scale
    pc_sample device=1 kernel=8 function=scale offset_bytes=192 stall_reason=long_scoreboard samples=60 period_cycles=4096 file=/src/scale.cu line=12
    pc_sample device=1 kernel=8 function=scale offset_bytes=208 stall_reason=wait samples=10 period_cycles=4096 file=/src/scale.cu line=12
    pc_sample device=1 kernel=8 function=scale offset_bytes=192 stall_reason=selected samples=5 period_cycles=4096 file=/src/scale.cu line=12
    pc_sample device=1 kernel=8 function=scale offset_bytes=16 stall_reason=brand_new samples=15 period_cycles=4096 file=/src/scale.cu line=10
    pc_sample device=1 function=_Z5otherv offset_bytes=416 stall_reason=wait samples=10 period_cycles=4096 no_line=not-compiled-in";

#[test]
fn hot_instructions_have_their_line_or_why_there_is_none() {
    let host = include_str!("../traces/host_bound.txt");
    let with = read(&format!("{host}{SAMPLES}"));
    let page = terminal(&with);
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Instructions of scale ",
        "90 samples, 90.0 % of all",
        "scale.cu:12 83.3 % long scoreboard 80.0 %, wait 13.3 %",
        "scale.cu:10 16.7 % brand new 100 %",
        "• long scoreboard 66.7 %: Waited for data from global, local or texture memory, through L1.",
        "• brand new 16.7 %: gapscope does not know this reason.",
        "Instructions of other ",
        "10 samples, 10.0 % of all",
        "+0x1a0 100 % wait 100 %",
        "+0x1a0: no line information: compile with -lineinfo.",
        "takes one every 4,096 cycles",
        "they are no times",
    ] {
        assert!(words.contains(part), "{part} in\n{page}");
    }
    let json = json_of(&with);
    let scale = &json["sampled_kernels"][0];
    assert_eq!(
        (&scale["kernel"], &scale["samples"]),
        (&"scale".into(), &90.into())
    );
    assert_eq!(scale["period_cycles"], 4096);
    let place = &scale["places"][0];
    assert_eq!(place["file"], "/src/scale.cu");
    assert_eq!(
        (&place["line"], &place["offset_bytes"]),
        (&12.into(), &192.into())
    );
    assert_eq!(
        (&place["instructions"], &place["samples"]),
        (&2.into(), &75.into())
    );
    let other = &json["sampled_kernels"][1];
    assert_eq!(other["function"], "_Z5otherv");
    assert_eq!(other["places"][0]["no_line"], "not-compiled-in");
    assert!(json_of(&read(host)).get("sampled_kernels").is_none());
}
