//! Tests the library and the program of `gapscope query` on trace folders that the tests write, and the examples of its
//! documentation.

mod activity;
mod answers;
mod bad_input;
mod documentation;
mod gaps;
mod kernel_counters;
mod many;
mod program;
mod saved;
mod versions;

use gapscope_query::{Error, Format, Session, Traces};
use gapscope_trace::{Trace, TraceWriter};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A trace with two queues of one device, three kernels (one without a name), transfers, host calls and labels.
pub const TEXT: &str = "\
manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
process id=1 pid=100 executable=/usr/bin/program
thread process=1 thread=101 name=worker
device id=1 process=1 api=vulkan name=\"Some GPU\" uuid=00ff
queue id=1 device=1 name=compute
queue id=2 device=1 family=1
kernel id=1 process=1 name=matmul
kernel id=2 process=1 name=softmax
label id=1 text=step
label id=2 text=attention parent=1
submission id=1 process=1 queue=1 thread=101 start_ns=10us duration_ns=10us command_buffers=1
host_call process=1 thread=101 call=submit start_ns=10us duration_ns=10us queue=1 busy_ns=10us
host_call process=1 thread=101 call=poll-fence start_ns=30us duration_ns=9us count=5 busy_ns=3us queue=1
command_buffer id=1 process=1 queue=1 submission=1 start_ns=100us duration_ns=100us dispatches=3 transfers=1 label=1
dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=100us duration_ns=40us label=2
dispatch command_buffer=1 position=1 queue=1 kernel=2 start_ns=150us duration_ns=10us
dispatch command_buffer=1 position=2 queue=2 kernel=1 start_ns=180us duration_ns=20us
dispatch command_buffer=1 position=3 queue=1 kernel=77
transfer command_buffer=1 position=4 queue=1 kind=copy bytes=4000 start_ns=200us duration_ns=1us
";

/// Work that the host submitted late, with samples from the time before, to append to [`TEXT`].
pub const LATE: &str = "\
submission id=2 process=1 queue=1 thread=101 start_ns=400us duration_ns=10us command_buffers=1
host_call process=1 thread=101 call=submit start_ns=400us duration_ns=10us queue=1
command_buffer id=2 process=1 queue=1 submission=2 start_ns=420us duration_ns=10us dispatches=1
dispatch command_buffer=2 position=0 queue=1 kernel=1 start_ns=420us duration_ns=10us
frame id=0 kind=python function=main file=train.py line=41
frame id=1 kind=python function=resize file=/usr/lib/python3/images.py line=7
frame id=2 kind=native function=read library=/usr/lib/libc.so.6
stack id=0 frame=0
stack id=1 parent=0 frame=1
stack id=2 parent=1 frame=2
sample time_ns=250us process=1 thread=101 stack=2 state=blocked source=sampled period_ns=40us
sample time_ns=290us process=1 thread=101 stack=2 state=blocked source=sampled period_ns=40us
sample time_ns=330us process=1 thread=101 state=running source=sampled period_ns=40us
sample time_ns=340us process=1 thread=102 stack=1 state=running source=sampled period_ns=40us
sample time_ns=399us process=1 thread=101 stack=0 state=running source=at-submission
sample time_ns=425us process=1 thread=101 stack=0 state=running source=sampled period_ns=40us
";

/// A folder for one test.
pub struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    #[expect(clippy::new_without_default, reason = "an empty folder is made")]
    pub fn new() -> TestFolder {
        TestFolder {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a trace.
    pub fn trace(&self, name: &str, text: &str) {
        self.write(name, Trace::from_text(text).unwrap());
    }

    pub fn write(&self, name: &str, trace: Trace) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = TraceWriter::create(&path).unwrap();
        *writer.tables_mut() = trace.tables;
        writer.finish(&trace.manifest).unwrap();
    }

    pub fn open(&self, names: &[&str]) -> Result<Traces, Error> {
        let paths: Vec<OsString> = names.iter().map(|name| self.path(name).into()).collect();
        Traces::open(&paths)
    }

    pub fn session(&self, names: &[&str]) -> Session {
        Session::new(self.open(names).unwrap()).unwrap()
    }

    /// Replaces the test's folder in a text.
    pub fn without_folder(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// Opens a session on one trace of [`TEXT`].
pub fn one() -> (TestFolder, Session) {
    let folder = TestFolder::new();
    folder.trace("t.gapscope", TEXT);
    let session = folder.session(&["t.gapscope"]);
    (folder, session)
}

pub fn csv(session: &Session, sql: &str) -> String {
    let mut out = Vec::new();
    let rows = session.run(sql, Format::Csv, &mut out);
    rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    String::from_utf8(out).unwrap()
}

/// Counts the rows of a table, which a filter may follow.
pub fn count(session: &Session, table: &str) -> usize {
    let answer = csv(session, &format!("select count(*) as n from {table}"));
    let number = answer.strip_prefix("n\n").unwrap();
    number.trim_end().parse().unwrap()
}

pub fn error(session: &Session, sql: &str) -> String {
    let error = session.run(sql, Format::Csv, &mut Vec::new());
    let text = error.expect_err(sql).to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

pub fn cut_short(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}
