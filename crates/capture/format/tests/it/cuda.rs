//! Tests captures of CUDA: those that are written are read as they were, and damaged and invented ones as far as they are valid.

use std::fs;
use std::path::Path;

use gapscope_capture::cuda::*;
use gapscope_capture::model::*;
use gapscope_capture::{
    AnyCapture, CHUNK_BYTES, CONTENT, Capture, Hash, Problem, RECORDS, ReadError, Writer,
};
use proptest::prelude::*;

use crate::cuda_example::{self as example, DEVICE, GLOBAL};

fn read(folder: &Path) -> (CudaCapture, Option<Problem>) {
    match AnyCapture::open(folder).expect("it opens") {
        (AnyCapture::Cuda(capture), problem) => (*capture, problem),
        (AnyCapture::Vulkan(_), _) => panic!("the capture is one of CUDA"),
    }
}

/// Follows every id and range of a capture, which must be there and in bounds.
fn walk(capture: &CudaCapture) {
    let piece = |hash: Hash| {
        let bytes = capture.chunk_bytes(hash).expect("it is here");
        if let Ok(read) = capture.chunk(hash) {
            assert_eq!(read.len(), bytes as usize);
        }
        u64::from(bytes)
    };
    let inside = |memory: MemoryId, offset: u64, bytes: u64| {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= capture.memories[&memory].bytes));
    };
    for module in capture.modules.values() {
        assert!(module.code.iter().map(|hash| piece(*hash)).sum::<u64>() >= 64);
        capture
            .globals(module.id)
            .for_each(|(memory, _)| assert!(capture.memories.contains_key(&memory.id)));
    }
    for memory in capture.memories.values() {
        assert!(memory.address.checked_add(memory.bytes).is_some());
        if !matches!(memory.place, MemoryPlace::Global { .. }) {
            assert_eq!(capture.allocation_at(memory.address), Some((memory.id, 0)));
            let last = memory.address + memory.bytes - 1;
            assert_eq!(
                capture.allocation_at(last),
                Some((memory.id, memory.bytes - 1))
            );
        }
    }
    for step in &capture.steps {
        match step {
            CudaStep::Content(content) => {
                let bytes = content.chunks.iter().map(|hash| piece(*hash)).sum();
                inside(content.memory, content.offset, bytes);
            }
            CudaStep::Outcome(outcome) => inside(outcome.memory, outcome.offset, outcome.bytes),
            CudaStep::Launch(launch) => {
                assert!(capture.modules.contains_key(&launch.module));
                assert!(
                    launch
                        .reached
                        .iter()
                        .all(|id| capture.memories.contains_key(id))
                );
                for relocation in &launch.relocations {
                    assert!(relocation.at as usize + 8 <= launch.parameters.len());
                    let place = &capture.memories[&relocation.memory].place;
                    assert!(matches!(place, MemoryPlace::Global { .. }));
                }
            }
        }
    }
}

/// A part of a capture to write.
#[derive(Debug, Clone)]
enum Written {
    Module(usize),
    Memory(CudaMemory),
    Content(MemoryId, u64, Vec<u8>, ContentCause),
    Outcome(MemoryId, u64, Vec<u8>),
    Launch(Box<Launch>),
}

fn bytes(first: u8, count: u64) -> Vec<u8> {
    (0..count).map(|i| first.wrapping_add(i as u8)).collect()
}

