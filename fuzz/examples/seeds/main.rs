//! Writes the inputs that fuzzing begins with: `cargo run -p fuzz --example seeds -- OUT [SPOOL...]`.
//!
//! A SPOOL is a folder `NAME.gapscope/spool`, copied while its program was being recorded. The rest is made of the
//! fixtures, of the traces of the report's tests and of scenes (invented recordings) of the stand-in for xctrace.
//! Fixtures that are inputs as they are (`fuzz::seeds`) are not written. Some inputs consist of sections, each with a
//! tag such as the number of its thread.
#![forbid(unsafe_code)]

use fuzz::sections::{self, Section};
use fuzz::seeds;
use fuzz::targets::table;
use gapscope_spool::SpoolReader;
use gapscope_spool::event::{CommonEvent, CudaEvent, Event, EventGroup, SourceFormat, VulkanEvent};
use gapscope_spool::reader::DrainUntil;
use gapscope_trace::tables::*;
use gapscope_trace::{Trace, for_each_table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use stand_in_xctrace::{Quirks, SCHEMAS, Scene};
use std::fs;
use std::path::{Path, PathBuf};

mod interpreter;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let out = arguments.next().ok_or("usage: seeds OUT [SPOOL...]")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    manifests(&out, &root)?;
    tables(&out, &root)?;
    xctrace(&out)?;
    code(&out, &root)?;
    capture(&out, &root)?;
    for (name, memory) in interpreter::all() {
        keep(&out, "interpreter", &name, &memory)?;
    }
    for spool in arguments {
        let name = spool.file_name().unwrap_or_default().to_string_lossy();
        spools(&out, &name, &spool)?;
    }
    Ok(())
}

/// Writes the input `name` of a target.
fn keep(out: &Path, target: &str, name: &str, bytes: &[u8]) -> Result {
    let folder = out.join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name), bytes)?)
}

/// Writes the manifests of traces that are kept as text.
fn manifests(out: &Path, root: &Path) -> Result {
    let mut paths = seeds::fixtures(root, "rows");
    paths.extend(["v2", "v3"].map(|version| root.join(format!("fixtures/{version}.txt"))));
    for path in paths {
        let manifest = Trace::from_text(&fs::read_to_string(&path)?)?.manifest;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        keep(out, "manifest", &name, &serde_json::to_vec(&manifest)?)?;
    }
    Ok(())
}

/// Writes files of tables as gapscope writes them, and in other encodings.
fn tables(out: &Path, root: &Path) -> Result {
    for (version, flag) in [("v1", 0), ("v2", 0x80)] {
        let folder = root.join(format!("fixtures/{version}.gapscope"));
        for (at, name) in (0..).zip(table::names()) {
            if let Ok(file) = fs::read(folder.join(format!("{name}.parquet"))) {
                let input = [&[at | flag][..], &file].concat();
                keep(out, "table", &format!("{name}-{version}"), &input)?;
            }
        }
    }
    let plain = || {
        WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
    };
    let encodings = [
        ("plain", plain()),
        ("dictionary", plain().set_dictionary_enabled(true)),
        (
            "v2-page",
            plain()
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_dictionary_enabled(true),
        ),
        ("snappy", plain().set_compression(Compression::SNAPPY)),
        (
            "groups",
            plain()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(Some(2)),
        ),
    ];
    let trace = Trace::from_text(&fs::read_to_string(root.join("fixtures/v3.txt"))?)?;
    for (encoding, properties) in encodings {
        let properties = properties.build();
        let mut number = 0;
        macro_rules! write {
            ($($field:ident: $table:ty,)+) => {$(
                let file = encoded(&trace.tables.$field, &properties)?;
                let name = format!("{}-{encoding}", <$table>::NAME);
                keep(out, "table", &name, &[&[number][..], &file].concat())?;
                number += 1;
            )+};
        }
        for_each_table!(write);
        let _ = number;
    }
    Ok(())
}

/// Returns the Parquet file of a table with other properties than gapscope's.
fn encoded<T: Table>(table: &T, properties: &WriterProperties) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, T::schema(), Some(properties.clone()))?;
    writer.write(&table.to_batch())?;
    writer.close()?;
    Ok(file)
}

