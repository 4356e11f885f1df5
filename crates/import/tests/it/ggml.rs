//! Tests the import of logs of ggml's Vulkan backend.

use crate::imported::{Rows, import_bytes, kernel};
use gapscope_import::Error;
use gapscope_trace::tables::Table;

/// A log in the format of 2025, between other lines of stderr.
const LOG: &str = "\
ggml_vulkan: Found 1 Vulkan devices:
ggml_vulkan: 0 = NVIDIA H200 (NVIDIA) | uma: 0 | fp16: 1 | bf16: 1 | warp size: 32
llama_model_loader: loaded meta data with 33 key-value pairs
----------------
Vulkan Timings:
ADD: 3 x 4.1 us
MUL_MAT q4_K m=4096 n=512 k=4096: 32 x 412.5 us (41652.1 GFLOPS/s)
some other thread: writes here
RMS_NORM_MUL RMS_NORM(4096,512,1,1): 65 x 9.8 us
Total time: 13849.3 us.
----------------
Vulkan Timings:
MUL_MAT_VEC q4_K m=4096 n=1 k=4096: 7 x 10.00 us = 70.01 us (3355.00 GFLOPS/s)
Total time: 70.01 us.
llama_perf_context_print: load time = 812.00 ms
";

#[test]
fn operations_have_durations_and_no_starts() {
    let import = import_bytes("stderr.log", LOG.as_bytes()).unwrap();
    let t = &import.trace.tables;
    assert_eq!(t.dispatches.len(), 3 + 32 + 65 + 7);
    assert!(t.dispatches.start_ns.iter().all(|value| value.is_none()));
    // The sum is exactly that of the log.
    let total: i64 = t.dispatches.duration_ns.iter().flatten().sum();
    assert_eq!(total, 13_849_300 + 70_010);
    let name = "MUL_MAT q4_K m=4096 n=512 k=4096";
    let of = t.dispatches.iter();
    let of = of.filter(|dispatch| &*kernel(&import.trace, dispatch.kernel).name == name);
    let durations: Vec<_> = of.filter_map(|dispatch| dispatch.duration_ns).collect();
    assert_eq!(durations, [412_500; 32]);
    assert_eq!(
        import.trace.manifest.devices[0].name,
        "NVIDIA H200 (NVIDIA)"
    );
    assert_eq!(import.loss("starts of dispatches"), 107);
    assert_eq!(import.loss("whole blocks of timings"), 0);
    assert!(import.notes("does not say when work ran"));
}

#[test]
fn a_block_that_lacks_lines_is_counted() {
    let cut = LOG.replace("ADD: 3 x 4.1 us\n", "ADD: 3 x 4.1 ussome other text\n");
    let import = import_bytes("stderr.log", cut.as_bytes()).unwrap();
    assert_eq!(import.trace.tables.dispatches.len(), 32 + 65 + 7);
    assert_eq!(import.loss("whole blocks of timings"), 1);
    let end = LOG.find("RMS_NORM").unwrap();
    let import = import_bytes("stderr.log", &LOG.as_bytes()[..end]).unwrap();
    assert_eq!(import.loss("whole blocks of timings"), 1);
}

#[test]
fn a_log_without_timings_is_refused_by_a_sentence() {
    let error = import_bytes("stderr.log", b"x\nVulkan Timings:\nTotal time: 0 us.\n").unwrap_err();
    assert!(matches!(&error, Error::NothingRecorded { .. }));
    assert!(
        error.to_string().contains("GGML_VK_PERF_LOGGER=1"),
        "{error}"
    );
    let hostile = b"Vulkan Timings:\nADD: 18446744073709551615 x 0.001 us\nMUL: 2 x 1 us\n";
    let import = import_bytes("stderr.log", hostile).unwrap();
    assert_eq!(import.trace.tables.dispatches.len(), 2);
}

/// Puts a prefix before each line.
fn prefixed(log: &str, prefix: impl Fn(usize) -> String) -> String {
    let lines = log.lines().enumerate();
    lines
        .map(|(at, line)| format!("{}{line}\n", prefix(at)))
        .collect()
}

#[test]
fn prefixes_of_what_collects_logs_are_taken_off() {
    let expected = import_bytes("stderr.log", LOG.as_bytes()).unwrap().trace;
    let names = |trace: &gapscope_trace::Trace| -> Vec<String> {
        let kernels = trace.tables.kernels.iter();
        kernels.map(|kernel| kernel.name.to_string()).collect()
    };
    type Prefix = fn(usize) -> String;
    let prefixes: [(&str, Prefix); 9] = [
        ("llama.cpp's router", |_| "[41075] ".into()),
        ("journald", |at| {
            format!("Nov {} 09:59:{at:02} host llama-server[1234]: ", 9 + at % 2)
        }),
        ("journald, ISO", |at| {
            format!("2026-11-26T10:00:{at:02}+0100 my-host llama[7]: ")
        }),
        ("docker-compose", |_| "llama-1  | ".into()),
        ("docker-compose, colours", |_| {
            "\u{1b}[36mllama-1  | \u{1b}[0m".into()
        }),
        ("docker, times", |at| {
            format!("2026-11-26T10:00:{at:02}.123456789Z ")
        }),
        ("Kubernetes", |at| {
            format!("2026-11-26T10:00:{at:02}.123456789Z stderr F ")
        }),
        ("llama.cpp's own", |at| format!("0.00.{at:03}.456 I ")),
        ("colours", |_| "\u{1b}[0m\u{1b}[32m".into()),
    ];
    for (name, prefix) in prefixes {
        let log = prefixed(LOG, prefix);
        let import = import_bytes("stderr.log", log.as_bytes()).unwrap();
        let (own, other) = (&import.trace, &expected);
        assert_eq!(names(own), names(other), "{name}");
        assert_eq!(
            own.tables.dispatches.duration_ns, other.tables.dispatches.duration_ns,
            "{name}"
        );
        assert_eq!(import.loss("whole blocks of timings"), 0, "{name}");
        assert_eq!(
            own.manifest.devices[0].name, "NVIDIA H200 (NVIDIA)",
            "{name}"
        );
    }
}

#[test]
fn mixed_blocks_of_two_programs_are_told_apart() {
    let (first, second) = (
        prefixed(LOG, |_| "[41075] ".into()),
        prefixed(LOG, |_| "[41076] ".into()),
    );
    let lines = first.lines().zip(second.lines());
    let mixed: String = lines.map(|(a, b)| format!("{a}\n{b}\n")).collect();
    let import = import_bytes("router.log", mixed.as_bytes()).unwrap();
    assert_eq!(import.trace.tables.dispatches.len(), 2 * (3 + 32 + 65 + 7));
    assert_eq!(import.loss("whole blocks of timings"), 0);
    // Both programs have the same GPU.
    let devices = &import.trace.manifest.devices;
    assert_eq!(devices[0].name, "NVIDIA H200 (NVIDIA)");
    let label = import.trace.tables.dispatches.iter().next().unwrap().label;
    let path = crate::imported::path(&import.trace, label);
    assert_eq!(path, "[41075] / Vulkan Timings 1");
}
