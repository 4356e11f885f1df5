//! Checks that captures that were cut off or changed are read up to the damage.

use std::fs;
use std::path::Path;

use gapscope_capture::model::Record;
use gapscope_capture::{CONTENT, Capture, Problem, RECORDS, Step};

use crate::example;
use crate::round_trip::{open, walk};

struct Files {
    records: Vec<u8>,
    content: Vec<u8>,
}

fn files() -> Files {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    example::write(&folder);
    let file = |name| fs::read(folder.join(name)).expect("it is there");
    Files {
        records: file(RECORDS),
        content: file(CONTENT),
    }
}

/// Creates a folder for thousands of files, in memory if the system has such a place.
fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    made.expect("a folder")
}

fn read(folder: &Path, records: &[u8], content: &[u8]) -> Option<(Capture, Option<Problem>)> {
    fs::write(folder.join(RECORDS), records).expect("it can be written");
    fs::write(folder.join(CONTENT), content).expect("it can be written");
    let (capture, problem) = Capture::open(folder).ok()?;
    walk(&capture);
    Some((capture, problem))
}

/// Returns everything that a capture has but the bytes of content.
fn meaning(capture: &Capture) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        capture.header.clone(),
        capture.memories.clone(),
        capture.buffers.clone(),
        capture.modules.clone(),
        capture.set_layouts.clone(),
        capture.pipeline_layouts.clone(),
        capture.pipelines.clone(),
        capture.queues.clone(),
        capture.commands.clone(),
        (capture.steps.clone(), capture.end.clone()),
    )
}

#[test]
fn every_cut_of_the_records_opens_as_far_as_it_goes() {
    let Files { records, content } = files();
    let folder = in_memory();
    let (whole, _) = read(folder.path(), &records, &content).expect("it opens");
    let first = records.iter().position(|b| *b == b'\n').expect("a line");
    let mut most = 0;
    for cut in 0..records.len() {
        let opened = read(folder.path(), &records[..cut], &content);
        if cut <= first {
            assert!(opened.is_none(), "cut at byte {cut}");
            continue;
        }
        let (capture, problem) = opened.expect("it opens");
        let line = records[..cut].iter().filter(|b| **b == b'\n').count();
        let problem = problem.map(|problem| (problem.line, problem.reason.to_string()));
        let is_cut = records[cut - 1] != b'\n';
        let expected = is_cut.then(|| (line + 1, "it has no end".to_owned()));
        assert_eq!(problem, expected, "cut at byte {cut}");
        assert!(whole.steps.starts_with(&capture.steps));
        assert!(capture.steps.len() >= most);
        most = capture.steps.len();
    }
    assert_eq!(most, whole.steps.len());
}

#[test]
fn every_cut_of_the_content_opens_as_far_as_it_goes() {
    let Files { records, content } = files();
    let folder = in_memory();
    let (whole, _) = read(folder.path(), &records, &content).expect("it opens");
    for cut in 0..content.len() {
        let (capture, problem) = read(folder.path(), &records, &content[..cut]).expect("it opens");
        let problem = problem.expect("a piece is missing");
        let expected = format!("and content.bin has {cut} bytes");
        assert!(problem.reason.to_string().ends_with(&expected), "{problem}");
        assert!(whole.steps.starts_with(&capture.steps));
        assert!(capture.steps.len() < whole.steps.len());
    }
}

#[test]
fn a_changed_byte_of_the_records_is_found() {
    let Files { records, content } = files();
    let folder = in_memory();
    let (whole, _) = read(folder.path(), &records, &content).expect("it opens");
    let whole = meaning(&whole);
    for at in 0..records.len() {
        let mut changed = records.clone();
        changed[at] ^= 1 << (at % 8);
        if let Some((capture, None)) = read(folder.path(), &changed, &content) {
            assert_eq!(meaning(&capture), whole, "byte {at}");
        }
    }
}

#[test]
fn a_changed_byte_of_the_content_is_found() {
    let Files { records, content } = files();
    let folder = in_memory();
    let (whole, _) = read(folder.path(), &records, &content).expect("it opens");
    let bytes = |capture: &Capture| -> Vec<Option<Vec<u8>>> {
        let contents = capture.steps.iter().filter_map(|step| match step {
            Step::Content(content) => Some(content),
            _ => None,
        });
        let contents = contents.flat_map(|content| &content.chunks);
        let code = capture.modules.values().map(|module| &module.code);
        (contents.chain(code))
            .map(|hash| capture.chunk(*hash).ok())
            .collect()
    };
    let right = bytes(&whole);
    for at in 0..content.len() {
        let mut changed = content.clone();
        changed[at] ^= 1 << (at % 8);
        let (capture, problem) = read(folder.path(), &records, &changed).expect("it opens");
        assert_eq!(problem, None);
        let found = bytes(&capture);
        // Some bytes may not matter to zstd.
        let same = found.iter().zip(&right).filter(|(a, b)| a == b).count();
        let lost = found.iter().filter(|piece| piece.is_none()).count();
        assert_eq!(same + lost, right.len(), "byte {at}");
    }
}

#[test]
fn a_lost_line_is_found() {
    let Files { records, content } = files();
    let folder = in_memory();
    let lines: Vec<&[u8]> = records.split_inclusive(|byte| *byte == b'\n').collect();
    // The last line is the check itself.
    for lost in 1..lines.len() - 1 {
        let mut left = lines.clone();
        let line = left.remove(lost);
        let record: Record = serde_json::from_slice(line).expect("a record");
        let (_, problem) = read(folder.path(), &left.concat(), &content).expect("it opens");
        assert!(problem.is_some(), "{record:?}");
    }
}

#[test]
fn a_capture_that_is_still_written_opens() {
    let content = files().content;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    let mut writer = gapscope_capture::Writer::create(&folder, example::header()).expect("made");
    assert_eq!(open(&folder).end, None);
    let hash = writer.chunk(&content).expect("written");
    // The file of records does not have it yet.
    assert_eq!(open(&folder).chunk_bytes(hash), None);
    drop(writer);
    let capture = open(&folder);
    assert_eq!(capture.chunk(hash).expect("it is there"), content);
}