/// Writes exports of the stand-in for xctrace: each table by itself, and all of a scene together.
fn xctrace(out: &Path) -> Result {
    let mut scenes = vec![
        ("chain", Scene::chain(2)),
        ("labelled", Scene::labelled_chain(2)),
    ];
    scenes[0].1.command_buffers.truncate(2);
    let mut quirks = ["", "-two-nodes", "-forward"].map(|suffix| (suffix, Quirks::default()));
    quirks[1].1.two_nodes = true;
    quirks[2].1.forward_references = true;
    for (name, scene) in &scenes {
        for (suffix, quirks) in &quirks {
            let mut documents = vec![scene.toc()];
            for (schema, _) in SCHEMAS.iter() {
                let text = scene.table(schema, quirks);
                let name = format!("{name}{suffix}-{schema}");
                keep(out, "xctrace", &name, text.as_bytes())?;
                documents.push(text);
            }
            let whole = documents.join("\0");
            keep(out, "xctrace", &format!("{name}{suffix}"), whole.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes code that a CUDA program loaded.
fn code(out: &Path, root: &Path) -> Result {
    let folder = root.join("crates/recorder/recorder/src/code/testdata");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let bytes = fs::read(&path)?;
        let event = CommonEvent::Source {
            hash: [1; 16],
            format: match path.extension().and_then(|extension| extension.to_str()) {
                Some("cubin") => SourceFormat::Cubin,
                _ => SourceFormat::FatBinary,
            },
            bytes: &bytes,
        };
        let mut space = vec![0; 1 << 16];
        let length = event.encode(&mut space).ok_or("it is too long")?;
        let first = Section {
            tag: 0,
            bytes: Vec::new(),
        };
        let event = Section {
            tag: CommonEvent::GROUP as u8,
            bytes: space[..length].to_vec(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        keep(out, "events", &name, &sections::write(&[first, event]))?;
    }
    Ok(())
}

/// Writes the kept capture. The tests of `gapscope-capture` write others with any content by `write_inputs`.
fn capture(out: &Path, root: &Path) -> Result {
    let folder = root.join("fixtures/v1.gapcapture");
    let records = fs::read(folder.join(gapscope_capture::RECORDS))?;
    let content = fs::read(folder.join(gapscope_capture::CONTENT))?;
    keep(
        out,
        "capture",
        "v1",
        &[&records[..], b"\0", &content].concat(),
    )
}

/// Writes the files of each process as they are, without empty parts, and its events one by one.
fn spools(out: &Path, name: &str, spool: &Path) -> Result {
    for entry in fs::read_dir(spool)? {
        let folder = entry?.path();
        let name = format!(
            "{name}-{}",
            folder.file_name().unwrap_or_default().to_string_lossy()
        );
        let control = fs::read(folder.join("control"))?;
        let mut files = vec![Section {
            tag: 0,
            bytes: control[..256].to_vec(),
        }];
        let mut chunks: Vec<PathBuf> = fs::read_dir(&folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        chunks.retain(|path| path.extension().is_some_and(|e| e == "chunk"));
        chunks.sort();
        for path in chunks {
            let bytes = fs::read(&path)?;
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            let thread = path.file_name().unwrap_or_default().to_string_lossy();
            let thread = thread[1..]
                .split('-')
                .next()
                .unwrap_or("0")
                .parse::<u32>()?;
            let end = (used + 1).next_multiple_of(8).min(bytes.len());
            files.push(Section {
                tag: thread as u8,
                bytes: bytes[..end].to_vec(),
            });
        }
        keep(out, "spool", &name, &sections::write(&files))?;
    }
    for mut process in SpoolReader::open(spool).new_processes()? {
        let mut events = vec![Section {
            tag: 0,
            bytes: Vec::new(),
        }];
        process.drain(DrainUntil::End, |thread, event| {
            let mut space = vec![0; 1 << 16];
            let (group, length) = match &event {
                Event::Common(event) => (CommonEvent::GROUP, event.encode(&mut space)),
                Event::Vulkan(event) => (VulkanEvent::GROUP, event.encode(&mut space)),
                Event::Cuda(event) => (CudaEvent::GROUP, event.encode(&mut space)),
            };
            events.push(Section {
                tag: group as u8 | (thread.0 as u8) << 2,
                bytes: space[..length.unwrap_or(0)].to_vec(),
            });
        })?;
        let name = format!("{name}-{}", process.pid());
        keep(out, "events", &name, &sections::write(&events))?;
    }
    Ok(())
}
