//! Writes and opens traces.

use gapscope_trace::ids::{KernelId, LabelId, ThreadId};
use gapscope_trace::manifest::Manifest;
use gapscope_trace::synthetic::Synthetic;
use gapscope_trace::tables::*;
use gapscope_trace::{Diagnostic, Error, Selection, Trace, TraceWriter, read};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn trace() -> Trace {
    Trace::from_text(
        "process id=1 pid=77
         device id=1 process=1 api=vulkan
         queue id=1 device=1 capabilities=compute
         label id=1 text=step
         kernel id=1 process=1 name=sin name_source=entry-point
         submission id=1 process=1 queue=1 thread=77 start_ns=5 duration_ns=4 command_buffers=1
         command_buffer id=1 process=1 queue=1 submission=1 start_ns=10 duration_ns=1us dispatches=2 label=1
         dispatch command_buffer=1 position=0 queue=1 kernel=1 start_ns=10 duration_ns=400 groups_x=4
         dispatch command_buffer=1 position=1 queue=1 kernel=1
         host_call process=1 thread=77 call=submit start_ns=5 duration_ns=4",
    )
    .expect("the text is a trace")
}

/// Pushes all rows of `trace` again.
fn push(writer: &mut TraceWriter, trace: &Trace) {
    let rows = trace.tables.clone();
    macro_rules! push {
        ($($field:ident: $table:ty,)+) => {$(
            for row in 0..rows.$field.len() {
                writer.tables_mut().$field.push(rows.$field.row(row));
            }
        )+};
    }
    gapscope_trace::for_each_table!(push);
}

fn write(folder: &Path, trace: &Trace) {
    let mut writer = TraceWriter::create(folder).expect("create");
    push(&mut writer, trace);
    writer.finish(&trace.manifest).expect("finish");
}

/// Returns a folder that does not exist yet, in another that is removed at the end of a test.
fn new_folder() -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    (temporary, folder)
}

/// Returns the folder of a finished trace.
fn written(trace: &Trace) -> (TempDir, PathBuf) {
    let (temporary, folder) = new_folder();
    write(&folder, trace);
    (temporary, folder)
}

/// Returns the folder of a trace, and the writer that has its manifest and all its rows.
fn unfinished(trace: &Trace) -> (TempDir, PathBuf, TraceWriter) {
    let (temporary, folder) = new_folder();
    let mut writer = TraceWriter::create(&folder).expect("create");
    writer.write_manifest(&trace.manifest).expect("manifest");
    push(&mut writer, trace);
    (temporary, folder, writer)
}

fn open(folder: &Path) -> (Trace, Vec<Diagnostic>) {
    read(folder, &Selection::all()).expect("it opens")
}

#[test]
fn a_finished_trace_reads_as_it_was_written() {
    let trace = trace();
    let (_temporary, folder) = written(&trace);
    assert_eq!(open(&folder), (trace, vec![]));
    let files = fs::read_dir(&folder).expect("readable").count();
    assert_eq!(files, 19 + 2, "a file a table, manifest and sources");
    assert!(!folder.join("parts").exists());
}

#[test]
fn an_empty_trace_has_all_its_tables() {
    let empty = Trace::from_text("").expect("the text is a trace");
    let (_temporary, folder) = written(&empty);
    assert_eq!(open(&folder), (empty, vec![]));
}

#[test]
fn an_existing_output_is_refused_and_left_alone() {
    let temporary = tempfile::tempdir().expect("a folder");
    let error = TraceWriter::create(temporary.path()).expect_err("it exists");
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    let error =
        TraceWriter::create(&temporary.path().join("no/a.gapscope")).expect_err("no parent");
    assert!(matches!(error, Error::NoParent { .. }), "{error}");
    let file = temporary.path().join("file");
    fs::write(&file, "x").expect("written");
    let error = TraceWriter::create(&file.join("a.gapscope")).expect_err("a file as parent");
    assert!(matches!(error, Error::Write { .. }), "{error}");
}

