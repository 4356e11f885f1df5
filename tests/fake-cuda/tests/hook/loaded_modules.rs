//! The code that the program loads.

use crate::stub::Stub;
use gapscope_spool::event::SourceFormat;

const CUBIN: &[u8] =
    include_bytes!("../../../../crates/recorder/recorder/src/code/testdata/add.cubin");

fn ptx(name: &str) -> Vec<u8> {
    format!(".version 9.5\n.visible .entry {name}()\n{{\nret;\n}}\n").into_bytes()
}

#[test]
fn loaded_code_is_written_once() {
    let stub = Stub::new();
    let file = |name: &str, bytes: &[u8]| {
        let path = stub.folder().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.display().to_string()
    };
    let (text, cubin) = (file("k.ptx", &ptx("k")), file("add.cubin", CUBIN));
    let outcome = stub.run(&format!("load:{text},{cubin},{text} launch:1 sync"));
    let process = outcome.whole();
    let expected = [
        (SourceFormat::Ptx, ptx("k")),
        (SourceFormat::Cubin, CUBIN.to_vec()),
        (SourceFormat::Ptx, ptx("_Z3addPfS_i")),
    ];
    assert_eq!(process.sources, expected);
}

#[test]
fn code_that_is_loaded_while_recording_is_off_is_kept_and_its_call_is_not() {
    for steps in [
        "launch:1 sync flushes:2",
        "launch:1 capture:launch:1 reload sync",
    ] {
        let outcome = Stub::new().with("GAPSCOPE_RECORDING", "0").run(steps);
        let process = outcome.only();
        assert!(process.calls_of("cuModuleLoadData").is_empty(), "{steps}");
        let loaded = if steps.contains("reload") { 3 } else { 1 };
        assert_eq!(process.sources.len(), loaded, "{steps}");
        assert_eq!(process.sources[0], (SourceFormat::Ptx, ptx("_Z3addPfS_i")));
        assert_eq!(process.losses, []);
    }
}

#[test]
fn large_code_is_not_copied() {
    let stub = Stub::new();
    let path = stub.folder().join("large.ptx");
    let mut text = ptx("k");
    text.resize((4 << 20) + 1, b' ');
    std::fs::write(&path, text).expect("written");
    let outcome = stub.run(&format!("load:{} sync", path.display()));
    let process = outcome.only();
    assert_eq!((process.sources.len(), process.kernels.len()), (0, 1));
    assert_eq!(process.losses, []);
}
