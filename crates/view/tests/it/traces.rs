//! Makes traces in folders for the tests.

use gapscope_trace::synthetic::Synthetic;
use gapscope_trace::{Selection, Trace, TraceWriter};
use gapscope_view::{Error, SavedView, WrittenFile};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with traces, which is removed when this value is dropped.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a trace that is given as text.
    pub fn trace(&self, name: &str, text: &str) -> PathBuf {
        self.write(name, Trace::from_text(text).unwrap())
    }

    pub fn write(&self, name: &str, trace: Trace) -> PathBuf {
        let path = self.path().join(format!("{name}.gapscope"));
        let mut writer = TraceWriter::create(&path).unwrap();
        *writer.tables_mut() = trace.tables;
        writer.finish(&trace.manifest).unwrap();
        path
    }

    /// Writes a synthetic trace.
    pub fn synthetic(&self, dispatches: u64) -> PathBuf {
        let path = self.path().join(format!("synthetic-{dispatches}.gapscope"));
        let synthetic = Synthetic {
            dispatches,
            queues: 3,
            devices: 2,
            kernels: 20,
            layers: 5,
            seed: 7,
        };
        synthetic.write(&path).unwrap();
        path
    }
}

/// Reads all columns of a trace.
pub fn read(path: &Path) -> Trace {
    gapscope_trace::read(path, &Selection::all()).unwrap().0
}

/// Returns the tracks of one kind in an overview.
pub fn tracks<'v>(overview: &'v Value, kind: &str) -> Vec<&'v Value> {
    let tracks = list(&overview["traces"][0]["tracks"]).iter();
    tracks.filter(|track| track["kind"] == kind).collect()
}

/// Returns a value that must be a list.
pub fn list(value: &Value) -> &[Value] {
    let list = value.as_array();
    list.unwrap_or_else(|| panic!("no list: {value}"))
}

/// Checks that an object has these keys with these values, and maybe others.
#[track_caller]
pub fn assert_has(object: &Value, expected: Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(object[key], *value, "{key}");
    }
}

/// Returns a value that must be a text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A trace with two kernels that share a buffer, a transfer, labels and calls, and a wait before the second submission. The clock is past 2^53.
pub const SMALL: &str = "
    manifest start_ns=9100000000000001 end_ns=9100000000010001 start_unix_ns=1795267092000000007 command=demo
    process id=1 pid=4711 executable=/usr/bin/demo start_ns=9100000000000001
    thread process=1 thread=4712 name=worker
    device id=1 process=1 api=vulkan name=\"Fast GPU\" uuid=aa clock.error_ns=50 clock.method=calibrated
    queue id=1 device=1 family=0 index=0
    label id=1 text=step
    label id=2 text=matmul parent=1
    buffer id=1 process=1 device=1 bytes=64 name=x
    buffer id=2 process=1 device=1 bytes=64 name=y
    binding id=1 binding=0 buffer=1 bytes=64 access=write
    binding id=2 binding=0 buffer=1 bytes=64 access=read
    kernel id=1 process=1 name=produce name_source=object-name source=ab12
    kernel id=2 process=1 name=consume name_source=object-name
    host_call process=1 thread=4712 call=submit start_ns=9100000000000101 duration_ns=50
    host_call process=1 thread=4712 call=wait-fences start_ns=9100000000000201 duration_ns=3800
    host_call process=1 thread=4712 call=submit start_ns=9100000000005001 duration_ns=50
    submission id=1 process=1 queue=1 thread=4712 start_ns=9100000000000101 duration_ns=50 command_buffers=1
    submission id=2 process=1 queue=1 thread=4712 start_ns=9100000000005001 duration_ns=50 command_buffers=1
    command_buffer id=1 process=1 queue=1 submission=1 start_ns=9100000000001001 duration_ns=3000 dispatches=2 transfers=1 label=1
    command_buffer id=2 process=1 queue=1 submission=2 start_ns=9100000000006001 duration_ns=1000 dispatches=1
    dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=9100000000001001 duration_ns=1000 groups_x=4 bindings=1 label=2
    dispatch command_buffer=1 position=1 queue=1 kernel=2 start_ns=9100000000001501 duration_ns=1500 bindings=2
    dispatch command_buffer=2 position=0 queue=1 kernel=2 start_ns=9100000000006001 duration_ns=1000 bindings=2
    transfer command_buffer=1 position=2 queue=1 kind=copy bytes=64 start_ns=9100000000003501 duration_ns=500 source=1 destination=2
    marker process=1 scope=command-buffer label=1 queue=1 command_buffer=1 start_ns=9100000000001001 duration_ns=3000
    marker process=1 scope=command-buffer label=2 queue=1 command_buffer=1 start_ns=9100000000001001 duration_ns=1000
    memory process=1 device=1 at_ns=9100000000000051 event=allocate allocation=1 bytes=4096";

/// Writes the page of one trace as a file.
pub fn write_file(trace: &Path, file: &Path) -> Result<WrittenFile, Error> {
    let saved = SavedView::new(&[trace.to_owned()], &[]);
    gapscope_view::write_file(&saved, file, None)
}