#[test]
fn a_killed_recording_opens_up_to_its_last_checkpoint() {
    let trace = trace();
    let (_temporary, folder, mut writer) = unfinished(&trace);
    writer.checkpoint().expect("checkpoint");
    writer.tables_mut().dispatches.push(Dispatch::default());
    drop(writer);
    let (found, diagnostics) = open(&folder);
    assert_eq!(diagnostics, [Diagnostic::Unfinished]);
    assert!(!found.manifest.complete);
    assert_eq!(found.tables, trace.tables);
}

#[test]
fn a_resumed_recording_has_what_was_listed_and_nothing_else() {
    let trace = trace();
    let (_temporary, folder, mut writer) = unfinished(&trace);
    let listed = writer.checkpoint().expect("checkpoint");
    push(&mut writer, &trace);
    writer
        .checkpoint()
        .expect("a checkpoint that nobody heard of");
    drop(writer);
    let listed =
        serde_json::from_str(&serde_json::to_string(&listed).expect("JSON")).expect("JSON");
    let mut writer = TraceWriter::resume(&folder, &listed).expect("resume");
    writer
        .tables_mut()
        .dispatches
        .push(trace.tables.dispatches.row(1));
    writer.finish(&trace.manifest).expect("finish");
    let (found, diagnostics) = open(&folder);
    assert_eq!(diagnostics, []);
    assert_eq!(found.tables.dispatches.kernel, [KernelId(1); 3]);
    assert_eq!(found.tables.command_buffers, trace.tables.command_buffers);
    let error = TraceWriter::resume(&folder, &listed).expect_err("it is complete");
    assert!(matches!(error, Error::Complete { .. }), "{error}");
}

#[test]
fn large_and_small_parts_keep_their_order() {
    let (_temporary, folder) = new_folder();
    let mut writer = TraceWriter::create(&folder).expect("create");
    let mut position = 0;
    for rows in [10, 5, 40_000, 7, 70_000, 1, 2] {
        for _ in 0..rows {
            let row = Dispatch {
                position,
                start_ns: (position % 3 != 0).then_some(i64::from(position) * 7),
                ..Dispatch::default()
            };
            writer.tables_mut().dispatches.push(row);
            writer.flush_full().expect("flush");
            position += 1;
        }
        writer.checkpoint().expect("checkpoint");
    }
    assert!(writer.bytes_written() > 0);
    writer.finish(&Manifest::default()).expect("finish");
    let (found, _) = open(&folder);
    let d = found.tables.dispatches;
    assert_eq!(d.position, (0..position).collect::<Vec<_>>());
    assert!(
        d.start_ns
            .iter()
            .zip(&d.position)
            .all(|(s, p)| s == (p % 3 != 0).then_some(i64::from(*p) * 7))
    );
}

#[test]
fn columns_that_are_not_wanted_stay_empty() {
    let trace = trace();
    let (_temporary, folder) = written(&trace);
    let selection = Selection::manifest()
        .columns::<Dispatches>(&["queue", "duration_ns"])
        .with::<CommandBuffers>();
    let (read, diagnostics) = read(&folder, &selection).expect("it opens");
    assert_eq!(diagnostics, vec![]);
    let (some, whole) = (&read.tables.dispatches, &trace.tables.dispatches);
    assert!(some.start_ns.is_empty() && some.kernel.is_empty() && some.command_buffer.is_empty());
    assert_eq!(some.duration_ns, whole.duration_ns);
    assert_eq!(some.queue, whole.queue);
    assert_eq!(some.len(), whole.len());
    assert_eq!(read.tables.command_buffers, trace.tables.command_buffers);
    assert!(read.tables.host_calls.is_empty());
}

#[test]
fn ids_that_lead_nowhere_are_reported() {
    let mut trace = trace();
    trace.tables.dispatches.kernel = vec![KernelId(u32::MAX), KernelId(1)];
    trace.tables.labels.parent = vec![Some(LabelId(9))].into();
    let (_temporary, folder) = written(&trace);
    let (found, diagnostics) = open(&folder);
    assert_eq!(found, trace);
    let texts: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "dispatches: the trace does not know the kernel of 1 row(s), such as 4294967295",
            "labels: the trace does not know the parent of 1 row(s), such as 9",
        ]
    );
}