/// Generates a capture as the parts to write. Each number draws one choice.
fn any() -> impl Strategy<Value = Vec<Written>> {
    prop::collection::vec(any_number(), 0..300).prop_map(|numbers| {
        let mut numbers = numbers.into_iter();
        let mut all = Vec::new();
        let (mut modules, mut memories, mut next) = (0u32, Vec::<(u64, bool)>::new(), 1u64 << 40);
        let mut launched = false;
        while numbers.len() > 0 {
            let mut number = || numbers.next().unwrap_or(0);
            let kind = number() % 6;
            match kind {
                0 => {
                    all.push(Written::Module(64 + (number() % 200_000) as usize));
                    modules += 1;
                }
                1 | 2 => {
                    let bytes = 1 + number() % (1 << 20);
                    let place = match number() % 3 {
                        0 if modules > 0 => MemoryPlace::Global {
                            module: ModuleId((number() % u64::from(modules)) as u32),
                            name: ["counter", "Größe 🦀"][(number() % 2) as usize].to_owned(),
                        },
                        1 => MemoryPlace::Host,
                        _ => MemoryPlace::Device,
                    };
                    let is_global = matches!(place, MemoryPlace::Global { .. });
                    let id = MemoryId(memories.len() as u32);
                    memories.push((bytes, is_global));
                    all.push(Written::Memory(CudaMemory {
                        id,
                        address: next,
                        bytes,
                        place,
                    }));
                    next += bytes + number() % 512;
                }
                3 | 4 if !memories.is_empty() => {
                    let at = (number() % memories.len() as u64) as usize;
                    let offset = number() % memories[at].0;
                    let count = (1 + number() % (memories[at].0 - offset)).min(150_000);
                    let (id, content) = (MemoryId(at as u32), bytes(number() as u8, count));
                    match number() % 3 {
                        0 => all.push(Written::Content(
                            id,
                            offset,
                            content,
                            ContentCause::FirstUse,
                        )),
                        1 => all.push(Written::Content(
                            id,
                            offset,
                            content,
                            ContentCause::HostWrite,
                        )),
                        _ if launched => all.push(Written::Outcome(id, offset, content)),
                        _ => {}
                    }
                    launched &=
                        matches!(all.last(), Some(Written::Outcome(..) | Written::Launch(_)));
                }
                5 if modules > 0 => {
                    let parameters = bytes(number() as u8, number() % 4097);
                    let globals = (0..)
                        .zip(&memories)
                        .filter(|(_, (_, is_global))| *is_global);
                    let globals: Vec<MemoryId> = globals.map(|(id, _)| MemoryId(id)).collect();
                    let relocations = globals.iter().take(2).filter_map(|memory| {
                        let room = (parameters.len() as u64).checked_sub(7)?;
                        let at = (number() % room.max(1)) as u32;
                        (room > 0).then_some(Relocation {
                            at,
                            memory: *memory,
                        })
                    });
                    let relocations = relocations.collect();
                    let reached = (0..memories.len() as u32)
                        .filter(|_| number() % 2 == 0)
                        .map(MemoryId)
                        .collect();
                    let attributes = (0..number() % 4)
                        .map(|id| Attribute {
                            id: id as u32,
                            value: bytes(number() as u8, 64),
                        })
                        .collect();
                    all.push(Written::Launch(Box::new(Launch {
                        module: ModuleId((number() % u64::from(modules)) as u32),
                        kernel: "scale".to_owned(),
                        grid: [1 + number() as u32 % 9, 1, u32::MAX],
                        block: [1 + number() as u32 % 1024, 1, 1],
                        shared_bytes: number() as u32,
                        parameters,
                        relocations,
                        attributes,
                        function: FunctionAttributes {
                            max_dynamic_shared_bytes: number() as i32,
                            shared_carveout: number() as i32,
                            non_portable_cluster: number() % 2 == 0,
                        },
                        stream: number() as u32,
                        reached,
                        number: (number() % 2 == 0).then(&mut number),
                        called_ns: number(),
                        device_ns: (number() % 2 == 0).then(&mut number),
                    })));
                    launched = true;
                }
                _ => {}
            }
        }
        all
    })
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..100u64, 1 => prop::num::u64::ANY]
}

