//! Checks that records that cannot be true, as in malicious captures, are refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use gapscope_capture::{CONTENT, Capture, Hash, Problem, RECORDS, ReadError};

use crate::example;
use crate::round_trip::walk;

/// Eight bytes of content, which `frame` compresses.
const PIECE: &[u8] = b"gapscope";

fn frame() -> Vec<u8> {
    zstd::bulk::compress(PIECE, 1).expect("it can be compressed")
}

fn header() -> String {
    let header = gapscope_capture::Record::Capture(example::header());
    serde_json::to_string(&header).expect("it is JSON")
}

fn files(folder: &Path, records: &[u8]) {
    fs::write(folder.join(RECORDS), records).expect("it can be written");
    fs::write(folder.join(CONTENT), frame()).expect("it can be written");
}

/// Opens a capture with these records behind a header, and returns its problem.
fn problem(records: &[u8]) -> Option<Problem> {
    let folder = tempfile::tempdir().expect("a folder");
    let all = [header().as_bytes(), b"\n", records].concat();
    files(folder.path(), &all);
    let (capture, problem) = Capture::open(folder.path()).expect("it opens");
    walk(&capture);
    problem
}

/// Returns why a line is invalid that follows the objects it names.
fn reason(line: &str) -> String {
    let hash = Hash::new(PIECE);
    let stored = frame().len();
    let objects = format!(
        r#"{{"chunk":{{"hash":"{hash}","at":0,"stored":{stored},"bytes":8}}}}
{{"memory":{{"id":0,"bytes":100,"properties":0}}}}
{{"memory":{{"id":1,"bytes":18446744073709551615,"properties":0}}}}
{{"buffer":{{"id":0,"bytes":80,"usage":0,"flags":0,"memory":0,"offset":20}}}}
{{"set_layout":{{"id":0,"flags":0,"bindings":[{{"binding":3,"descriptor_type":7,"count":2,"stages":32}},{{"binding":1,"descriptor_type":2,"count":1,"stages":32}}]}}}}
{{"pipeline_layout":{{"id":0,"flags":0,"sets":[null,0],"push_constants":[{{"stages":32,"offset":4,"bytes":4}}]}}}}
{{"queue":{{"id":0,"family":0,"index":0,"flags":0}}}}
{{"commands":{{"id":0,"commands":[{{"label":"end"}}]}}}}
"#
    );
    let before = objects.lines().count();
    let records = format!("{objects}{line}\n");
    match problem(records.as_bytes()) {
        None => "nothing".to_owned(),
        Some(found) => {
            assert_eq!(found.line, before + 2, "{found}");
            found.reason.to_string()
        }
    }
}

macro_rules! reasons {
    ($($name:ident: $line:expr => $reason:expr,)+) => {$(
        #[test]
        fn $name() {
            assert_eq!(reason(&$line.replace("HASH", &Hash::new(PIECE).to_string())), $reason);
        }
    )+};
}

