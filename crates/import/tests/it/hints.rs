//! Tests what is said of files that gapscope knows and does not import: what they are and what to do.

use crate::imported::{import, import_bytes};

#[test]
fn files_that_are_not_imported_get_a_hint() {
    for (name, content, expected) in [
        ("run.zip", &b"PK\x03\x04.."[..], "unzip"),
        ("run.json", b"PK\x03\x04..", "unzip"),
        ("report.ncu-rep", b"NVR\0", "ncu --import"),
        ("report.qdstrm", b"x", "QdstrmImporter"),
        ("trace.etl", b"x", "Event Tracing for Windows"),
        ("profile.rgp", b"x", "Radeon GPU Profiler"),
        ("trace.tar", b"x", "tar -xf"),
        ("trace.json.xz", b"\xfd7zXZ\0", "xz -d"),
        ("empty.json", b"", "empty"),
        (
            "x.json",
            b"version https://git-lfs.github.com/spec/v1\n",
            "git lfs pull",
        ),
        ("x.json", b"<!doctype html><title>", "web page"),
        ("x.db", b"SQLite format 3\0", "finds no tables"),
        (
            "kernels.csv",
            b"\"Kind\",\"Agent_Id\",\"Queue_Id\"\n",
            "rocprofv3",
        ),
        ("x.csv", b"a,b,c\n1,2,3\n", "table"),
        (
            "ncu.csv",
            b"==PROF== Connected to process 4711\n==PROF== Disconnected\n\"ID\",\"Kernel Name\",\"Metric Name\"\n",
            "table",
        ),
        (
            "hip_api_trace.csv",
            b"\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\"\n",
            "rocprofv3",
        ),
        (
            "x.sqlite",
            b"SQLite format 3\0 CREATE TABLE StringTable CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME",
            "nvprof",
        ),
        (
            "x.rpd",
            b"SQLite format 3\0 CREATE TABLE \"rocpd_api_ops\" ()",
            "rocmProfileData",
        ),
        (
            "x.hatchet",
            br#"[{"children":[],"frame":{"name":"ROOT"},"metrics":{}}]"#,
            "data=\"trace\"",
        ),
        (
            "x.json",
            br#"[{"children":[],"frame":{"name":"ROOT"},"metrics":{}}]"#,
            "data=\"trace\"",
        ),
        (
            "x.json",
            br#"{"profiles": [], "$schema": "speedscope"}"#,
            "speedscope",
        ),
        (
            "et.json",
            br#"{"schema": "1.0.1", "pid": 1, "nodes": [{"id": 1}]}"#,
            "execution trace of PyTorch",
        ),
        (
            "timeline.raw",
            b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]",
            "timeline of memory",
        ),
        ("trace.json", b"\x78\x9c\x03\x00", "zlib"),
        (
            "layers.csv",
            b"layerName;execStatus;layerType;execType;realTime (ms);\n",
            "table",
        ),
    ] {
        let error = import_bytes(name, content).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn folders_that_are_not_imported_get_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    for (name, expected) in [
        ("frame.gputrace", "Counters.csv"),
        ("run.gapscope", "gapscope report"),
        ("run.gapcapture", "gapscope replay"),
    ] {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("metadata"), b"x").unwrap();
        let error = import(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn the_content_of_packed_files_gets_the_hint_under_their_name() {
    let packed = zstd::encode_all(&b"SQLite format 3\0"[..], 1).unwrap();
    let error = import_bytes("x.sqlite.zst", &packed)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("x.sqlite.zst is a database of SQLite"),
        "{error}"
    );
}