fn write(folder: &Path, all: &[Written]) -> std::io::Result<()> {
    let mut writer = Writer::create(folder, example::header())?;
    let mut modules = 0;
    for written in all {
        match written {
            Written::Module(size) => {
                let whole = bytes(modules as u8, *size as u64);
                let pieces = whole.chunks(CHUNK_BYTES as usize);
                let code = pieces
                    .map(|piece| writer.chunk(piece))
                    .collect::<Result<_, _>>()?;
                let id = ModuleId(modules);
                writer.record(&CudaRecord::CudaModule(CudaModule { id, code }))?;
                modules += 1;
            }
            Written::Memory(memory) => writer.record(&CudaRecord::CudaMemory(memory.clone()))?,
            Written::Content(memory, offset, bytes, cause) => {
                writer.content(*memory, *offset, bytes, *cause)?
            }
            Written::Outcome(memory, offset, bytes) => writer.outcome(*memory, *offset, bytes)?,
            Written::Launch(launch) => writer.record(&CudaRecord::Launch((**launch).clone()))?,
        }
    }
    let reason = EndReason::ProgramEnded;
    writer.record(&CudaRecord::End(End {
        reason,
        after_ns: 7,
    }))
}

/// Compares a capture with the parts that were written.
fn check(all: &[Written], capture: &CudaCapture) {
    let mut steps = capture.steps.iter();
    let mut modules = 0;
    for written in all {
        match written {
            Written::Module(size) => {
                let module = &capture.modules[&ModuleId(modules)];
                let code = capture.code(module).expect("it can be read");
                assert_eq!(code, bytes(modules as u8, *size as u64));
                modules += 1;
            }
            Written::Memory(memory) => assert_eq!(capture.memories[&memory.id], *memory),
            Written::Content(memory, offset, bytes, cause) => {
                let Some(CudaStep::Content(content)) = steps.next() else {
                    panic!("there is content");
                };
                assert_eq!(
                    (content.memory, content.offset, content.cause),
                    (*memory, *offset, *cause)
                );
                let read: Vec<u8> = (content.chunks.iter())
                    .flat_map(|hash| capture.chunk(*hash).expect("it is here"))
                    .collect();
                assert_eq!(read, *bytes);
            }
            Written::Outcome(memory, offset, bytes) => {
                let Some(CudaStep::Outcome(outcome)) = steps.next() else {
                    panic!("there is an outcome");
                };
                assert_eq!(
                    (outcome.memory, outcome.offset, outcome.bytes),
                    (*memory, *offset, bytes.len() as u64)
                );
            }
            Written::Launch(launch) => {
                assert_eq!(steps.next(), Some(&CudaStep::Launch((**launch).clone())))
            }
        }
    }
    assert_eq!(steps.next(), None);
    assert_eq!(capture.end.as_ref().map(|end| end.after_ns), Some(7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_capture_of_cuda_is_read_as_it_was_written(all in any()) {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("a.gapcapture");
        write(&folder, &all).expect("it can be written");
        let (capture, problem) = read(&folder);
        prop_assert_eq!(problem, None);
        walk(&capture);
        check(&all, &capture);
    }
}

fn files() -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    example::write(&folder);
    [RECORDS, CONTENT].map(|name| fs::read(folder.join(name)).expect("it is there"))
}

#[test]
fn every_cut_of_a_capture_of_cuda_opens_as_far_as_it_goes() {
    let [records, content] = files();
    let folder = tempfile::tempdir().expect("a folder");
    let mut most = 0;
    let first = records
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a line");
    for end in first + 1..=records.len() {
        fs::write(folder.path().join(RECORDS), &records[..end]).expect("it can be written");
        fs::write(folder.path().join(CONTENT), &content).expect("it can be written");
        let (capture, problem) = read(folder.path());
        walk(&capture);
        assert!(capture.steps.len() >= most);
        most = capture.steps.len();
        assert_eq!(problem.is_none(), records[end - 1] == b'\n', "cut at {end}");
    }
    assert_eq!(most, 8);
    for end in 0..content.len() {
        fs::write(folder.path().join(CONTENT), &content[..end]).expect("it can be written");
        let (capture, problem) = read(folder.path());
        walk(&capture);
        assert!(problem.is_some(), "cut at {end}");
    }
}

#[test]
fn a_changed_byte_of_a_capture_of_cuda_is_found() {
    let [records, content] = files();
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(CONTENT), content).expect("it can be written");
    for at in 0..records.len() {
        let mut changed = records.clone();
        changed[at] ^= 1;
        fs::write(folder.path().join(RECORDS), changed).expect("it can be written");
        // A changed name of the interface makes it a capture of another kind.
        if let Ok((AnyCapture::Cuda(capture), problem)) = AnyCapture::open(folder.path()) {
            walk(&capture);
            assert!(problem.is_some(), "byte {at}");
        }
    }
}