reasons! {
    a_second_header: header() => "the capture begins a second time",
    a_number_of_memory_twice: r#"{"memory":{"id":0,"bytes":1,"properties":0}}"# => "number 0 is taken",
    a_number_of_commands_twice: r#"{"commands":{"id":0,"commands":[]}}"# => "number 0 is taken",
    a_number_of_a_layout_twice: r#"{"set_layout":{"id":0,"flags":0,"bindings":[]}}"# => "number 0 is taken",
    a_piece_twice: r#"{"chunk":{"hash":"HASH","at":17,"stored":0,"bytes":0}}"#
        => format!("content {} is here twice", Hash::new(PIECE)),
    a_piece_on_another: r#"{"chunk":{"hash":"00000000000000000000000000000000","at":16,"stored":1,"bytes":1}}"#
        => "content 00000000000000000000000000000000 begins at byte 16, before the end of the last at byte 17",
    a_piece_behind_the_file: r#"{"chunk":{"hash":"00000000000000000000000000000000","at":17,"stored":1,"bytes":1}}"#
        => "content 00000000000000000000000000000000 ends at byte 18, and content.bin has 17 bytes",
    a_piece_past_the_last_number: r#"{"chunk":{"hash":"00000000000000000000000000000000","at":18446744073709551615,"stored":1,"bytes":1}}"#
        => "content 00000000000000000000000000000000 begins at byte 18446744073709551615",
    a_piece_of_too_many_bytes: r#"{"chunk":{"hash":"00000000000000000000000000000000","at":17,"stored":1000000,"bytes":67108865}}"#
        => "content 00000000000000000000000000000000 claims 67108865 bytes, of 1000000 stored ones",
    a_piece_smaller_than_zstd_makes_it: r#"{"chunk":{"hash":"00000000000000000000000000000000","at":17,"stored":1,"bytes":32769}}"#
        => "content 00000000000000000000000000000000 claims 32769 bytes, of 1 stored ones",
    a_short_hash: r#"{"chunk":{"hash":"00","at":17,"stored":1,"bytes":1}}"#
        => "a hash has 32 hexadecimal digits (column 21)",
    a_buffer_of_no_memory: r#"{"buffer":{"id":1,"bytes":1,"usage":0,"flags":0,"memory":7,"offset":0}}"#
        => "there is no memory 7",
    a_buffer_past_its_memory: r#"{"buffer":{"id":1,"bytes":81,"usage":0,"flags":0,"memory":0,"offset":20}}"#
        => "81 bytes from byte 20 on are not inside of 100 bytes",
    a_buffer_past_the_last_number: r#"{"buffer":{"id":1,"bytes":18446744073709551615,"usage":0,"flags":0,"memory":1,"offset":1}}"#
        => "18446744073709551615 bytes from byte 1 on are not inside of 18446744073709551615 bytes",
    a_shader_that_is_missing: r#"{"module":{"id":0,"code":"00000000000000000000000000000000"}}"#
        => "content 00000000000000000000000000000000 is missing",
    a_shader_of_eight_bytes: r#"{"module":{"id":0,"code":"HASH"}}"# => "8 bytes are no SPIR-V",
    a_binding_twice: r#"{"set_layout":{"id":1,"flags":0,"bindings":[{"binding":3,"descriptor_type":7,"count":2,"stages":32},{"binding":3,"descriptor_type":6,"count":1,"stages":32}]}}"#
        => "binding 3 is here twice",
    a_set_of_no_layout: r#"{"pipeline_layout":{"id":1,"flags":0,"sets":[null,4],"push_constants":[]}}"#
        => "there is no set layout 4",
    too_many_push_constants: r#"{"pipeline_layout":{"id":1,"flags":0,"sets":[],"push_constants":[{"stages":32,"offset":4294967292,"bytes":4294967292}]}}"#
        => "4294967292 bytes from byte 4294967292 on are not inside of 65536 bytes",
    push_constants_in_the_middle_of_a_word: r#"{"pipeline_layout":{"id":1,"flags":0,"sets":[],"push_constants":[{"stages":32,"offset":2,"bytes":4}]}}"#
        => "4 bytes from byte 2 on are not whole words",
    a_pipeline_of_no_shader: r#"{"pipeline":{"id":0,"name":"","layout":0,"module":0,"entry":"main","flags":0,"stage_flags":0}}"#
        => "there is no module 0",
    content_of_no_pieces: r#"{"content":{"memory":1,"offset":18446744073709551615,"chunks":[],"cause":"first_use"}}"#
        => "there are no pieces",
    content_past_its_memory: r#"{"content":{"memory":0,"offset":93,"chunks":["HASH"],"cause":"first_use"}}"#
        => "8 bytes from byte 93 on are not inside of 100 bytes",
    content_with_a_short_piece_in_the_middle: r#"{"content":{"memory":0,"offset":0,"chunks":["HASH","HASH"],"cause":"first_use"}}"#
        => "piece 0 has 8 bytes, and 65536 are to the next",
    content_with_a_piece_across_two: r#"{"content":{"memory":1,"offset":65532,"chunks":["HASH"],"cause":"first_use"}}"#
        => "piece 0 has 8 bytes, and 4 are to the next",
    content_for_another_reason: r#"{"content":{"memory":0,"offset":0,"chunks":["HASH"],"cause":"fun"}}"#
        => "unknown variant `fun`, expected `first_use` or `host_write` (column 93)",
    an_outcome_of_nothing: r#"{"outcome":{"memory":0,"offset":0,"bytes":0,"hashes":[]}}"# => "there are no pieces",
    an_outcome_of_all_numbers: r#"{"outcome":{"memory":1,"offset":0,"bytes":18446744073709551615,"hashes":["HASH"]}}"#
        => "there are 1 hashes for 281474976710656 pieces",
    an_outcome_past_its_memory: r#"{"outcome":{"memory":0,"offset":100,"bytes":1,"hashes":["HASH"]}}"#
        => "1 bytes from byte 100 on are not inside of 100 bytes",
    a_copy_of_no_buffer: r#"{"commands":{"id":1,"commands":[{"label":"end"},{"copy":{"from":0,"to":9,"regions":[]}}]}}"#
        => "command 1: there is no buffer 9",
    a_copy_past_its_buffer: r#"{"commands":{"id":1,"commands":[{"copy":{"from":0,"to":0,"regions":[{"from":0,"to":41,"bytes":40}]}}]}}"#
        => "command 0: 40 bytes from byte 41 on are not inside of 80 bytes",
    a_fill_in_the_middle_of_a_word: r#"{"commands":{"id":1,"commands":[{"fill":{"range":{"buffer":0,"offset":0,"bytes":6},"value":0}}]}}"#
        => "command 0: 6 bytes from byte 0 on are not whole words",
    an_update_of_half_a_byte: r#"{"commands":{"id":1,"commands":[{"update":{"buffer":0,"offset":0,"data":"000"}}]}}"#
        => "these are not pairs of hexadecimal digits (column 78)",
    an_update_past_its_buffer: r#"{"commands":{"id":1,"commands":[{"update":{"buffer":0,"offset":80,"data":"00000000"}}]}}"#
        => "command 0: 4 bytes from byte 80 on are not inside of 80 bytes",
    a_barrier_past_its_buffer: r#"{"commands":{"id":1,"commands":[{"barrier":{"buffers":[[{"after_stages":0,"after_access":0,"before_stages":0,"before_access":0},{"buffer":0,"offset":0,"bytes":18446744073709551615}]]}}]}}"#
        => "command 0: 18446744073709551615 bytes from byte 0 on are not inside of 80 bytes",
    a_label_with_a_zero_byte: r#"{"commands":{"id":1,"commands":[{"label":{"begin":"a\u0000b"}}]}}"#
        => "command 0: a text holds a zero byte",
    a_dispatch_of_no_pipeline: r#"{"commands":{"id":1,"commands":[{"dispatch":{"pipeline":0,"groups":{"direct":[1,1,1]},"bindings":[]}}]}}"#
        => "command 0: there is no pipeline 0",
    a_submission_to_no_queue: r#"{"submission":{"queue":1,"called_ns":0,"batches":[]}}"# => "there is no queue 1",
    a_submission_of_no_commands: r#"{"submission":{"queue":0,"called_ns":0,"batches":[{"commands":[0,1]}]}}"#
        => "there is no commands 1",
    a_check_of_something_else: r#"{"check":"00000000000000000000000000000000"}"#
        => "what is before it is not as it was written",
    a_record_of_another_kind: r#"{"texture":{}}"#
        => "unknown variant `texture`, expected one of `capture`, `chunk`, `memory`, `buffer`, `module`, `set_layout`, `pipeline_layout`, `pipeline`, `queue`, `content`, `commands`, `submission`, `outcome`, `end` (column 10)",
    a_negative_size: r#"{"memory":{"id":3,"bytes":-1,"properties":0}}"#
        => "invalid value: integer `-1`, expected u64 (column 28)",
    a_number_past_the_last: r#"{"memory":{"id":4294967296,"bytes":1,"properties":0}}"#
        => "invalid value: integer `4294967296`, expected u32 (column 26)",
    a_field_twice: r#"{"memory":{"id":3,"id":4,"bytes":1,"properties":0}}"# => "duplicate field `id` (column 22)",
    no_line: "" => "EOF while parsing a value (column 0)",
    two_records_in_a_line: r#"{"check":"00000000000000000000000000000000"}{"end":{}}"# => "trailing characters (column 45)",
}