#[test]
fn a_damaged_table_leaves_the_others() {
    let trace = trace();
    let (_temporary, folder) = written(&trace);
    let file = folder.join("host_calls.parquet");
    let bytes = fs::read(&file).expect("readable");
    fs::write(&file, &bytes[..bytes.len() - 9]).expect("writable");
    fs::remove_file(folder.join("barriers.parquet")).expect("removable");
    fs::write(folder.join("of_a_later_version.parquet"), "x").expect("writable");
    let (found, diagnostics) = open(&folder);
    assert!(
        matches!(
            diagnostics.as_slice(),
            [Diagnostic::MissingFile { .. }, Diagnostic::UnreadableFile { path, .. }] if *path == file
        ),
        "{diagnostics:?}"
    );
    assert!(found.tables.host_calls.is_empty());
    assert_eq!(found.tables.dispatches, trace.tables.dispatches);
}

/// Overwrites the last quarter of a column in a table's file.
fn damage(file: &Path, column: &str) {
    let mut bytes = fs::read(file).expect("readable");
    let reader = SerializedFileReader::new(fs::File::open(file).expect("open")).expect("a footer");
    let mut range = None;
    for group in reader.metadata().row_groups() {
        for chunk in group.columns() {
            if chunk.column_descr().name() == column {
                range = Some(chunk.byte_range());
            }
        }
    }
    let (start, length) = range.expect("the column");
    let damaged = (start + length * 3 / 4) as usize..(start + length) as usize;
    bytes[damaged].fill(0xff);
    fs::write(file, bytes).expect("writable");
}

#[test]
fn rows_before_damage_are_kept_and_those_after_are_counted() {
    let (_temporary, folder) = new_folder();
    let synthetic = Synthetic {
        dispatches: 100_000,
        ..Synthetic::default()
    };
    let trace = synthetic.trace();
    write(&folder, &trace);
    let all = trace.tables.dispatches.len() as u64;
    damage(&folder.join("dispatches.parquet"), "start_ns");
    damage(&folder.join("dispatches.parquet"), "kernel");
    let (found, diagnostics) = open(&folder);
    let [cut, column] = found.unread.as_slice() else {
        panic!("{:?}", found.unread);
    };
    // A row is nothing without its kernel; without its start it only lacks its time.
    let (cut, column) = match cut.lacks_rows() {
        true => (cut, column),
        false => (column, cut),
    };
    assert_eq!(
        (cut.table, cut.file.as_str()),
        ("dispatches", "dispatches.parquet")
    );
    assert_eq!(cut.rows_missing, Some(all - cut.rows_read));
    assert!(cut.rows_read > 0 && cut.rows_read < all, "{cut:?}");
    assert_eq!(column.column, Some("start_ns"));
    let kept = found.tables.dispatches.len();
    assert_eq!(kept as u64, cut.rows_read);
    assert_eq!(
        found.tables.dispatches.kernel,
        trace.tables.dispatches.kernel[..kept]
    );
    assert!(found.tables.dispatches.start_ns.at(0).is_some());
    assert!(
        diagnostics
            .iter()
            .any(|d| d.to_string().contains("rows are missing"))
    );
    assert!(
        read(&folder, &Selection::manifest())
            .expect("it opens")
            .0
            .unread
            .is_empty()
    );
}