#[test]
fn a_reader_of_vulkan_says_that_the_capture_is_one_of_cuda() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    example::write(&folder);
    let error = Capture::open(&folder).expect_err("it is one of CUDA");
    assert!(matches!(error, ReadError::OfCuda), "{error}");
}

/// Returns why a record behind the objects of the example is invalid.
fn reason(record: &str) -> String {
    let [records, content] = files();
    let text = String::from_utf8(records).expect("text");
    let objects: Vec<&str> = (text.lines())
        .take_while(|line| !line.starts_with("{\"launch\""))
        .filter(|line| !line.starts_with("{\"check\""))
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let all = format!("{}\n{record}\n", objects.join("\n"));
    fs::write(folder.path().join(RECORDS), all).expect("it can be written");
    fs::write(folder.path().join(CONTENT), content).expect("it can be written");
    let (capture, problem) = read(folder.path());
    walk(&capture);
    let problem = problem.expect("the record is invalid");
    assert_eq!(problem.line, objects.len() + 1, "{problem}");
    problem.reason.to_string()
}

/// Returns why a launch is invalid that differs from a valid one.
fn launch(change: impl FnOnce(&mut Launch)) -> String {
    let mut launch = Launch {
        kernel: "scale".to_owned(),
        grid: [1; 3],
        block: [1; 3],
        parameters: vec![0; 8],
        ..Launch::default()
    };
    change(&mut launch);
    reason(&serde_json::to_string(&CudaRecord::Launch(launch)).expect("it is JSON"))
}

fn memory(id: u32, address: u64, bytes: u64, place: MemoryPlace) -> String {
    let record = CudaRecord::CudaMemory(CudaMemory {
        id: MemoryId(id),
        address,
        bytes,
        place,
    });
    reason(&serde_json::to_string(&record).expect("it is JSON"))
}

#[test]
fn memory_that_cannot_be_is_refused() {
    let global = |module, name: &str| MemoryPlace::Global {
        module: ModuleId(module),
        name: name.to_owned(),
    };
    let device = MemoryPlace::Device;
    assert_eq!(memory(0, 64, 1, device.clone()), "number 0 is taken");
    assert_eq!(memory(9, 64, 0, device.clone()), "there are no pieces");
    assert_eq!(
        memory(9, 1 << 57, 1, device.clone()),
        format!(
            "1 bytes from byte {0} on are not inside of {0} bytes",
            1u64 << 57
        )
    );
    assert_eq!(
        memory(9, u64::MAX, 2, device),
        format!(
            "2 bytes from byte {} on are not inside of {} bytes",
            u64::MAX,
            1u64 << 57
        )
    );
    assert_eq!(
        memory(9, 64, 1, global(7, "counter")),
        "there is no module 7"
    );
    assert_eq!(
        memory(9, 64, 1, global(0, "a\0b")),
        "a text holds a zero byte"
    );
}