/// Returns the problem of the example with a part of its dispatch changed.
fn dispatch(from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    example::write(&folder);
    let records = fs::read_to_string(folder.join(RECORDS)).expect("it is there");
    let mut lines: Vec<String> = records.lines().map(str::to_owned).collect();
    let line = lines
        .iter()
        .position(|line| line.contains(r#""dispatch""#) && line.contains(from));
    let line = line.unwrap_or_else(|| panic!("a dispatch has {from}"));
    lines[line] = lines[line].replacen(from, to, 1);
    lines.retain(|line| !line.contains(r#"{"check""#));
    lines.push(String::new());
    fs::write(folder.join(RECORDS), lines.join("\n")).expect("it can be written");
    let (capture, problem) = Capture::open(&folder).expect("it opens");
    walk(&capture);
    problem.map_or_else(
        || "nothing".to_owned(),
        |problem| problem.reason.to_string(),
    )
}

#[test]
fn a_dispatch_that_its_layout_does_not_allow() {
    for (from, to, reason) in [
        (
            r#""binding":1"#,
            r#""binding":2"#,
            "command 3: the layout has no such descriptor: set 0, binding 2, element 0",
        ),
        (
            r#""set":0"#,
            r#""set":4294967295"#,
            "command 3: the layout has no such descriptor: set 4294967295, binding 0, element 0",
        ),
        (
            r#""binding":1"#,
            r#""binding":1,"element":1"#,
            "command 3: the layout has no such descriptor: set 0, binding 1, element 1",
        ),
        (
            r#""binding":1"#,
            r#""binding":0"#,
            "command 3: descriptors are not in order: set 0, binding 0, element 0",
        ),
        (
            r#""descriptor_type":7"#,
            r#""descriptor_type":6"#,
            "command 3: the layout has no such descriptor: set 0, binding 0, element 0",
        ),
        (
            r#""bytes":256"#,
            r#""bytes":260"#,
            "command 2: 260 bytes from byte 0 on are not inside of 256 bytes",
        ),
        (
            r#""push_constants":""#,
            r#""push_constants":"00"#,
            "command 3: 9 bytes of push constants, and the layout has 8",
        ),
        (
            r#""bytes":12"#,
            r#""bytes":8"#,
            "command 2: an indirect dispatch reads 8 bytes, and not 12",
        ),
        (
            r#""range":{"buffer":0,"offset":0,"bytes":256}"#,
            r#""range":null"#,
            "nothing",
        ),
    ] {
        assert_eq!(dispatch(from, to), reason, "{from} -> {to}");
    }
}

#[test]
fn the_end_is_the_end() {
    let end = r#"{"end":{"reason":"complete","after_ns":0}}"#;
    let found = problem(format!("{end}\n{end}\n").as_bytes()).expect("a problem");
    assert_eq!(
        found.to_string(),
        "line 3 of capture.jsonl: it follows the end: the capture is read as far as here"
    );
}

#[test]
fn a_window_of_endless_commands() {
    let label = r#"{"label":"end"}"#;
    let commands = vec![label; 1 << 14].join(",");
    let batch = format!(r#"{{"commands":[{}]}}"#, vec!["0"; 1 << 14].join(","));
    let records = format!(
        r#"{{"queue":{{"id":0,"family":0,"index":0,"flags":0}}}}
{{"commands":{{"id":0,"commands":[{commands}]}}}}
{{"submission":{{"queue":0,"called_ns":0,"batches":[{batch}]}}}}
"#
    );
    let found = problem(records.as_bytes()).expect("a problem");
    assert_eq!(
        found.reason.to_string(),
        "268435456 commands have run, more than 134217728"
    );
}

#[test]
fn lines_that_end_as_elsewhere() {
    let line = r#"{"memory":{"id":0,"bytes":100,"properties":0}}"#;
    assert_eq!(problem(format!("{line}\r\n").as_bytes()), None);
    let reason = |records: &[u8]| problem(records).expect("a problem").reason.to_string();
    assert_eq!(reason(line.as_bytes()), "it has no end");
    let expected = "expected value (column 1)";
    assert_eq!(reason(format!("\u{feff}{line}\n").as_bytes()), expected);
    assert_eq!(reason(b"\0\0\0\n"), expected);
    let name = b"{\"commands\":{\"id\":0,\"commands\":[{\"label\":{\"begin\":\"\xff\"}}]}}\n";
    assert!(reason(name).starts_with("invalid unicode code point"));
}

#[test]
fn json_without_a_bottom() {
    let deep = "[".repeat(1 << 20);
    let reason = |line: String| {
        problem(line.as_bytes())
            .expect("a problem")
            .reason
            .to_string()
    };
    assert_eq!(reason(format!("{deep}\n")), "expected value (column 1)");
    let unknown = format!("{{\"memory\":{{\"id\":0,\"x\":{deep}\n");
    assert!(reason(unknown).starts_with("EOF while parsing a list"));
}

#[test]
fn what_a_problem_quotes_is_short_and_steers_no_terminal() {
    let name = format!("\\u001b[2J\\u202e\\n{}", "a".repeat(1 << 20));
    let line = format!("{{\"{name}\":0}}\n");
    let reason = problem(line.as_bytes())
        .expect("a problem")
        .reason
        .to_string();
    assert!(
        reason.starts_with(r"unknown variant `\u{1b}[2J\u{202e}\naaaa"),
        "{reason}"
    );
    assert!(reason.len() < 300, "{reason}");
}

fn refused(prepare: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let all = format!("{}\n", header());
    files(folder.path(), all.as_bytes());
    Capture::open(folder.path()).expect("it opens");
    prepare(folder.path());
    let error = Capture::open(folder.path()).expect_err("it is refused");
    let folder = folder.path().display().to_string();
    error.to_string().replace(&folder, "FOLDER")
}

#[test]
fn files_that_lead_out_of_the_folder() {
    for name in [RECORDS, CONTENT] {
        let found = refused(|folder| {
            let elsewhere = folder.join("elsewhere");
            fs::rename(folder.join(name), &elsewhere).expect("it can be renamed");
            symlink(elsewhere, folder.join(name)).expect("it can be linked");
        });
        let expected =
            format!("cannot read FOLDER/{name}: it is a symbolic link, and may lead anywhere");
        assert_eq!(found, expected);
    }
}

#[test]
fn files_that_are_none() {
    for name in [RECORDS, CONTENT] {
        let irregular = format!("cannot read FOLDER/{name}: it is not a regular file");
        let found = refused(|folder| {
            fs::remove_file(folder.join(name)).expect("it can be removed");
            fs::create_dir(folder.join(name)).expect("it can be made");
        });
        assert_eq!(found, irregular);
        let found = refused(|folder| {
            let path = folder.join(name);
            fs::remove_file(&path).expect("it can be removed");
            let made = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(made.expect("mkfifo runs").success());
        });
        assert_eq!(found, irregular);
        let found = refused(|folder| {
            fs::remove_file(folder.join(name)).expect("it can be removed");
        });
        assert!(found.starts_with(&format!("cannot read FOLDER/{name}: No such file")));
    }
}

#[test]
fn files_that_are_no_capture() {
    let refused = |text: &str| refused(|folder| files(folder, text.as_bytes()));
    let not = "FOLDER/capture.jsonl is not a capture:";
    assert_eq!(refused(""), format!("{not} it is empty"));
    // The error tells nothing about a file that is not a capture.
    let other = "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n";
    let no_header = format!("{not} its first line does not describe one");
    assert_eq!(refused(other), no_header);
    assert_eq!(refused(&header()), format!("{not} it has no end"));
    let zero = header().replace(r#""format":1"#, r#""format":0"#);
    assert_eq!(refused(&format!("{zero}\n")), no_header);
    let end = r#"{"end":{"reason":"complete","after_ns":0}}"#;
    assert_eq!(refused(&format!("{end}\n")), no_header);
}

#[test]
fn a_capture_of_a_later_version() {
    let later = r#"{"capture":{"format":3,"gapscope":"0.9.0\u001b[2J","other":[]}}"#;
    assert_eq!(
        refused(|folder| files(folder, format!("{later}\n").as_bytes())),
        "the capture has format 3, and this gapscope reads up to 2: read it with version \
         0.9.0\\u{1b}[2J or later"
    );
    let folder = tempfile::tempdir().expect("a folder");
    files(folder.path(), format!("{later}\n").as_bytes());
    let error = Capture::open(folder.path()).expect_err("it is refused");
    assert!(matches!(error, ReadError::Later { format: 3, .. }));
}

#[test]
fn a_piece_that_is_not_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let hash = Hash::new(PIECE);
    let stored = frame().len();
    let chunk = |hash, bytes| {
        let header = header();
        let chunk =
            format!(r#"{{"chunk":{{"hash":"{hash}","at":0,"stored":{stored},"bytes":{bytes}}}}}"#);
        files(folder.path(), format!("{header}\n{chunk}\n").as_bytes());
        let (capture, problem) = Capture::open(folder.path()).expect("it opens");
        assert_eq!(problem, None);
        capture.chunk(hash).map_err(|error| error.to_string())
    };
    assert_eq!(chunk(hash, 8), Ok(PIECE.to_vec()));
    // The record claims nine bytes, which a reader would rely on.
    let changed = Err(format!("content {hash} has been changed"));
    assert_eq!(chunk(hash, 9), changed);
    let short = Err(format!("content {hash} cannot be decompressed"));
    assert_eq!(chunk(hash, 7), short);
    let other = Hash::new(b"other");
    let changed = Err(format!("content {other} has been changed"));
    assert_eq!(chunk(other, 8), changed);
}
