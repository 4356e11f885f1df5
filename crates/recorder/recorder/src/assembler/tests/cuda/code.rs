//! Tests which code of those that a process loaded a CUDA kernel gets, by its name.

use super::*;

/// Runs kernel 2 after its process loaded these pieces of code.
fn run(loaded: &[(SourceFormat, &[u8])]) -> (Manifest, Tables, Vec<(&'static str, String)>) {
    let mut cuda = Cuda::new();
    for (format, bytes) in loaded {
        cuda.event(CommonEvent::Source {
            hash: [9; 16],
            format: *format,
            bytes,
        });
    }
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(3, 1, 1010, 1020)]);
    cuda.end(2000);
    let kept = cuda.assembler.take_sources().into_iter();
    let kept = kept.map(|source| (source.extension, source.hash)).collect();
    let (manifest, tables) = cuda.finish();
    (manifest, tables, kept)
}

fn ptx(kernel: &str, more: &str) -> Vec<u8> {
    format!(
        ".version 9.5\n.visible .entry {kernel}()\n{{\n.loc 1 7 0\n{more}ret;\n}}\n\
         .file 1 \"/tmp/torchinductor_me/ab/cab.py\"\n"
    )
    .into_bytes()
}

#[test]
fn a_kernel_has_the_code_that_was_loaded_under_its_name() {
    let (own, other) = (ptx("triton_poi_fused_0", ""), ptx("other", ""));
    let loaded = [&own, &other, &own].map(|text| (SourceFormat::Ptx, text.as_slice()));
    let (manifest, tables, kept) = run(&loaded);
    assert_eq!(manifest.losses, []);
    let [("ptx", hash), ("ptx", _)] = &kept[..] else {
        panic!("{kept:?}")
    };
    let k = &tables.kernels;
    let row = |entry: &str| {
        let entries = k.entry_point.iter();
        let found = entries.map(Option::as_deref).position(|e| e == Some(entry));
        found.expect("its row")
    };
    let run = row("triton_poi_fused_0");
    assert_eq!(k.source[run].as_deref(), Some(hash.as_str()));
    let file = k.source_file[run].as_deref();
    assert_eq!(file, Some("/tmp/torchinductor_me/ab/cab.py"));
    let unknown = row("_Z6vecAddPKfS0_Pfi");
    assert_eq!(
        (&k.source[unknown], &k.source_file[unknown]),
        (&None, &None)
    );
}

#[test]
fn the_file_that_code_was_written_in_is_kept_as_it_was_when_the_code_was_loaded() {
    let mut cuda = Cuda::new();
    cuda.event(CommonEvent::Source {
        hash: [9; 16],
        format: SourceFormat::Ptx,
        bytes: &ptx("triton_poi_fused_0", ""),
    });
    let files = cuda.assembler.take_code_files();
    assert_eq!(files.len(), 1);
    assert_eq!(&*files[0], "/tmp/torchinductor_me/ab/cab.py");
    for path in files {
        let text = b"def triton_poi_fused_0(): ...";
        cuda.assembler.found_code_file(path, "py", text.to_vec());
    }
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(3, 1, 1010, 1020)]);
    cuda.end(2000);
    assert!(cuda.assembler.take_code_files().is_empty());
    let sources = cuda.assembler.take_sources();
    let python = sources.iter().find(|source| source.extension == "py");
    let python = python.expect("the file").hash.clone();
    let (_, tables) = cuda.finish();
    let k = &tables.kernels;
    let run = k.source_file.iter().position(Option::is_some);
    let run = run.expect("the kernel that ran");
    assert_eq!(k.source_file_hash[run].as_deref(), Some(python.as_str()));
}

#[test]
fn the_code_that_ran_is_unknown_among_several_with_one_name() {
    let codes = [
        ptx("triton_poi_fused_0", ""),
        ptx("triton_poi_fused_0", "mov;\n"),
    ];
    let loaded = codes
        .each_ref()
        .map(|text| (SourceFormat::Ptx, text.as_slice()));
    let (manifest, tables, _) = run(&loaded);
    assert!(tables.kernels.source.iter().all(Option::is_none));
    // All of the code is of one file.
    let mut files = tables.kernels.source_file.iter().flatten();
    assert!(files.all(|file| &**file == "/tmp/torchinductor_me/ab/cab.py"));
    assert_ne!(tables.kernels.source_file.iter().flatten().count(), 0);
    let lost: Vec<_> = (manifest.losses.iter())
        .map(|l| (l.kind.as_str(), l.count))
        .collect();
    // There is a row for each size.
    assert_eq!(lost, [("sources of kernels", 2)]);
}

#[test]
fn code_that_says_nothing_or_launches_more_is_counted() {
    let launches = ptx("parent", ".extern .func __cudaCDP2LaunchDevice;\n");
    let (manifest, _, kept) = run(&[
        (SourceFormat::Cubin, b"\x7fELF, and nothing more"),
        (SourceFormat::Ptx, &launches),
    ]);
    let lost: Vec<_> = (manifest.losses.iter())
        .map(|l| (l.kind.as_str(), l.count))
        .collect();
    assert_eq!(
        lost,
        [
            ("pieces of code whose kernels can launch others", 1),
            ("pieces of loaded code", 1)
        ]
    );
    assert_eq!(kept.len(), 1);
}