#[test]
fn launches_that_cannot_be_are_refused() {
    assert_eq!(
        launch(|launch| launch.module = ModuleId(3)),
        "there is no module 3"
    );
    assert_eq!(
        launch(|launch| launch.kernel = "a\0b".to_owned()),
        "a text holds a zero byte"
    );
    assert_eq!(
        launch(|launch| launch.grid[1] = 0),
        "a launch has no blocks or no threads"
    );
    assert_eq!(
        launch(|launch| launch.block[2] = 0),
        "a launch has no blocks or no threads"
    );
    assert_eq!(
        launch(|launch| launch.parameters = vec![0; 32_769]),
        "a launch has 32769 bytes of parameters, more than 32768"
    );
    assert_eq!(
        launch(|launch| launch.reached = vec![MemoryId(9)]),
        "there is no memory 9"
    );
    let relocation = |at, memory| {
        move |launch: &mut Launch| launch.relocations = vec![Relocation { at, memory }]
    };
    assert_eq!(launch(relocation(0, DEVICE)), "memory 0 is no global");
    assert_eq!(launch(relocation(0, MemoryId(9))), "there is no memory 9");
    assert_eq!(
        launch(relocation(1, GLOBAL)),
        "8 bytes from byte 1 on are not inside of 8 bytes"
    );
    assert_eq!(
        launch(relocation(u32::MAX, GLOBAL)),
        "8 bytes from byte 4294967295 on are not inside of 8 bytes"
    );
    let attributes = |count, bytes| {
        move |launch: &mut Launch| {
            launch.attributes = vec![
                Attribute {
                    id: 0,
                    value: vec![0; bytes]
                };
                count
            ]
        }
    };
    assert_eq!(launch(attributes(65, 64)), "a launch has 65 attributes");
    assert_eq!(launch(attributes(1, 63)), "an attribute has 63 bytes");
}

#[test]
fn code_content_and_outcomes_that_cannot_be_are_refused() {
    let hash = Hash::new(&example::code());
    let module = |id, code: &str| {
        reason(&format!(
            r#"{{"cuda_module":{{"id":{id},"code":[{code}]}}}}"#
        ))
    };
    assert_eq!(module(0, &format!("\"{hash}\"")), "number 0 is taken");
    assert_eq!(module(1, ""), "0 bytes are no code");
    assert_eq!(
        module(1, &format!("\"{hash}\",\"{hash}\"")),
        "piece 0 has 96 bytes, and 65536 are to the next"
    );
    let missing = "00000000000000000000000000000000";
    assert_eq!(
        module(1, &format!("\"{missing}\"")),
        format!("content {missing} is missing")
    );
    let content = |memory, offset| {
        reason(&format!(
            r#"{{"content":{{"memory":{memory},"offset":{offset},"chunks":["{hash}"],"cause":"host_write"}}}}"#
        ))
    };
    assert_eq!(content(9, 0), "there is no memory 9");
    assert_eq!(
        content(0, 161),
        "96 bytes from byte 161 on are not inside of 256 bytes"
    );
    let outcome = reason(&format!(
        r#"{{"outcome":{{"memory":0,"offset":0,"bytes":1,"hashes":["{hash}"]}}}}"#
    ));
    assert_eq!(outcome, "no launch is before the outcome");
    assert_eq!(
        reason(r#"{"submission":{"queue":0,"called_ns":0,"batches":[]}}"#)
            .split(',')
            .next(),
        Some("unknown variant `submission`")
    );
    let header =
        serde_json::to_string(&CudaRecord::Capture(example::header())).expect("it is JSON");
    assert_eq!(reason(&header), "the capture begins a second time");
}

#[test]
#[ignore = "writes inputs for the fuzz target `capture`: after the format has changed"]
fn write_inputs_of_cuda() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/capture");
    let [records, content] = files();
    let example = [records, content].join(&0);
    fs::write(corpus.join("cuda-example"), example).expect("it can be kept");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kept = 0;
    while kept < 8 {
        let made = any().new_tree(&mut runner).expect("it is made");
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("a.gapcapture");
        let written = proptest::strategy::ValueTree::current(&made);
        write(&folder, &written).expect("it can be written");
        let file = |name| fs::read(folder.join(name)).expect("it is there");
        let input = [file(RECORDS), file(CONTENT)].join(&0);
        if input.len() < 24_000 && read(&folder).0.launches().count() > 1 {
            fs::write(corpus.join(format!("cuda-{kept:02}")), input).expect("it can be kept");
            kept += 1;
        }
    }
}
