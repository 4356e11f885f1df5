//! Tests that files which no tool wrote are imported quickly, with a trace or an error of one sentence.

use crate::imported::{Import, Rows, import_bytes, loss};
use gapscope_import::Error;
use std::path::Path;

fn fixture(path: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests")
            .join(path),
    )
    .unwrap()
}

/// Returns a packet with this content.
fn packet(contents: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x0a];
    let mut length = contents.len();
    while length > 0x7f {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(contents);
    bytes
}

fn one_sentence(result: &Result<Import, Error>) {
    if let Err(error) = result {
        let text = error.to_string();
        assert!(!text.contains('\n') && text.len() < 700, "{text}");
    }
}

#[test]
fn a_perfetto_trace_that_is_cut_gives_what_there_is() {
    let whole = fixture("perfetto/gpu_render_stages.pftrace");
    let all = import_bytes("a.pftrace", &whole).unwrap();
    let all = all.trace.tables.opaque_work.iter().count();
    let cut = import_bytes("a.pftrace", &whole[..whole.len() - 3]).unwrap();
    assert_eq!(cut.trace.tables.opaque_work.iter().count(), all - 1);
    assert_eq!(cut.loss("rests of files"), 1);
    let share = format!("of {} bytes (", whole.len() - 3);
    assert_eq!(
        loss(&cut.trace, &share),
        1,
        "{:?}",
        cut.trace.manifest.losses
    );
    for end in [0, 1, 2, 5, 40] {
        one_sentence(&import_bytes("a.pftrace", &whole[..end]));
    }
}

#[test]
fn a_perfetto_trace_that_stands_twice_in_a_file_counts_once() {
    for name in [
        "gpu_render_stages_flow",
        "vulkan_api_events",
        "flow_events_track_event",
    ] {
        let once = fixture(&format!("perfetto/{name}.pftrace"));
        let twice = import_bytes("a.pftrace", &[&once[..], &once].concat()).unwrap();
        let once = import_bytes("a.pftrace", &once).unwrap();
        let rows = |import: &Import| {
            let t = &import.trace.tables;
            let calls = t.host_calls.iter().filter(|row| row.duration_ns > 2_000);
            (
                t.dispatches.iter().count(),
                t.opaque_work.iter().count(),
                t.submissions.iter().count(),
                calls.count(),
            )
        };
        assert_eq!(rows(&twice), rows(&once), "{name}");
        assert!(twice.loss("repeated events") > 0, "{name}");
        assert_eq!(once.loss("repeated events"), 0, "{name}");
    }
}

#[test]
fn lengths_beyond_the_file_cost_nothing() {
    let mut bytes = fixture("perfetto/gpu_render_stages.pftrace");
    // The first length is 2^62 bytes, and the second is more than the file holds.
    for length in [
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f][..],
        &[0xff, 0xff, 0xff, 0x1f],
    ] {
        bytes.push(0x0a);
        bytes.extend_from_slice(length);
        let import = import_bytes("a.pftrace", &bytes).unwrap();
        assert_eq!(import.loss("rests of files"), 1);
    }
}

#[test]
fn messages_inside_of_messages_a_million_times_are_passed_over() {
    let mut nested = vec![0x0a; 1_000_000];
    nested.extend([0x22, 0x00]);
    // The messages are annotations of a track event.
    let event = [&[0x08, 0x64, 0x5a][..], &packet(&nested)[1..]].concat();
    let bytes = [
        fixture("perfetto/gpu_render_stages.pftrace"),
        packet(&event),
    ]
    .concat();
    import_bytes("a.pftrace", &bytes).unwrap();
}

#[test]
fn tracks_inside_of_themselves_are_counted() {
    // Track 7 is inside 8, and 8 inside 7; an event is on 7.
    let seven = packet(&[0xe2, 0x03, 4, 0x08, 7, 0x28, 8]);
    let eight = packet(&[0xe2, 0x03, 4, 0x08, 8, 0x28, 7]);
    let event = packet(&[0x40, 10, 0x5a, 7, 0x48, 3, 0x58, 7, 0xba, 0x01, 0]);
    let import = import_bytes("a.pftrace", &[seven, eight, event].concat()).unwrap();
    assert_eq!(import.loss("tracks"), 2);
    assert_eq!(import.trace.tables.markers.iter().count(), 1);
}

#[test]
fn absurd_times_are_counted_not_kept() {
    // The render stages have a duration of 2^64-1 ns and a start of 2^64-1.
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let mut long = vec![0x40, 10, 0xaa, 0x03, 13, 0x10];
    long.extend(most);
    long.extend([0x18, 0]);
    let mut late = vec![0x40];
    late.extend(most);
    late.extend([0xaa, 0x03, 4, 0x10, 5, 0x18, 0]);
    let good = fixture("perfetto/gpu_render_stages_overlapping.pftrace");
    let bytes = [good, packet(&long), packet(&late)].concat();
    let import = import_bytes("a.pftrace", &bytes).unwrap();
    assert_eq!(import.loss("dispatch times"), 2);
    let starts = &import.trace.tables.opaque_work.start_ns;
    assert_eq!(
        (starts.iter().count(), starts.iter().flatten().count()),
        (4, 2)
    );
}

#[test]
fn bundles_of_packets_are_decompressed_and_bombs_are_not() {
    let whole = fixture("perfetto/gpu_render_stages_overlapping.pftrace");
    let zstd = zstd::encode_all(whole.as_slice(), 3).unwrap();
    let mut field = vec![0xaa, 0x08];
    field.extend(&packet(&zstd)[1..]);
    let bundle = packet(&field);
    let head = fixture("perfetto/gpu_info.pftrace");
    let import = import_bytes("a.pftrace", &[head.clone(), bundle].concat()).unwrap();
    assert_eq!(import.trace.tables.opaque_work.iter().count(), 2);
    assert_eq!(import.loss("bundles of compressed packets"), 0);
    // A few bytes decompress to endless packets.
    let bomb = zstd::encode_all(vec![0x0a; 1 << 26].as_slice(), 3).unwrap();
    let mut field = vec![0xaa, 0x08];
    field.extend(&packet(&bomb)[1..]);
    let bytes = [head, whole, packet(&field)].concat();
    let import = import_bytes("a.pftrace", &bytes).unwrap();
    assert_eq!(import.loss("bundles of compressed packets"), 1);
    assert_eq!(import.trace.tables.opaque_work.iter().count(), 2);
}

#[test]
fn a_profile_that_is_cut_gives_what_there_is() {
    let packed = fixture("xplane/jax_te_fused_attn.xplane.pb.gz");
    let mut whole = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
    std::io::Read::read_to_end(&mut decoder, &mut whole).unwrap();
    for end in [1, 10, 1000, 20_000, whole.len() - 1000] {
        let result = import_bytes("a.xplane.pb", &whole[..end]);
        one_sentence(&result);
        if let Ok(import) = result {
            assert!(import.loss("records") + import.loss("rests of files") > 0);
        }
    }
    // The gzip stream ends early.
    one_sentence(&import_bytes("a.xplane.pb.gz", &packed[..packed.len() / 2]));
    assert!(import_bytes("a.xplane.pb", &whole).is_ok());
}
