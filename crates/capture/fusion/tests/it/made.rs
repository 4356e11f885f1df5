//! Makes captures from kernels in WGSL for the tests, and merges and runs their chains.

use std::io::Write;
use std::process::{Command as Process, Stdio};

use gapscope_capture::model::*;
use gapscope_capture::{Capture, Writer};
use gapscope_dependencies::{Dependencies, Limits};
use gapscope_fusion::{Chains, ENTRY, Form, find, merged, rewrite};
use gapscope_replay::{Error, outputs};
use naga::valid::{Capabilities, ValidationFlags, Validator};

const STORAGE: u32 = 7;
const MEMORY: MemoryId = MemoryId(0);
/// Bytes from one buffer to the next.
const APART: u64 = 64 << 10;
/// Numbers in a buffer, which are not a multiple of a workgroup's invocations.
pub const COUNT: u32 = 1000;

/// A capture that is being made, with 16 buffers.
pub struct Made {
    folder: tempfile::TempDir,
    writer: Writer,
    next: u32,
    /// The descriptor type of each binding of kernels that are made from here on.
    pub descriptors: u32,
}

/// Returns a kernel that computes an expression of `a` and `b` at the same index. They are the bindings 0 and, if it
/// is used, 1; the last binding is written.
pub fn elementwise(expression: &str) -> String {
    let two = expression.contains("b[i]");
    let second = match two {
        true => "@group(0) @binding(1) var<storage, read> b: array<f32>;",
        false => "",
    };
    let last = 1 + u32::from(two);
    format!(
        "@group(0) @binding(0) var<storage, read> a: array<f32>;
        {second}
        @group(0) @binding({last}) var<storage, read_write> c: array<f32>;
        @compute @workgroup_size(64)
        fn k(@builtin(global_invocation_id) id: vec3u) {{
            let i = id.x;
            if i >= {COUNT}u {{ return; }}
            c[i] = {expression};
        }}"
    )
}

impl Made {
    pub fn new() -> Made {
        let folder = tempfile::tempdir().unwrap();
        let device = Device {
            name: "a device that is nowhere".to_owned(),
            pipeline_cache_uuid: "0".repeat(32),
            subgroup_size: 8,
            ..Device::default()
        };
        let header = Header {
            format: gapscope_capture::VULKAN_FORMAT,
            api: gapscope_capture::model::CapturedApi::Vulkan,
            device,
            ..Header::default()
        };
        let writer = Writer::create(&folder.path().join("made"), header).unwrap();
        let mut made = Made {
            folder,
            writer,
            next: 100,
            descriptors: 1,
        };
        made.record(Record::Memory(Memory {
            bytes: 16 * APART,
            ..Memory::default()
        }));
        made.record(Record::Queue(Queue::default()));
        for number in 0..16 {
            made.record(Record::Buffer(Buffer {
                id: BufferId(number),
                bytes: u64::from(COUNT) * 4,
                usage: 0x23,
                offset: u64::from(number) * APART,
                ..Buffer::default()
            }));
        }
        made
    }

    fn record(&mut self, record: Record) {
        self.writer.record(&record).unwrap();
    }

    /// Adds a kernel with so many buffers and bytes of push constants.
    pub fn kernel(&mut self, wgsl: &str, buffers: u32, push_constants: u32) -> PipelineId {
        self.checked_kernel(
            wgsl,
            buffers,
            push_constants,
            naga::proc::BoundsCheckPolicy::Unchecked,
        )
    }

    /// Adds a kernel whose accesses are kept inside buffers, or not.
    pub fn checked_kernel(
        &mut self,
        wgsl: &str,
        buffers: u32,
        push_constants: u32,
        policy: naga::proc::BoundsCheckPolicy,
    ) -> PipelineId {
        self.kernel_of(&compile(wgsl, policy), buffers, push_constants, |_| {})
    }

