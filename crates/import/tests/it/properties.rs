//! Tests that no content of files causes a panic or a number that was not planted.

use crate::{Exports, plain};
use gapscope_import::Options;
use gapscope_import::xctrace::read;
use proptest::prelude::*;
use stand_in_xctrace::{Quirks, Scene};
use std::collections::BTreeSet;

/// Generates scenes whose command buffers have any times.
fn scenes() -> impl Strategy<Value = Scene> {
    let work = (
        0..1_000_000i64,
        0..1_000_000i64,
        0..1_000_000i64,
        0..1_000_000i64,
    );
    proptest::collection::vec(work, 1..20).prop_map(|works| {
        let mut scene = Scene::labelled_chain(works.len() as u64);
        for (cb, (created, encoding, latency, duration)) in
            scene.command_buffers.iter_mut().zip(works)
        {
            cb.created_ns = created;
            cb.committed_ns = created + encoding;
            let start_ns = cb.committed_ns + latency;
            let run = &mut cb.encoders[0].gpu[0];
            (run.start_ns, run.duration_ns) = (start_ns, duration);
            cb.completed_ns = Some(start_ns + duration + 1);
        }
        scene
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_scene_is_read_as_it_was_planted(scene in scenes(), two_nodes: bool, forward_references: bool) {
        let quirks = Quirks { two_nodes, forward_references, ..Quirks::default() };
        let trace = Exports::from_scene(&scene, &quirks).trace();
        let base = trace.manifest.start_ns;
        let mut planted: Vec<_> = (scene.command_buffers.iter())
            .map(|cb| {
                let run = cb.encoders[0].gpu[0];
                (base + cb.committed_ns, base + run.start_ns, run.duration_ns, cb.label.clone())
            })
            .collect();
        planted.sort();
        let t = &trace.tables.command_buffers;
        let mut read: Vec<_> = (0..t.id.len())
            .map(|row| {
                let name = t.name[row].as_deref().unwrap().to_owned();
                (trace.tables.submissions.start_ns[row], t.start_ns.at(row).unwrap(), t.duration_ns.at(row).unwrap(), name)
            })
            .collect();
        read.sort();
        prop_assert_eq!(read, planted);
        prop_assert!(trace.manifest.devices[0].clock.error_ns.unwrap() >= 0);
        prop_assert!(!trace.manifest.losses.iter().any(|loss| loss.kind.as_str().contains("rows of")));
    }

    #[test]
    fn a_torn_table_gives_only_planted_rows(scene in scenes(), at in 0.0..1.0f64) {
        let exports = Exports::from_scene(&scene, &Quirks::default());
        let whole: BTreeSet<_> = rows(&plain(&scene));
        let mut table = scene.table("metal-gpu-intervals", &Quirks::default());
        let mut cut = (table.len() as f64 * at) as usize;
        while !table.is_char_boundary(cut) {
            cut -= 1;
        }
        table.truncate(cut);
        exports.add("metal-gpu-intervals", &table);
        if let Ok(trace) = exports.read() {
            let read = rows(&trace);
            prop_assert!(read.is_subset(&whole), "{:?} not in {:?}", read, whole);
        }
    }

    #[test]
    fn changed_bytes_never_panic(scene in scenes(), changes in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 1..30)) {
        let exports = Exports::from_scene(&scene, &Quirks::default());
        for name in ["metal-gpu-intervals", "metal-application-command-buffer-submissions", "toc"] {
            let path = exports.folder.path().join(format!("{name}.xml"));
            let mut bytes = std::fs::read(&path).unwrap();
            for (at, byte) in &changes {
                let at = (bytes.len() as f64 * at) as usize;
                bytes[at] = *byte;
            }
            std::fs::write(&path, bytes).unwrap();
        }
        let _ = exports.read();
    }

    #[test]
    fn any_text_never_panics(text in ".{0,200}", inside in "[<>/a-z&;= \"'0-9]{0,200}") {
        let exports = Exports::new();
        let any = exports.add("any", &text);
        let result = exports.add("result", &format!("<trace-query-result>{inside}</trace-query-result>"));
        let toc = exports.add("toc", &format!("<trace-toc>{inside}"));
        for path in [any, result, toc] {
            let _ = read(&[path], &Options::default());
        }
    }
}

/// Returns (start, duration) of the GPU work from intervals, with times from the trace's start.
fn rows(trace: &gapscope_trace::Trace) -> BTreeSet<(i64, i64)> {
    let work = &trace.tables.opaque_work;
    (work.start_ns.iter().zip(&work.duration_ns))
        .map(|(start, duration)| (start.unwrap() - trace.manifest.start_ns, duration.unwrap()))
        .collect()
}
