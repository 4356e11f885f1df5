//! Tests that instruction samples become rows with their source lines, or are counted as lost.

use super::*;
use gapscope_trace::ids::KernelId;
use gapscope_trace::tables::NoLine;

const WITH_LINES: &[u8] = include_bytes!("../../../code/testdata/lines.cubin");
const PLAIN: &[u8] = include_bytes!("../../../code/testdata/plain.cubin");

const LONG: u32 = 3;
const PART_OF_LONG: u32 = 4;
const UNNAMED: u32 = 9;

fn sampling() -> CudaEvent<'static> {
    let name = |reason: &str| Cow::Owned(format!("smsp__pcsamp_warps_issue_stalled_{reason}"));
    CudaEvent::InstructionSampling {
        device: hook::Device(1),
        period_cycles: 4096,
        reasons: vec![
            (1, name("selected")),
            (LONG, name("long_scoreboard")),
            (PART_OF_LONG, name("long_scoreboard_not_issued")),
        ],
    }
}

fn samples(
    cubin: u64,
    function: &'static str,
    samples: &'static [(u64, u32, u32)],
) -> CudaEvent<'static> {
    CudaEvent::InstructionSamples(FunctionSamples {
        device: hook::Device(1),
        cubin,
        function: Cow::Borrowed(function),
        samples: Cow::Borrowed(samples),
    })
}

