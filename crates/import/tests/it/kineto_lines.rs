//! Tests Chrome's JSON with damage of every kind, as lines and as documents: the damage costs itself only, and the losses
//! say so. Also tests kernels that come in other phases than that of complete events, and texts in unusual wrappings.

use crate::imported::{Import, Rows, import_bytes, loss, noted};
use gapscope_trace::tables::Table;

fn pair(at: u32) -> [String; 2] {
    let (call, work) = (at * 100, at * 100 + 9);
    [
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1000,"tid":1,"ts":{call},"dur":5,"args":{{"correlation":{at}}}}}"#
        ),
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{work},"dur":50,"args":{{"device":0,"context":1,"stream":7,"correlation":{at},"grid":[1,1,1],"block":[32,1,1]}}}}"#
        ),
    ]
}

fn events(range: std::ops::Range<u32>) -> Vec<String> {
    range.flat_map(pair).collect()
}

fn import(text: &str) -> Import {
    import_bytes("run.json", text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Damaged events, each with how many more of the lines behind it are lost with it.
const DAMAGED: [&str; 9] = [
    r#"{"ph":"X","cat":"kernel","name":"k","args":{"a":1"#,
    r#"{"ph":"X","cat":"kernel","name":"k","args":{"a":[{"b":[1"#,
    r#"{"ph":"X","cat":"kernel","name":"k","args":{"a":"b"#,
    r#"{"ph":"X","cat":"kernel","name":"k"#,
    r#"{"ph":"X","cat":"kernel","name":"k","#,
    r#"{"ph":"X","cat":"kernel","name":"k","ts":"#,
    r#"name":"k","args":{"a":1}}"#,
    r#""a":1}}}"#,
    r#"{"ph":"X",{{"cat":"kernel"}"#,
];

#[test]
fn a_damaged_line_costs_itself_only() {
    for damaged in DAMAGED {
        for places in [&[0][..], &[6], &[2, 6, 7], &[12]] {
            let mut lines = events(1..7);
            for place in places.iter().rev() {
                lines.insert(*place, damaged.to_owned());
            }
            let text = lines.join("\n");
            let import = import(&text);
            let losses = &import.trace.manifest.losses;
            assert_eq!(
                import.trace.tables.dispatches.len(),
                6,
                "{damaged} at {places:?}: {losses:?}"
            );
            let is_last = places == [12];
            let ended = import.loss("rests of files");
            assert!(ended == 0 || is_last, "{damaged} at {places:?}: {losses:?}");
            let unread = import.loss("parts of files") + ended;
            assert!(unread >= 1, "{damaged} at {places:?}: {losses:?}");
            let share = losses.iter().any(|loss| loss.reason.contains("% of the"));
            assert!(
                share || losses.iter().any(|loss| loss.reason.contains(" %)")) || is_last,
                "{damaged} at {places:?}: {losses:?}"
            );
        }
    }
}

#[test]
fn a_damaged_event_of_a_document_costs_itself_only() {
    for damaged in DAMAGED {
        let mut list = events(1..4);
        list.push(damaged.to_owned());
        list.extend(events(4..7));
        let text = format!(
            r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
            list.join(",\n")
        );
        let import = import(&text);
        let losses = &import.trace.manifest.losses;
        let dispatches = import.trace.tables.dispatches.len();
        assert_eq!(dispatches, 6, "{damaged}: {losses:?}");
        assert_eq!(import.loss("rests of files"), 0, "{damaged}: {losses:?}");
    }
}

#[test]
fn documents_behind_lines_and_behind_unfinished_documents_are_read() {
    let document = |range| {
        let list = events(range).join(",\n");
        format!(r#"{{"schemaVersion":1,"traceEvents":[{list}]}}"#)
    };
    let lines = |range| events(range).join("\n");
    let unfinished = |range| {
        let list = events(range).join(",\n");
        format!("{{\"schemaVersion\":1,\"traceEvents\":[{list},")
    };
    let array = |range| format!("[{}]", events(range).join(","));
    let cut = |text: String| text[..text.len() - 30].to_owned();
    let cases = [
        (format!("{}\n{}", lines(1..4), document(4..7)), 6, 0),
        (format!("{}\n{}", document(1..4), lines(4..7)), 6, 0),
        (format!("{}\n{}", lines(1..4), array(4..7)), 6, 0),
        (format!("{}\n{}", unfinished(1..4), document(4..7)), 6, 1),
        (format!("{}\n{}", unfinished(1..4), lines(4..7)), 6, 0),
        (
            format!("[{},\n{}", lines(1..4).replace('\n', ","), array(4..7)),
            6,
            1,
        ),
        (format!("{}\n{}", cut(document(1..4)), document(4..7)), 5, 2),
        (format!("{}\n{}", cut(lines(1..4)), document(4..7)), 5, 1),
    ];
    for (text, dispatches, parts) in cases {
        let import = import(&text);
        let losses = &import.trace.manifest.losses;
        let found = import.trace.tables.dispatches.len();
        assert_eq!(found, dispatches, "{text}: {losses:?}");
        assert_eq!(import.loss("parts of files"), parts, "{text}: {losses:?}");
    }
}

#[test]
fn the_end_of_a_file_is_what_is_missing_where_the_file_is_cut() {
    let whole = format!("{{\"traceEvents\":[{}]}}", events(1..7).join(",\n"));
    let last = whole.rfind("{\"ph\"").unwrap();
    for end in [last + 20, last + 60, whole.len() - 20, whole.len() - 3] {
        let import = import(&whole[..end]);
        let losses = &import.trace.manifest.losses;
        assert_eq!(import.trace.tables.dispatches.len(), 5, "{losses:?}");
        assert_eq!(import.loss("rests of files"), 1, "{losses:?}");
        assert_eq!(import.loss("parts of files"), 0, "{losses:?}");
        let read =
            format!("the {end} bytes that it has were read, and how many are missing is not known");
        assert_eq!(loss(&import.trace, &read), 1, "{losses:?}");
    }
}

#[test]
fn kernels_are_kernels_in_any_phase_and_category() {
    let wanted = import(&format!("[{}]", events(1..7).join(",")));
    let kernel = r#""ph":"X","cat":"kernel","name":"k","pid":0,"tid":7"#;
    let variants: [(&str, &str); 3] = [
        (
            "a number as category",
            r#""ph":"X","cat":3,"name":"k","pid":0,"tid":7"#,
        ),
        (
            "an unknown category",
            r#""ph":"X","cat":"gpu work","name":"k","pid":0,"tid":7"#,
        ),
        ("no category", r#""ph":"X","name":"k","pid":0,"tid":7"#),
    ];
    for (what, event) in variants {
        let text = format!("[{}]", events(1..7).join(",")).replace(kernel, event);
        assert_eq!(import(&text).trace.tables, wanted.trace.tables, "{what}");
    }
    for (begin, end) in [("B", "E"), ("b", "e")] {
        let mut list = Vec::new();
        for at in 1..7 {
            let [call, kernel] = pair(at);
            let work = at * 100 + 9;
            let id = format!(r#""id":{at},"#);
            list.push(call);
            let begun = kernel.replace(r#""ph":"X","#, &format!(r#""ph":"{begin}",{id}"#));
            list.push(begun.replace(r#","dur":50"#, ""));
            let name = if begin == "b" {
                r#""name":"k","cat":"kernel","#
            } else {
                ""
            };
            list.push(format!(
                r#"{{"ph":"{end}",{id}{name}"pid":0,"tid":7,"ts":{}}}"#,
                work + 50
            ));
        }
        let import = import(&format!("[{}]", list.join(",")));
        assert_eq!(
            import.trace.tables, wanted.trace.tables,
            "{begin} and {end}"
        );
        assert_eq!(import.trace.manifest.losses, []);
        // The last one never ends.
        list.pop();
        let import = self::import(&format!("[{}]", list.join(",")));
        assert_eq!(import.trace.tables.dispatches.len(), 6);
        assert_eq!(import.loss("dispatch times"), 1);
    }
    let text = events(1..7)
        .join("\n")
        .replace(r#""ph":"X","cat":"kernel""#, r#""ph":"i","cat":"kernel""#);
    assert_eq!(import(&text).trace.tables, wanted.trace.tables);
    let import = import(&text.replace(r#","dur":50"#, ""));
    assert_eq!(import.trace.tables.dispatches.len(), 6);
    assert_eq!(import.loss("dispatch times"), 6);
}

#[test]
fn texts_of_containers_and_of_windows_are_read() {
    let document = format!(
        "{{\n  \"traceEvents\": [\n    {}\n  ]\n}}\n",
        events(1..7)
            .join(",\n")
            .replace("{\"", "{\n      \"")
            .replace(",\"", ",\n      \"")
            .replace(",\n", ",\n    ")
    );
    let wanted = import(&document).trace;
    assert_eq!(wanted.tables.dispatches.len(), 6);
    let mut time = 8;
    let mut prefixed = |prefix: &str| -> String {
        let lines = document.lines().map(|line| {
            time += 1;
            format!("{}{line}\n", prefix.replace('#', &time.to_string()))
        });
        lines.collect()
    };
    for prefix in [
        "worker-1  | ",
        "2026-11-27T10:00:00.#Z stdout F ",
        "[rank0]: ",
        "Nov 27 10:00:00 host python[#]: ",
    ] {
        let text = prefixed(prefix);
        let text = format!("{}starting\n{text}", prefix.replace('#', "7"));
        let import = import(&text);
        assert_eq!(import.trace.tables, wanted.tables, "{prefix}");
    }
    let little: Vec<u8> = document.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = document.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        let import = import_bytes("run.json", &bytes).unwrap();
        assert_eq!(import.trace.tables, wanted.tables);
    }
    let log = "{\"log\":\"{\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-27T10:00:00Z\"}\n";
    let error = import_bytes("x-json.log", log.repeat(3).as_bytes()).unwrap_err();
    assert!(error.to_string().contains("jq"), "{error}");
}

#[test]
fn devices_that_cannot_be_read_are_unknown() {
    let text = events(1..7).join("\n");
    for device in [
        r#""device":"cuda:x","#,
        r#""device":-1,"#,
        r#""device":null,"#,
    ] {
        let import = import(&text.replace(r#""device":0,"#, device));
        let devices = &import.trace.manifest.devices;
        assert_eq!(devices.len(), 1);
        assert!(devices[0].name.contains("unknown"), "{devices:?}");
        assert!(!devices[0].name.contains('0'), "{devices:?}");
    }
}

#[test]
fn rows_without_correlations_make_no_losses_of_work() {
    let text = events(1..7).join("\n");
    let joined = r#""stream":7,"correlation":"#;
    assert!(text.contains(joined));
    let import = import(&text.replace(joined, r#""stream":7,"x":"#));
    let losses = &import.trace.manifest.losses;
    assert_eq!(import.loss("dispatches"), 0, "{losses:?}");
    assert_eq!(import.trace.tables.dispatches.len(), 6);
    assert!(!losses.is_empty());
}

#[test]
fn the_hint_on_rows_names_no_thread_of_a_processor() {
    let operator = |tid: u32| {
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1000,"tid":{tid},"ts":{tid},"dur":5}}"#
        )
    };
    let scope = r#"{"ph":"X","cat":"","name":"pass","pid":1,"tid":2,"ts":7,"dur":5}"#;
    let main = r#"{"ph":"X","cat":"","name":"main loop","pid":1000,"tid":1000,"ts":7,"dur":5}"#;
    let list = [operator(1), operator(1), main.to_owned(), scope.to_owned()].join(",");
    let import = import(&format!("[{list}]"));
    let notes = &import.trace.manifest.notes;
    assert!(noted(&import.trace, "--gpu"), "{notes:?}");
    assert!(noted(&import.trace, "pid=1,tid=2"), "{notes:?}");
    assert!(!noted(&import.trace, "pid=1000"), "{notes:?}");
}

#[test]
fn ranges_whose_events_stand_in_reverse_order_are_paired() {
    let event = |phase: &str, ts: u32, rest: &str| {
        format!(r#"{{"ph":"{phase}","pid":1,"tid":1,"ts":{ts},{rest}}}"#)
    };
    let call = r#""cat":"cuda_runtime","name":"cudaLaunchKernel","args":{"correlation":7}"#;
    let work = r#""cat":"kernel","name":"k","args":{"device":0,"stream":7,"correlation":7}"#;
    let outer = r#""cat":"cpu_op","name":"aten::mm""#;
    let next = r#""cat":"cpu_op","name":"aten::add""#;
    let range = r#""cat":"cpu_op","name":"async","id":"0x1""#;
    let events = [
        event("B", 100, outer),
        event("B", 110, call),
        event("b", 112, range),
        event("E", 120, call),
        event("X", 130, &format!(r#"{work},"dur":50"#)),
        event("E", 140, outer),
        event("B", 140, next),
        event("e", 145, range),
        event("E", 150, next),
    ];
    let import = |events: Vec<String>| {
        let text = format!(
            r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
            events.join(",")
        );
        import_bytes("run.json", text.as_bytes()).unwrap()
    };
    let forward = import(events.to_vec());
    let backward = import(events.iter().rev().cloned().collect());
    for import in [&forward, &backward] {
        let tables = &import.trace.tables;
        assert_eq!(import.trace.manifest.losses, []);
        assert_eq!(tables.submissions.iter().count(), 1);
        let mut operators: Vec<_> = (tables.markers.iter())
            .map(|row| {
                (
                    row.start_ns.map(|ns| ns / 1000),
                    row.duration_ns.map(|ns| ns / 1000),
                )
            })
            .collect();
        operators.sort_unstable();
        let expected = [(100, 40), (112, 33), (140, 10)];
        assert_eq!(
            operators,
            expected.map(|(start, length)| (Some(start), Some(length)))
        );
    }
    // An end too many is counted, wherever it stands.
    for at in [0, events.len()] {
        let mut more = events.to_vec();
        more.insert(at, event("E", 90, outer));
        assert_eq!(loss(&import(more).trace, "ends of ranges"), 1, "{at}");
    }
}
