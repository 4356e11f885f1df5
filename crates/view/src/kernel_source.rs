//! Reads the code of a kernel from the trace's folder and returns it as text: the source if the code contains it,
//! else assembly. The file of the code is `sources/HASH.EXTENSION`; its extension tells the language.

use crate::protocol::{Missing, OrMissing, SourceText};
use gapscope_trace::panics::guarded;
use gapscope_trace::{ContainedPath, Trace};
use rspirv::binary::Disassemble;
use rspirv::dr::{Module, Operand};
use rspirv::spirv::Op;
use std::io;
use std::path::Path;

/// The most bytes of a file of code; a longer one is not read.
const MAX_CODE_BYTES: u64 = 32 << 20;
/// The most bytes of the text; a longer one is cut.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// Returns the code of the kernel in row `row`; `None` when there is no such row.
pub fn kernel_source(trace: &Trace, folder: &Path, row: usize) -> Option<OrMissing<SourceText>> {
    let hash = trace.tables.kernels.source.get(row)?.as_deref();
    Some(match source_text(hash, folder) {
        Ok(source) => OrMissing::There(source),
        Err(error) => OrMissing::Missing(Missing {
            missing: error.to_string(),
            changed: matches!(error, SourceError::Changed { .. }),
        }),
    })
}

/// The reason why a kernel's code is not shown, as a sentence. `file` is its path in the trace.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("The trace does not say what code this kernel has.")]
    NoHash,
    #[error("The hash of this kernel's code is damaged.")]
    DamagedHash,
    #[error("The code {0} is not in the trace.")]
    Absent(String),
    #[error("{file} cannot be read: {reason}.")]
    Unreadable { file: String, reason: CodeError },
    #[error(
        "{file} was changed or damaged after it was written: its content is not that of its hash."
    )]
    Changed { file: String },
    #[error("{file} cannot be shown: {reason}.")]
    Unshowable { file: String, reason: CodeError },
}

/// Finds, checks and reads the code with this hash.
fn source_text(hash: Option<&str>, folder: &Path) -> Result<SourceText, SourceError> {
    let hash = hash.ok_or(SourceError::NoHash)?;
    // A damaged trace must not name files outside of its folder.
    if hash.is_empty() || hash.len() > 128 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SourceError::DamagedHash);
    }
    let found = find(&ContainedPath::new(folder, "sources"), hash);
    let (path, extension) = found.ok_or_else(|| SourceError::Absent(hash.to_owned()))?;
    let file = format!("sources/{hash}.{extension}");
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(reason) => return Err(SourceError::Unreadable { file, reason }),
    };
    if is_changed(hash, &bytes) {
        return Err(SourceError::Changed { file });
    }
    let text = match extension.as_str() {
        "spv" => spirv(&bytes),
        _ => text(&bytes, &extension),
    };
    let (language, mut text) = match text {
        Ok(text) => text,
        Err(reason) => return Err(SourceError::Unshowable { file, reason }),
    };
    let cut = text.len() > MAX_TEXT_BYTES;
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    Ok(SourceText {
        language,
        text,
        cut,
        file,
    })
}

/// Returns true where bytes have another hash than the recorded one. Only hashes that gapscope writes, the first half
/// of BLAKE3, can be checked.
fn is_changed(hash: &str, bytes: &[u8]) -> bool {
    const DIGITS: usize = 32;
    let now = blake3::hash(bytes).to_hex();
    hash.len() == DIGITS && !now[..DIGITS].eq_ignore_ascii_case(hash)
}

/// Returns the path and extension of the file with this hash as its name.
fn find(folder: &ContainedPath, hash: &str) -> Option<(ContainedPath, String)> {
    folder.names().ok()?.into_iter().find_map(|name| {
        let extension = Path::new(&name).extension()?.to_str()?.to_owned();
        let file = folder.join(&name);
        let is_found = Path::new(&name).file_stem()?.to_str()? == hash && file.is_file();
        is_found.then_some((file, extension))
    })
}

/// The reason why code cannot be read or shown, as the end of a sentence.
#[derive(Debug, thiserror::Error)]
enum CodeError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("it is longer than {} MiB", MAX_CODE_BYTES >> 20)]
    TooLong,
    #[error("it is machine code, not text")]
    MachineCode,
    #[error("it is not valid SPIR-V")]
    InvalidSpirv,
}

/// Reads a file of code that is not too long.
fn read(file: &ContainedPath) -> Result<Vec<u8>, CodeError> {
    file.read(MAX_CODE_BYTES)
        .map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => CodeError::TooLong,
            _ => CodeError::Read(error),
        })
}

