//! Tests that files of every format may be packed by gzip or zstd.

use crate::database::database;
use crate::imported::{fixture, import, import_bytes, loss};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn packed_files_are_imported_as_their_content() {
    let database = database(
        "StringIds id value\n[1, \"step\"]\nNVTX_EVENTS start end eventType textId globalTid\n[10, 20, 59, 1, 117440513]\n",
    );
    let log = b"Vulkan Timings:\nADD: 3 x 4 us\nTotal time: 12 us.\n";
    let json = std::fs::read(fixture("rocprofv3.json")).unwrap();
    let rocpd = std::fs::read(fixture("rocpd.db")).unwrap();
    for (name, bytes) in [
        ("export.sqlite", &database[..]),
        ("stderr.log", log),
        ("results.json", &json),
        ("results.db", &rocpd),
    ] {
        let plain = import_bytes(name, bytes).unwrap();
        let zstd = zstd::encode_all(bytes, 1).unwrap();
        for (end, packed) in [("gz", gzip(bytes)), ("zst", zstd)] {
            let name = format!("{name}.{end}");
            let unpacked = import_bytes(&name, &packed).unwrap();
            assert_eq!(unpacked.trace.tables, plain.trace.tables, "{name}");
        }
    }
}

#[test]
fn texts_in_utf_16_are_imported_as_their_content() {
    let log = "Vulkan Timings:\nADD 😀: 3 x 4 us\nTotal time: 12 us.\n";
    let json = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    for (name, text) in [("stderr.log", log), ("results.json", &json)] {
        let plain = import_bytes(name, text.as_bytes()).unwrap();
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            let bytes: Vec<u8> = units.flat_map(order).collect();
            let import = import_bytes(name, &bytes).unwrap();
            assert_eq!(import.trace.tables, plain.trace.tables, "{name}");
        }
    }
}

#[test]
fn a_cut_packed_file_gives_what_comes_before_the_cut() {
    let mut log = String::new();
    for block in 0..2000 {
        let time = 10 + block;
        log += &format!("Vulkan Timings:\nADD: 1 x {time} us\nTotal time: {time} us.\n");
    }
    let packed = gzip(log.as_bytes());
    let import = import_bytes("stderr.log.gz", &packed[..packed.len() / 2]).unwrap();
    let dispatches = import.trace.tables.dispatches.kernel.len();
    assert!((100..2000).contains(&dispatches), "{dispatches}");
    // All of the packed bytes that there are were used.
    let bytes = packed.len() / 2;
    let share =
        format!("the {bytes} bytes that it has were read, and how many are missing is not known");
    assert_eq!(
        loss(&import.trace, &share),
        1,
        "{:?}",
        import.trace.manifest.losses
    );
    // Damage in the middle costs what follows: the first of three packed parts does not fit its checksum.
    let json = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/kineto/h100.json");
    let json = std::fs::read(json).unwrap();
    let mut packed = [gzip(&json), gzip(&json), gzip(&json)].concat();
    let checksum = packed.len() / 3 - 8;
    packed[checksum] ^= 1;
    let import = import_bytes("run.json.gz", &packed).unwrap();
    let losses = &import.trace.manifest.losses;
    let rest = losses
        .iter()
        .find(|loss| loss.kind.as_str() == "rests of files");
    let reason = rest.unwrap().reason.to_string();
    let share = reason
        .split(" bytes (")
        .nth(1)
        .and_then(|text| text.split(' ').next());
    let share: f64 = share.unwrap().parse().unwrap();
    assert!((33.0..34.0).contains(&share), "{reason}");
}

#[test]
fn a_file_that_only_begins_like_a_packed_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json.gz");
    std::fs::write(&path, b"\x1f\x8bnonsense").unwrap();
    assert!(import(&path).is_err());
}
