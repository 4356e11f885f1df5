//! Checks that captures that are invalid, or that this device cannot run, are refused.

use gapscope_capture::Capture;
use gapscope_capture::model::*;
use gapscope_replay::{DeviceChoice, Error, Options};

use crate::captured::*;
use crate::running::run;

const KERNEL: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn fill(@builtin(global_invocation_id) id: vec3u) { data[id.x] = id.x + 7u; }";

/// Returns the reason why a capture with a changed kernel is refused.
#[track_caller]
fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
    let mut made = Made::new();
    let mut code = made.compile(KERNEL);
    change(&mut code);
    let fill = made.kernel_of(&code, "fill", 1, 0);
    let buffer = made.buffer("numbers", 0, 256);
    made.submit(vec![dispatch(fill, 1, &[(buffer, 256)], &[])]);
    reason(made)
}

/// Returns the reason why a capture is refused; none if there is no device.
#[track_caller]
fn reason(made: Made) -> Option<String> {
    let (_folder, _, capture) = made.end();
    error_text(&capture)
}

#[track_caller]
fn error_text(capture: &Capture) -> Option<String> {
    match run(capture, &Options::default())? {
        Ok(result) => panic!("it ran: {result:?}"),
        Err(error) => Some(error.to_string()),
    }
}

/// Inserts an instruction behind the header of a module.
fn insert(code: &mut Vec<u8>, instruction: &[u32]) {
    let head = (instruction.len() as u32) << 16 | instruction[0];
    let words = [&[head], &instruction[1..]].concat();
    code.splice(20..20, bytes(&words));
}

#[test]
fn what_the_device_lacks_is_named_with_the_kernel() {
    // OpCapability CooperativeVectorNV
    let Some(text) = refusal(|code| insert(code, &[17, 5394])) else {
        return;
    };
    assert!(
        text.contains("kernel fill")
            && text.contains("CooperativeVectorNV")
            && text.contains("cooperativeVector"),
        "{text}"
    );
    let text = refusal(|code| insert(code, &[17, 9_999])).unwrap();
    assert!(text.contains("capability 9999"), "{text}");
}

#[test]
fn a_required_subgroup_size_that_the_device_lacks_is_named() {
    let mut made = Made::new();
    let fill = made.kernel(KERNEL, "fill", 1, 0);
    made.record(Record::Pipeline(Pipeline {
        id: PipelineId(77),
        name: "wide".to_owned(),
        layout: PipelineLayoutId(fill.0),
        module: ModuleId(fill.0),
        entry: "fill".to_owned(),
        required_subgroup_size: Some(1 << 20),
        ..Pipeline::default()
    }));
    let buffer = made.buffer("numbers", 0, 256);
    made.submit(vec![dispatch(PipelineId(77), 1, &[(buffer, 256)], &[])]);
    if let Some(text) = reason(made) {
        assert!(
            text.contains("kernel wide: it needs subgroups of 1048576 threads"),
            "{text}"
        );
    }
}

#[test]
fn spirv_that_is_none_does_not_reach_the_driver() {
    let Some(text) = refusal(|code| code.truncate(code.len() - 4)) else {
        return;
    };
    assert!(
        text.contains("kernel fill: its SPIR-V is not right"),
        "{text}"
    );
    for change in [
        (|code: &mut Vec<u8>| code[0] = 0) as fn(&mut Vec<u8>),
        |code| code.truncate(20),
        |code| code[12..16].fill(0xff),
        |code| code[20..24].fill(0),
    ] {
        let text = refusal(change).unwrap();
        assert!(text.contains("its SPIR-V is not right"), "{text}");
    }
}

#[test]
fn an_entry_point_or_a_binding_that_is_not_there_is_named() {
    let mut made = Made::new();
    let code = made.compile(KERNEL);
    let wrong = made.kernel_of(&code, "other", 1, 0);
    let buffer = made.buffer("numbers", 0, 256);
    made.submit(vec![dispatch(wrong, 1, &[(buffer, 256)], &[])]);
    let Some(text) = reason(made) else {
        return;
    };
    assert!(text.contains("no entry point `other`"), "{text}");

    let mut made = Made::new();
    let unbound = made.kernel(KERNEL, "fill", 1, 0);
    made.submit(vec![dispatch(unbound, 1, &[], &[])]);
    let text = reason(made).unwrap();
    assert!(
        text.contains("what set 0, binding 0 is bound to is not in the capture"),
        "{text}"
    );

    let mut made = Made::new();
    let without = made.kernel(KERNEL, "fill", 0, 0);
    made.submit(vec![dispatch(without, 1, &[], &[])]);
    let text = reason(made).unwrap();
    assert!(text.contains("its layout lacks set 0, binding 0"), "{text}");
}