/// Returns the language that an extension means, and the text.
fn text(bytes: &[u8], extension: &str) -> Result<(String, String), CodeError> {
    let language = match extension {
        "ptx" => "PTX",
        "metal" => "Metal",
        "wgsl" => "WGSL",
        "cu" | "cuh" => "CUDA C++",
        "py" => "Python",
        "glsl" | "comp" => "GLSL",
        "hlsl" => "HLSL",
        "sass" => "SASS",
        "cl" => "OpenCL C",
        other => other,
    };
    let text = str::from_utf8(bytes).map_err(|_| CodeError::MachineCode)?;
    Ok((language.to_owned(), text.trim_end_matches('\0').to_owned()))
}

/// Returns language and text of SPIR-V: the source where its debug information has it, else its assembly.
fn spirv(bytes: &[u8]) -> Result<(String, String), CodeError> {
    // The library may panic when it meets damaged code.
    let module = guarded(|| rspirv::dr::load_bytes(bytes).ok());
    let module = module.ok().flatten().ok_or(CodeError::InvalidSpirv)?;
    if let Some(found) = written(&module) {
        return Ok(found);
    }
    let text = guarded(|| module.disassemble()).map_err(|_| CodeError::InvalidSpirv)?;
    Ok(("SPIR-V assembly".to_owned(), text))
}

/// Returns the language and text of the first `OpSource` and the `OpSourceContinued` that follow; `None` where they
/// hold no text.
fn written(module: &Module) -> Option<(String, String)> {
    let instructions = module.debug_string_source.iter();
    let mut language = None;
    let mut text = String::new();
    for instruction in instructions {
        let mut operands = instruction.operands.iter();
        let own = operands.clone().find_map(|operand| match operand {
            Operand::LiteralString(text) => Some(text.as_str()),
            _ => None,
        });
        match instruction.class.opcode {
            Op::Source if text.is_empty() => {
                language = operands.find_map(|operand| match operand {
                    Operand::SourceLanguage(language) => Some(format!("{language:?}")),
                    _ => None,
                });
                text.push_str(own.unwrap_or_default());
            }
            Op::SourceContinued => text.push_str(own.unwrap_or_default()),
            _ => {}
        }
    }
    (!text.trim().is_empty()).then(|| (language.unwrap_or_else(|| "source".to_owned()), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fs;

    /// Returns the answer for a kernel with this hash, in a trace with one file of code.
    fn source_of(hash: &str, file: &str, bytes: &[u8]) -> Value {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sources")).unwrap();
        fs::write(folder.path().join("secret.txt"), "secret").unwrap();
        fs::write(folder.path().join("sources").join(file), bytes).unwrap();
        let trace = Trace::from_text(&format!("kernel id=1 name=k source={hash}")).unwrap();
        serde_json::to_value(kernel_source(&trace, folder.path(), 0)).unwrap()
    }

    #[test]
    fn text_is_shown_and_machine_code_is_not() {
        let shown = source_of("ab12", "ab12.ptx", b".version 8.0\n");
        assert_eq!(
            (shown["language"].as_str(), shown["text"].as_str()),
            (Some("PTX"), Some(".version 8.0\n"))
        );
        assert!(
            source_of("ab12", "ab12.cubin", &[0xff, 0xfe])
                .get("missing")
                .is_some()
        );
    }

    #[test]
    fn code_that_was_changed_is_not_shown() {
        let written = b".version 8.0\n";
        let hash = &blake3::hash(written).to_hex()[..32];
        let file = format!("{hash}.ptx");
        assert_eq!(source_of(hash, &file, written)["language"], "PTX");
        let changed = source_of(hash, &file, b".version 8.1\n");
        assert_eq!(
            changed["missing"],
            format!(
                "sources/{file} was changed or damaged after it was written: its content is not that of its hash."
            )
        );
        assert_eq!(changed["changed"], true);
    }

    #[test]
    fn damaged_spirv_is_reported() {
        for bytes in [
            &b""[..],
            b"\x03\x02\x23\x07",
            b"\x03\x02\x23\x07\0\0\x01\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\x01\0\xff\xff",
        ] {
            assert!(
                source_of("ab12", "ab12.spv", bytes)
                    .get("missing")
                    .is_some(),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn a_hash_that_is_a_path_reads_nothing() {
        for hash in ["../secret", "..", "/etc/passwd", "a/b"] {
            let found = source_of(hash, "ab12.ptx", b"x");
            assert!(
                found["missing"].as_str().unwrap().contains("damaged"),
                "{hash}"
            );
        }
    }

    #[test]
    fn a_kernel_without_code_says_so() {
        let trace = Trace::from_text("kernel id=1 name=k").unwrap();
        let source = |row| kernel_source(&trace, Path::new("/nowhere"), row);
        assert!(matches!(source(0), Some(OrMissing::Missing(_))));
        assert!(source(1).is_none());
    }
}
