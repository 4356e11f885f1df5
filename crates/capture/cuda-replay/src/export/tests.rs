//! Tests that an exported folder says what the capture says, that no name of a capture can break out of it, and that
//! both programs hash as gapscope does.

use std::path::{Path, PathBuf};
use std::process::Command;

use gapscope_capture::cuda::{
    Attribute, CudaDevice, CudaMemory, CudaModule, CudaRecord, FunctionAttributes, Launch,
    MemoryPlace, Relocation,
};
use gapscope_capture::model::{
    CapturedApi, Content, ContentCause, End, Header, MemoryId, ModuleId, Outcome,
};
use gapscope_capture::{AnyCapture, CUDA_FORMAT, Hash, Writer};

use super::*;

/// A name that would end a string, a comment, a line or a path, if it were written as it is.
const HOSTILE: &str = "a\"b'c\\d\n\r\u{2028}*/`{KERNELS}%41 ../../x$(y)\u{1b}[31m ??/ü";

fn file(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Writes a capture with two launches of one kernel, and exports it.
fn exported(folder: &Path, kernel: &str) -> (Exported, PathBuf) {
    let path = folder.join("c.gapcapture");
    let header = Header {
        format: CUDA_FORMAT,
        api: CapturedApi::Cuda,
        device: CudaDevice {
            name: HOSTILE.to_owned(),
            compute_capability: [9, 0],
            ..CudaDevice::default()
        },
        ..Header::default()
    };
    let mut writer = Writer::create(&path, header).unwrap();
    let code = writer.chunk(&[1; 64]).unwrap();
    let [full, part] = [vec![2; 65536], vec![3; 100]].map(|bytes| writer.chunk(&bytes).unwrap());
    let module = ModuleId(7);
    let memory = |id, address, bytes, place| {
        CudaRecord::CudaMemory(CudaMemory {
            id: MemoryId(id),
            address,
            bytes,
            place,
        })
    };
    let name = kernel.to_owned();
    let content = |memory, chunks| {
        CudaRecord::Content(Content {
            memory: MemoryId(memory),
            offset: 0,
            chunks,
            cause: ContentCause::FirstUse,
        })
    };
    let outcome = |hashes: Vec<Hash>| {
        CudaRecord::Outcome(Outcome {
            memory: MemoryId(1),
            offset: 0,
            bytes: 65636,
            hashes,
        })
    };
    let launch = CudaRecord::Launch(Launch {
        module,
        kernel: kernel.to_owned(),
        grid: [2, 1, 1],
        block: [64, 1, 1],
        shared_bytes: 64 << 10,
        parameters: vec![0xab; 16],
        relocations: vec![Relocation {
            at: 8,
            memory: MemoryId(3),
        }],
        attributes: [2, 7]
            .map(|id| Attribute {
                id,
                value: vec![1; 64],
            })
            .into(),
        function: FunctionAttributes {
            non_portable_cluster: true,
            ..FunctionAttributes::default()
        },
        reached: vec![MemoryId(1), MemoryId(2)],
        ..Launch::default()
    });
    let elsewhere = Hash::new(b"not in the capture");
    let records = [
        CudaRecord::CudaModule(CudaModule {
            id: module,
            code: vec![code],
        }),
        memory(1, 0x7000_0000_0000, 65636, MemoryPlace::Device),
        memory(2, 0x7000_0020_0000, 4096, MemoryPlace::Host),
        memory(4, 0x7100_0000_0000, 4097, MemoryPlace::Host),
        memory(3, 0x1234, 8, MemoryPlace::Global { module, name }),
        content(1, vec![full, part]),
        launch.clone(),
        outcome(vec![full, elsewhere]),
        content(1, vec![full]),
        launch,
        outcome(vec![elsewhere, part]),
        CudaRecord::End(End::default()),
    ];
    for record in &records {
        writer.record(record).unwrap();
    }
    drop(writer);
    let (AnyCapture::Cuda(capture), None) = AnyCapture::open(&path).unwrap() else {
        panic!("a whole capture of CUDA");
    };
    let to = folder.join("out");
    let exported = export(&capture, &to).unwrap();
    let again = export(&capture, &to).unwrap_err().to_string();
    assert!(again.contains("nothing is overwritten"), "{again}");
    (exported, to)
}

#[test]
fn the_index_has_the_memory_and_the_launches() {
    let folder = tempfile::tempdir().unwrap();
    let (exported, to) = exported(folder.path(), "scale");
    let lines = file(&to, "index.txt");
    let hash = Hash::new(b"not in the capture");
    let [full, part] = [Hash::new(&[2; 65536]), Hash::new(&[3; 100])];
    let ones = "01".repeat(64);
    let launch = format!(
        "launch 0 2 1 1 64 1 1 65536 {} scale\nrelocation 8 3\nsetting 8 65536\nsetting 14 1\nattribute 2 {ones}\n\
         reach 1\nreach 2\n",
        "ab".repeat(16)
    );
    // The host's memory among the reserved addresses is the GPU's.
    let expected = format!(
        "module module-0.cubin\n\
         host {} 8192\n\
         reserve {} 33554432\n\
         map {} 4194304\n\
         memory 1 {} 65636 device\n\
         memory 2 {} 4096 device\n\
         global 3 0 4660 8 scale\n\
         memory 4 {} 4097 host\n\
         content 1 0 65636 0\n\
         {launch}expect 1 0 65536 {full} 0\nexpect 1 65536 100 {hash} -\n\
         content 1 0 65536 0\n\
         {launch}expect 1 0 65536 {hash} -\nexpect 1 65536 100 {part} 65536\n\
         end 2\n",
        0x7100_0000_0000_u64,
        0x7000_0000_0000_u64,
        0x7000_0000_0000_u64,
        0x7000_0000_0000_u64,
        0x7000_0020_0000_u64,
        0x7100_0000_0000_u64,
    );
    let (first, rest) = lines.split_once('\n').unwrap();
    assert!(first.starts_with("device 9 0 "));
    assert_eq!(rest, expected);
    assert_eq!(fs::read(to.join("module-0.cubin")).unwrap(), vec![1; 64]);
    let data = fs::read(to.join("data.bin")).unwrap();
    assert_eq!(data, [vec![2; 65536], vec![3; 100]].concat());
    let counts = (exported.launches, exported.modules, exported.data_bytes);
    assert_eq!(counts, (2, 1, 65636));
    assert_eq!((exported.outputs, exported.outputs_kept), (4, 2));
}

#[test]
fn no_name_of_a_capture_is_more_than_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let (_, to) = exported(folder.path(), HOSTILE);
    let mut names: Vec<_> = fs::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "README.md",
        "data.bin",
        "index.txt",
        "module-0.cubin",
        "run.cu",
        "run.py",
    ];
    assert_eq!(names, expected);
    assert_eq!(file(&to, "run.cu"), RUN_CU);
    assert_eq!(file(&to, "run.py"), RUN_PY);
    let is_plain = |c: char| c == '\n' || c == ' ' || c == '-' || c == '%' || is_harmless(c);
    let index = file(&to, "index.txt");
    assert!(index.chars().all(is_plain), "{index}");
    let readme = file(&to, "README.md");
    assert!(readme.contains("`a%22b%27c%5cd%0a%0d%e2%80%a8%2a%2f%60%7bKERNELS%7d%2541%20"));
    assert!(!readme.contains('\u{1b}') && !readme.contains("{KERNELS}"));
}

fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$.".contains(c)
}

/// The sizes at which the tree of BLAKE3 has another form.
const SIZES: [usize; 14] = [
    0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 3073, 5000, 7168, 65535, 65536,
];

fn piece(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

fn hashes() -> String {
    let lines = SIZES.map(|size| format!("{}\n", Hash::new(&piece(size))));
    lines.concat()
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_python_program_hashes_and_reads_names_as_gapscope_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.py"), RUN_PY).unwrap();
    let name = escaped(HOSTILE);
    let text = format!(
        "import run, sys\n\
         for size in {SIZES:?}: print(run.blake3(bytes(at % 251 for at in range(size))))\n\
         sys.stdout.flush(); sys.stdout.buffer.write(run.decoded('{name}'))"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &text]).current_dir(folder.path());
    assert_eq!(output(&mut python), hashes() + HOSTILE);
}

#[test]
fn the_program_in_cpp_hashes_and_reads_names_as_gapscope_does() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("run.cu"), RUN_CU).unwrap();
    let (name, sizes) = (
        escaped(HOSTILE),
        SIZES.map(|size| size.to_string()).join(", "),
    );
    let text = format!(
        "#define RUN_WITHOUT_MAIN\n#include \"run.cu\"\n\
         int main() {{\n\
           for (size_t size : {{{sizes}}}) {{\n\
             std::vector<Byte> bytes(size + 1);\n\
             for (size_t at = 0; at < size; at++) bytes[at] = Byte(at % 251);\n\
             puts(blake3(bytes.data(), size).c_str());\n\
           }}\n\
           fputs(decoded(\"{name}\").c_str(), stdout);\n\
           (void)run;\n\
         }}\n"
    );
    fs::write(at("test.cc"), text).unwrap();
    let mut compiler = Command::new("g++");
    compiler
        .args(["-O1", "-o"])
        .arg(at("test"))
        .arg(at("test.cc"))
        .arg("-ldl");
    output(&mut compiler);
    assert_eq!(output(&mut Command::new(at("test"))), hashes() + HOSTILE);
}