    /// Adds a kernel from WGSL whose SPIR-V is changed.
    pub fn edited_kernel(
        &mut self,
        wgsl: &str,
        edit: impl FnOnce(&mut rspirv::dr::Module),
    ) -> PipelineId {
        let code = compile(wgsl, naga::proc::BoundsCheckPolicy::Unchecked);
        let mut loader = rspirv::dr::Loader::new();
        rspirv::binary::parse_bytes(&code, &mut loader).unwrap();
        let mut module = loader.module();
        edit(&mut module);
        let words = rspirv::binary::Assemble::assemble(&module);
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.kernel_of(&code, 2, 0, |_| {})
    }

    /// Adds a kernel from SPIR-V whose pipeline is changed.
    pub fn kernel_of(
        &mut self,
        code: &[u8],
        buffers: u32,
        push_constants: u32,
        change: impl FnOnce(&mut Pipeline),
    ) -> PipelineId {
        self.next += 1;
        let bindings = (0..buffers).map(|binding| LayoutBinding {
            count: self.descriptors,
            ..LayoutBinding::for_compute(binding, STORAGE)
        });
        let mut pipeline = Pipeline {
            name: format!("kernel {}", self.next),
            entry: "k".to_owned(),
            ..Pipeline::default()
        };
        change(&mut pipeline);
        self.writer
            .kernel(
                self.next,
                code,
                bindings.collect(),
                push_constants,
                pipeline,
            )
            .unwrap()
    }

    /// Ends the capture with a submission of commands and barriers between them. All buffers hold numbers before it.
    pub fn run(mut self, commands: Vec<Command>) -> (tempfile::TempDir, Capture) {
        let numbers = |buffer: u32| {
            let each = (0..COUNT).map(move |i| 0.25 + (i * 7 + buffer * 131) as f32 % 97.0 / 61.0);
            each.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
        };
        for buffer in 0..16 {
            let at = u64::from(buffer) * APART;
            self.writer
                .content(MEMORY, at, &numbers(buffer), ContentCause::FirstUse)
                .unwrap();
        }
        let commands = commands
            .into_iter()
            .flat_map(|command| [command, barrier()])
            .collect();
        let id = CommandsId(0);
        self.record(Record::Commands(Commands { id, commands }));
        let submission = Submission::with_commands(QueueId(0), id);
        self.record(Record::Submission(submission));
        self.record(Record::End(End::default()));
        drop(self.writer);
        let (capture, problem) = Capture::open(&self.folder.path().join("made")).unwrap();
        assert_eq!(problem, None);
        (self.folder, capture)
    }
}

pub fn compile(wgsl: &str, policy: naga::proc::BoundsCheckPolicy) -> Vec<u8> {
    let module = naga::front::wgsl::parse_str(wgsl).unwrap();
    let capabilities = Capabilities::IMMEDIATES | Capabilities::SHADER_FLOAT16;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .unwrap();
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        use_storage_input_output_16: false,
        bounds_check_policies: naga::proc::BoundsCheckPolicies {
            index: policy,
            buffer: policy,
            ..Default::default()
        },
        ..Default::default()
    };
    let words = naga::back::spv::write_vec(&module, &info, &options, None).unwrap();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a dispatch that binds whole buffers by number.
pub fn dispatch(pipeline: PipelineId, buffers: &[u32]) -> Command {
    dispatch_of(pipeline, buffers, &[], COUNT.div_ceil(64))
}

/// Returns a dispatch with push constants and a number of workgroups.
pub fn dispatch_of(pipeline: PipelineId, buffers: &[u32], push: &[f32], groups: u32) -> Command {
    let last = buffers.len() - 1;
    let bindings = buffers.iter().enumerate().map(|(binding, buffer)| Binding {
        binding: binding as u32,
        descriptor_type: STORAGE,
        range: Some(BufferRange::from_start(
            BufferId(*buffer),
            u64::from(COUNT) * 4,
        )),
        read_only: binding != last,
        ..Binding::default()
    });
    Command::Dispatch(Dispatch {
        pipeline,
        groups: Groups::Direct([groups, 1, 1]),
        base: [0; 3],
        push_constants: push.iter().flat_map(|of| of.to_le_bytes()).collect(),
        bindings: bindings.collect(),
    })
}