#[test]
fn what_is_no_trace_is_refused_in_a_sentence() {
    let temporary = tempfile::tempdir().expect("a folder");
    let refuse = |path: &Path| {
        let error = read(path, &Selection::all()).expect_err("refused");
        error.to_string()
    };
    let put = |name: &str, text: &str| {
        let path = temporary.path().join(name);
        fs::write(&path, text).expect("writable");
        path
    };
    let kineto = put("k.json", "{\"schemaVersion\": 1, \"traceEvents\": []}");
    assert!(refuse(&kineto).contains("Kineto"));
    assert!(refuse(&put("n.sqlite", "SQLite format 3\0")).contains("Nsight"));
    assert!(refuse(&put("d.parquet", "PAR1")).contains("whole folder"));
    assert!(refuse(&put("x", "")).contains("empty"));
    assert!(refuse(&temporary.path().join("absent")).contains("cannot be read"));
    let folder = temporary.path().join("x.trace");
    fs::create_dir(&folder).expect("made");
    assert!(refuse(&folder).contains("xctrace"));
    let manifest = folder.join("trace.json");
    fs::write(
        &manifest,
        "{\"format_version\": 4, \"gapscope_version\": \"7.1\", \"host\": 5}",
    )
    .expect("writable");
    assert!(
        refuse(&folder).ends_with("open it with a newer gapscope, such as the one that wrote it")
    );
    fs::write(&manifest, "{\"name\": 2}").expect("writable");
    assert!(refuse(&folder).contains("no format_version"));
    fs::write(&manifest, "{\"format_version\": 1, \"losses\":").expect("writable");
    assert!(refuse(&folder).contains("trace.json is damaged"));
}

#[test]
fn sources_are_kept_once_and_only_under_hashes() {
    let (_temporary, folder) = new_folder();
    let mut writer = TraceWriter::create(&folder).expect("create");
    writer.add_source("00ff", "spv", b"code").expect("added");
    writer
        .add_source("00ff", "spv", b"other")
        .expect("there already");
    assert_eq!(
        fs::read(folder.join("sources/00ff.spv")).expect("readable"),
        b"code"
    );
    for (hash, extension) in [
        ("../00ff", "spv"),
        ("00ff", "s/v"),
        ("", "spv"),
        ("00ff", ""),
    ] {
        assert!(matches!(
            writer.add_source(hash, extension, b""),
            Err(Error::SourceName { .. })
        ));
    }
}

#[test]
fn a_trace_that_cannot_be_completed_stays_readable() {
    let trace = trace();
    let (_temporary, folder, writer) = unfinished(&trace);
    // A file of the last step cannot be created, as on a full disk.
    let obstacle = folder.join("host_calls.parquet.new");
    fs::create_dir(&obstacle).expect("made");
    let error = writer.finish(&trace.manifest).expect_err("it cannot");
    assert!(error.to_string().contains("cannot be written"), "{error}");
    let (found, diagnostics) = open(&folder);
    assert_eq!(diagnostics, [Diagnostic::Unfinished]);
    assert_eq!(found.tables, trace.tables);
}

#[test]
fn a_failed_part_costs_its_table_only() {
    let trace = trace();
    let (_temporary, folder, mut writer) = unfinished(&trace);
    writer.checkpoint().expect("checkpoint");
    let obstacle = folder.join("parts/dispatches-000002.parquet.open");
    fs::create_dir(&obstacle).expect("made");
    push(&mut writer, &trace);
    writer.checkpoint().expect_err("the part cannot be made");
    fs::remove_dir(&obstacle).expect("removed");
    writer
        .tables_mut()
        .dispatches
        .push(trace.tables.dispatches.row(0));
    writer.finish(&trace.manifest).expect("finish");
    let (found, _) = open(&folder);
    assert_eq!(
        found.tables.dispatches.kernel,
        [KernelId(1); 3],
        "without the two of the failed part"
    );
    assert_eq!(found.tables.host_calls.len(), 2);
}

#[test]
fn what_a_manifest_does_not_know_is_absent_and_was_once_0() {
    let (_temporary, folder) = written(&trace());
    let path = folder.join("trace.json");
    let json = fs::read_to_string(&path).expect("readable");
    assert!(json.contains("\"start_unix_ns\": null"), "{json}");
    assert_eq!(open(&folder).0.manifest.start_unix_ns, None);
    let opened_with = |key: &str, value: &str| {
        let old = json.replace(&format!("\"{key}\": null"), &format!("\"{key}\": {value}"));
        assert!(old != json, "{json}");
        fs::write(&path, old).expect("writable");
        open(&folder).0.manifest
    };
    for (value, known) in [("0", None), ("17", Some(17))] {
        let manifest = opened_with("start_unix_ns", value);
        assert_eq!(manifest.start_unix_ns, known.map(i64::from));
        assert_eq!(opened_with("cores", value).host.cores, known);
        let manifest = opened_with("parent_pid", value);
        assert_eq!(manifest.processes[0].parent_pid, known);
    }
}