#[test]
fn more_than_the_device_allows_is_named() {
    let mut made = Made::new();
    let fill = made.kernel(KERNEL, "fill", 1, 0);
    let buffer = made.buffer("numbers", 0, 256);
    let mut many = dispatch(fill, 1, &[(buffer, 256)], &[]);
    if let Command::Dispatch(dispatch) = &mut many {
        dispatch.groups = Groups::Direct([1, u32::MAX, 1]);
    }
    made.submit(vec![many]);
    if let Some(text) = reason(made) {
        assert!(
            text.contains("dispatch 0 has 1 × 4294967295 × 1 workgroups"),
            "{text}"
        );
    }
}

/// A hostile capture may have sizes that no device has.
#[test]
fn memory_that_nobody_has_is_refused() {
    let mut made = Made::new();
    let fill = made.kernel(KERNEL, "fill", 1, 0);
    made.record(Record::Memory(Memory {
        id: MemoryId(9),
        bytes: u64::MAX,
        ..Memory::default()
    }));
    made.record(Record::Buffer(Buffer {
        id: BufferId(900),
        bytes: u64::MAX,
        usage: 0x20,
        memory: MemoryId(9),
        ..Buffer::default()
    }));
    made.submit(vec![dispatch(fill, 1, &[(BufferId(900), u64::MAX)], &[])]);
    if let Some(text) = reason(made) {
        assert!(text.contains("bytes in one piece"), "{text}");
    }
}

#[test]
fn content_that_was_changed_is_said() {
    let mut made = Made::new();
    let fill = made.kernel(KERNEL, "fill", 1, 0);
    let buffer = made.buffer("numbers", 0, 256);
    made.content(0, &[3; 64], ContentCause::FirstUse);
    made.submit(vec![dispatch(fill, 1, &[(buffer, 256)], &[])]);
    let (_folder, path, capture) = made.end();
    let file = path.join(gapscope_capture::CONTENT);
    let mut content = std::fs::read(&file).unwrap();
    let last = content.len() - 1;
    content[last] ^= 1;
    std::fs::write(&file, content).unwrap();
    if let Some(text) = error_text(&capture) {
        assert!(
            text.starts_with("the capture is damaged: content "),
            "{text}"
        );
    }
}

#[test]
fn a_device_that_is_not_there_is_said() {
    let (_folder, _, capture) = Made::new().end();
    let options = Options {
        device: Some(DeviceChoice::from_text("no such device")),
        ..Options::default()
    };
    match run(&capture, &options) {
        None => {}
        Some(Err(Error::NoSuchDevice { asked, .. })) => assert_eq!(asked, "no such device"),
        Some(other) => panic!("{other:?}"),
    }
}

/// Changes a module so that its first function turns a number into an address.
fn follow_address(code: &mut Vec<u8>) {
    let mut words: Vec<u32> = (code.as_chunks::<4>().0.iter())
        .map(|word| u32::from_le_bytes(*word))
        .collect();
    let bound = words[3];
    words[3] += 2;
    let (pointer, address) = (bound, bound + 1);
    let (mut integer, mut constant, mut is_there) = (None, None, false);
    let mut changed = words[..5].to_vec();
    // OpCapability PhysicalStorageBufferAddresses
    changed.extend([2 << 16 | 17, 5347]);
    let mut at = 5;
    while at < words.len() {
        let (length, op) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        let one = &words[at..at + length];
        changed.extend(one);
        match op {
            // OpTypeInt, then OpTypePointer PhysicalStorageBuffer
            21 if integer.is_none() => {
                integer = Some(one[1]);
                changed.extend([4 << 16 | 32, pointer, 5349, one[1]]);
            }
            // OpConstant
            43 if constant.is_none() && Some(one[1]) == integer => constant = Some(one[2]),
            // OpLabel, then OpConvertUToPtr
            248 if !is_there => {
                changed.extend([4 << 16 | 120, pointer, address, constant.expect("a number")]);
                is_there = true;
            }
            _ => {}
        }
        at += length;
    }
    *code = bytes(&changed);
}

#[test]
fn a_kernel_that_follows_device_addresses_is_named() {
    let Some(text) = refusal(follow_address) else {
        return;
    };
    assert!(
        text.contains("kernel fill")
            && text.contains("it reads or writes through device addresses"),
        "{text}"
    );
}