fn barrier() -> Command {
    Command::Barrier(Barrier::of_memory(Dependency {
        after_stages: 0x800,
        after_access: 0x40,
        before_stages: 0x800,
        before_access: 0x60,
    }))
}

/// Checks the structure of SPIR-V, and has `spirv-val` check the rest if it is installed.
fn check(words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let module = gapscope_spirv::Module::read(&bytes).unwrap();
    module.check().unwrap();
    module.entry_point(ENTRY).unwrap();
    let mut command = Process::new("spirv-val");
    command
        .args(["--target-env", "vulkan1.1", "-"])
        .stdin(Stdio::piped());
    let Ok(mut running) = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        eprintln!("not checked by spirv-val, which is not installed");
        return;
    };
    running.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = running.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
}

/// Runs a capture, and returns the bits of all buffers; none if there is no device, unless one is required.
pub fn memory(capture: &Capture) -> Option<Vec<u32>> {
    let ranges: Vec<_> = (0..16)
        .map(|buffer| (MEMORY, buffer * APART, u64::from(COUNT) * 4))
        .collect();
    match outputs(capture, None, false, &ranges) {
        Ok(buffers) => {
            let words = buffers.iter().flat_map(|of| of.as_chunks::<4>().0);
            Some(words.map(|of| u32::from_le_bytes(*of)).collect())
        }
        Err(Error::NoLoader(_) | Error::NoDevice(_)) => {
            let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|of| of == "1");
            assert!(!required, "there is no Vulkan device");
            eprintln!("skipped: there is no Vulkan device");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The lengths of the chains of a capture. The stored form gives the same bits; the forwarded one is within a share of 1e-5 of the
/// greater of 1 and the number.
pub fn check_merged(capture: &Capture) -> Vec<usize> {
    let found = find(capture, Limits::default());
    assert_eq!(found.refused, []);
    let lengths = found
        .chains
        .iter()
        .map(|chain| chain.members.len())
        .collect();
    let nodes = Dependencies::from_capture(capture, Limits::default(), &mut |_| ())
        .graph
        .nodes;
    for (form, chain) in [Form::Stored, Form::Forwarded]
        .into_iter()
        .flat_map(|form| found.chains.iter().map(move |chain| (form, chain)))
    {
        match merged(capture, &found, chain, form, &nodes) {
            Ok(merged) => check(&merged.words),
            Err(refusal) => assert_eq!(form, Form::Forwarded, "{refusal}"),
        }
    }
    let Some(before) = memory(capture) else {
        return lengths;
    };
    let folder = tempfile::tempdir().unwrap();
    for (form, name) in [(Form::Stored, "stored"), (Form::Forwarded, "forwarded")] {
        let changed = rewrite(capture, &found, form, &nodes, &folder.path().join(name)).unwrap();
        let after = memory(&changed.capture).expect("there was a device");
        for (place, (before, after)) in before.iter().zip(&after).enumerate() {
            let numbers = [*before, *after].map(f32::from_bits);
            let off = (numbers[0] - numbers[1]).abs();
            let is_near = form == Form::Forwarded && off <= 1e-5 * numbers[0].abs().max(1.0);
            assert!(
                before == after || is_near,
                "{name}: number {} of buffer {} is {numbers:?}",
                place as u32 % COUNT,
                place as u32 / COUNT,
            );
        }
    }
    lengths
}

/// Returns why the only pair of a capture is not merged.
pub fn refusal(found: &Chains<'_>) -> String {
    assert!(found.chains.is_empty(), "{:?}", found.chains);
    let [refused] = &found.refused[..] else {
        panic!("{:?}", found.refused)
    };
    refused.reason.clone()
}