#[test]
fn a_thread_that_is_not_known_is_absent_and_was_once_0() {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut trace = trace();
    let calls = &mut trace.tables.host_calls;
    calls.push(HostCall {
        thread: Some(ThreadId(7)),
        ..calls.row(0)
    });
    for written in [None, Some(ThreadId(0))] {
        trace.tables.host_calls.thread.set(0, written);
        trace.tables.submissions.thread.set(0, written);
        let folder = temporary.path().join(format!("{written:?}.gapscope"));
        write(&folder, &trace);
        let (found, diagnostics) = open(&folder);
        assert_eq!(diagnostics, []);
        assert_eq!(found.tables.host_calls.thread, [None, Some(ThreadId(7))]);
        assert_eq!(found.tables.submissions.thread.at(0), None);
    }
}

/// The pipes have no writer: opening one blocks for ever.
#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_is_an_error() {
    let temporary = tempfile::tempdir().expect("a folder");
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo runs").success());
    };
    let folder = temporary.path().join("t.gapscope");
    write(&folder, &Trace::default());
    fs::remove_file(folder.join("dispatches.parquet")).expect("it was there");
    pipe(&folder.join("dispatches.parquet"));
    let (_, diagnostics) = read(&folder, &Selection::all()).expect("readable");
    let said: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.contains("not a regular file")),
        "{said:?}"
    );
    fs::remove_file(folder.join("trace.json")).expect("it was there");
    pipe(&folder.join("trace.json"));
    let error = read(&folder, &Selection::all())
        .expect_err("refused")
        .to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn a_table_that_only_some_traces_have_is_written_with_rows_only() {
    let temporary = tempfile::tempdir().expect("a folder");
    let without = temporary.path().join("without.gapscope");
    write(&without, &trace());
    assert!(!without.join("kernel_metrics.parquet").exists());
    assert!(!without.join("pc_samples.parquet").exists());
    assert_eq!(open(&without), (trace(), vec![]));

    let with = temporary.path().join("with.gapscope");
    let text = "kernel_metric profile=1 kernel=1 submission=1 section=memory metric=dram__bytes_read.sum value=1024 unit=bytes passes=20
         kernel_metric profile=1 kernel=1 section=stalls metric=made.up value=0.25 unit=ratio passes=20";
    let mut trace = trace();
    let metrics = Trace::from_text(text).expect("the text is a trace").tables;
    trace.tables.kernel_metrics = metrics.kernel_metrics;
    write(&with, &trace);
    let (found, diagnostics) = open(&with);
    assert_eq!(diagnostics, []);
    assert_eq!(found.tables.kernel_metrics, trace.tables.kernel_metrics);
    assert_eq!(found.tables.kernel_metrics.submission.at(1), None);
    let sizes = gapscope_trace::table_sizes(&with, found.manifest.format_version);
    let sizes = sizes.expect("readable");
    let kernel_metrics = sizes.iter().find(|size| size.table == "kernel_metrics");
    assert_eq!(kernel_metrics.and_then(|size| size.rows), Some(2));
}

#[test]
fn the_size_of_a_table_is_unknown_where_its_file_is_another_tables() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("swapped.gapscope");
    write(&folder, &trace());
    std::fs::copy(
        folder.join("submissions.parquet"),
        folder.join("dispatches.parquet"),
    )
    .unwrap();
    let version = gapscope_trace::manifest::FORMAT_VERSION;
    let sizes = gapscope_trace::table_sizes(&folder, version).expect("readable");
    let unread = sizes.iter().filter(|size| size.rows.is_none());
    let unread: Vec<&str> = unread.map(|size| size.table).collect();
    assert_eq!(unread, ["dispatches"]);
}