fn cubin(cubin: u64, bytes: &'static [u8]) -> CudaEvent<'static> {
    CudaEvent::SampledCubin { cubin, bytes }
}

#[test]
fn samples_are_added_up_and_have_the_lines_of_their_code() {
    let mut cuda = Cuda::new();
    cuda.event(sampling());
    cuda.event(cubin(7, WITH_LINES));
    cuda.event(samples(7, "scale", &[(0xc0, LONG, 5), (0xc0, 1, 1)]));
    cuda.event(samples(7, "scale", &[(0xc0, LONG, 6), (0x80, LONG, 2)]));
    cuda.event(samples(7, "scale", &[(0xc0, PART_OF_LONG, 4)]));
    assert_eq!(cuda.assembler.take_sources().len(), 1);
    cuda.end(1);
    let (manifest, tables) = cuda.finish();
    assert_eq!(manifest.losses, []);
    let t = &tables.pc_samples;
    let rows: Vec<_> = (0..t.len())
        .map(|row| {
            let line = (t.file[row].as_deref(), t.line.at(row));
            (
                t.offset_bytes[row],
                &*t.stall_reason[row],
                t.samples[row],
                line,
            )
        })
        .collect();
    let helpers = (Some("/src/kernels/helpers.cuh"), Some(4));
    assert_eq!(
        rows,
        [
            (
                0x80,
                "long_scoreboard",
                2,
                (Some("/src/kernels/scale.cu"), Some(11))
            ),
            (0xc0, "selected", 1, helpers),
            (0xc0, "long_scoreboard", 11, helpers),
        ]
    );
    assert_eq!(t.period_cycles, [Some(4096); 3]);
    assert_eq!(t.no_line, [None; 3]);
    assert!(t.source.iter().all(Option::is_some));
    // No kernel of this name was recorded.
    assert_eq!(t.kernel, [None; 3]);
}

#[test]
fn an_instruction_without_a_line_says_why() {
    let mut cuda = Cuda::new();
    cuda.event(sampling());
    cuda.event(cubin(7, WITH_LINES));
    cuda.event(cubin(8, b""));
    cuda.event(cubin(9, PLAIN));
    for (cubin, function) in [(6, "a"), (7, "b"), (8, "c"), (9, "d"), (7, "")] {
        cuda.event(samples(cubin, function, &[(0x10, LONG, 1)]));
    }
    cuda.event(samples(7, "scale", &[(0x10, UNNAMED, 3)]));
    cuda.end(1);
    let (manifest, tables) = cuda.finish();
    let t = &tables.pc_samples;
    let why: Vec<_> = (t.function.iter().map(|name| name.as_deref()))
        .zip(t.no_line.iter().copied().map(Option::unwrap_or_default))
        .collect();
    assert_eq!(
        why,
        [
            (Some("a"), NoLine::NotCompiledIn),
            (Some("b"), NoLine::NoneForInstruction),
            (None, NoLine::UnknownFunction),
            (Some("c"), NoLine::CodeNotKept),
            (Some("d"), NoLine::NotCompiledIn),
        ]
    );
    let [lost] = &manifest.losses[..] else {
        panic!("{:?}", manifest.losses)
    };
    assert_eq!((&lost.kind, lost.count), (&LossKind::InstructionSamples, 3));
}

#[test]
fn samples_name_the_kernel_of_their_function() {
    let mut cuda = Cuda::new();
    cuda.event(sampling());
    cuda.event(samples(7, "_Z6vecAddPKfS0_Pfi", &[(0, LONG, 1)]));
    cuda.batch(&[call(LAUNCH, 1, 1000, 1000), kernel(1, 1, 1010, 1020)]);
    cuda.end(2000);
    let (_, tables) = cuda.finish();
    let kernel: Vec<Option<KernelId>> = tables.pc_samples.kernel.to_vec();
    assert_eq!(kernel, [Some(tables.dispatches.kernel[0])]);
}

fn any_event() -> impl Strategy<Value = CudaEvent<'static>> {
    let names = prop_oneof![Just(""), Just("scale"), Just("slow"), Just("_Z")];
    let number = || prop_oneof![4 => 0..4u32, 1 => any::<u32>()];
    let offset = prop_oneof![4 => 0..0x500u64, 1 => any::<u64>()];
    let counted = proptest::collection::vec((offset, number(), any::<u32>()), 0..5);
    prop_oneof![
        (number(), any::<u64>(), number()).prop_map(|(device, period_cycles, reason)| {
            let name = "smsp__pcsamp_warps_issue_stalled_wait";
            CudaEvent::InstructionSampling {
                device: hook::Device(device),
                period_cycles,
                reasons: vec![(reason, Cow::Borrowed(name))],
            }
        }),
        (number(), 0..3u64, names, counted).prop_map(|(device, cubin, function, samples)| {
            CudaEvent::InstructionSamples(FunctionSamples {
                device: hook::Device(device),
                cubin,
                function: Cow::Borrowed(function),
                samples: Cow::Owned(samples),
            })
        }),
        (0..3u64, 0..WITH_LINES.len()).prop_map(|(cubin, end)| CudaEvent::SampledCubin {
            cubin,
            bytes: &WITH_LINES[end * usize::from(end % 2 == 0)..],
        }),
    ]
}

proptest! {
    /// Tests that every sample is in a row or counted as lost.
    #[test]
    fn whatever_comes_no_sample_is_lost_in_silence(
        events in proptest::collection::vec(any_event(), 0..12),
    ) {
        let mut cuda = Cuda::new();
        let mut came = 0u64;
        for event in events {
            if let CudaEvent::InstructionSamples(new) = &event {
                came += new.samples.iter().map(|(.., count)| u64::from(*count)).sum::<u64>();
            }
            cuda.event(event);
        }
        cuda.end(1);
        let (manifest, tables) = cuda.finish();
        let lost = (manifest.losses.iter())
            .filter(|loss| loss.kind == LossKind::InstructionSamples)
            .map(|loss| loss.count);
        let rows = tables.pc_samples.samples.iter();
        prop_assert_eq!(rows.sum::<u64>() + lost.sum::<u64>(), came);
        for row in 0..tables.pc_samples.len() {
            let t = &tables.pc_samples;
            prop_assert_eq!(t.line.at(row).is_some(), t.no_line[row].is_none());
            prop_assert_eq!(t.line.at(row).is_some(), t.file[row].is_some());
        }
    }
}
