//! Labels that gapscope sets itself: modules, whose layers are folded, and operators.

use crate::program::{Program, US};
use gapscope_analysis::operators::OperatorWork;

/// A label's path, who set it, and its kernels with their microseconds.
type Set = (&'static str, &'static str, &'static [(u32, i64)]);

/// A trace whose labels have these paths, and under each a kernel of as many microseconds.
fn program(labels: &[Set]) -> Program {
    let mut p = Program::with(
        "process id=1 pid=1
         kernel id=1 name=gemm
         kernel id=2 name=relu",
    );
    let mut paths: Vec<String> = Vec::new();
    let mut at_us = 0;
    for (path, domain, work) in labels {
        let id = paths.len() + 1;
        let (parent, text) = match path.rsplit_once(" / ") {
            Some((parent, text)) => {
                let parent = paths
                    .iter()
                    .position(|known| known == parent)
                    .expect("parents first");
                (format!(" parent={}", parent + 1), text)
            }
            None => (String::new(), *path),
        };
        paths.push((*path).to_owned());
        p.line(&format!("label id={id} text={text}{parent}"));
        if !domain.is_empty() {
            let domain = match *domain {
                "own" => String::new(),
                domain => format!(" domain=torch.{domain}"),
            };
            p.line(&format!("marker process=1 scope=thread thread=7 label={id}{domain} start_ns={at_us}us duration_ns=1us"));
        }
        for (kernel, us) in *work {
            p.ran(&format!("kernel={kernel} label={id}"), at_us, *us);
            at_us += us;
        }
    }
    p
}

fn folded(labels: &[Set]) -> Vec<(String, u64, Option<i64>)> {
    let mut rows: Vec<_> = (program(labels).findings().folded_labels.into_iter())
        .map(|label| {
            (
                label.row.path.clone(),
                label.layer_count,
                label.row.inclusive.busy_ns.map(|ns| ns / US),
            )
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn layers_of_one_shape_are_one_row_with_what_a_layer_takes() {
    let labels: &[Set] = &[
        ("GPT", "module", &[(1, 2)]),
        ("GPT / blocks.0", "module", &[]),
        ("GPT / blocks.0 / blocks.0.attn", "module", &[(1, 10)]),
        ("GPT / blocks.1", "module", &[(1, 3)]),
        (
            "GPT / blocks.1 / blocks.1.attn",
            "module",
            &[(1, 20), (2, 5)],
        ),
        ("GPT / blocks.2", "module", &[]),
        ("GPT / blocks.2 / blocks.2.attn", "module", &[(1, 12)]),
    ];
    let path = |text: &str| text.to_owned();
    assert_eq!(
        folded(labels),
        [
            (path("GPT"), 1, Some(52)),
            (path("GPT / blocks.*"), 3, Some(50)),
            (path("GPT / blocks.* / blocks.*.attn"), 3, Some(47)),
        ]
    );
    let findings = program(labels).findings();
    assert_eq!(findings.labels.len(), 7, "each by itself is there too");
    let attention = &findings.folded_labels[2];
    assert_eq!(attention.row.instances, Some(3));
    assert_eq!(attention.row.exclusive.dispatch_count, 4);
    assert_eq!(attention.layer_mean_busy_ns, Some(47e3 / 3.0));
    assert_eq!(attention.layer_min_busy_ns, Some(10 * US));
    assert_eq!(attention.layer_max_busy_ns, Some(25 * US));
}

#[test]
fn layers_of_other_shapes_are_told_apart() {
    let labels: &[Set] = &[
        ("blocks.0", "module", &[]),
        ("blocks.0 / blocks.0.mlp", "module", &[(1, 1)]),
        ("blocks.1", "module", &[]),
        ("blocks.1 / blocks.1.mlp", "module", &[(1, 1)]),
        ("blocks.2", "module", &[]),
        ("blocks.2 / blocks.2.experts.0", "module", &[(1, 1)]),
        ("blocks.2 / blocks.2.experts.1", "module", &[(1, 1)]),
        ("blocks.3", "module", &[]),
        ("blocks.3 / blocks.3.experts.0", "module", &[(1, 1)]),
        ("blocks.3 / blocks.3.experts.1", "module", &[(1, 1)]),
        // A list of layers of different kinds: what it ran says so.
        ("net.0", "module", &[(1, 1)]),
        ("net.1", "module", &[(2, 1)]),
        ("net.2", "module", &[(1, 1)]),
        // The program's own label is no layer.
        ("step.1", "own", &[(1, 1)]),
        ("step.2", "own", &[(1, 1)]),
    ];
    let rows: Vec<(String, u64)> = (folded(labels).into_iter())
        .map(|(path, layers, _)| (path, layers))
        .collect();
    let rows: Vec<(&str, u64)> = rows
        .iter()
        .map(|(path, layers)| (path.as_str(), *layers))
        .collect();
    assert_eq!(
        rows,
        [
            ("blocks.[0-1]", 2),
            ("blocks.[0-1] / blocks.[0-1].mlp", 2),
            ("blocks.[2-3]", 2),
            ("blocks.[2-3] / blocks.[2-3].experts.*", 4),
            ("net.1", 1),
            ("net.[0,2]", 2),
            ("step.1", 1),
            ("step.2", 1),
        ]
    );
}

#[test]
fn without_layers_nothing_is_folded() {
    assert_eq!(
        folded(&[("GPT", "module", &[(1, 1)]), ("GPT / head", "module", &[])]),
        []
    );
    assert_eq!(
        folded(&[
            ("blocks.0", "own", &[(1, 1)]),
            ("blocks.1", "own", &[(1, 1)])
        ]),
        []
    );
}

#[test]
fn operators_are_a_table_of_their_own_and_no_labels() {
    let labels: &[Set] = &[
        ("step", "own", &[]),
        ("step / attn", "module", &[(1, 1)]),
        ("step / attn / aten::linear", "operator", &[(1, 2)]),
        (
            "step / attn / aten::linear / aten::mm",
            "operator",
            &[(1, 10), (1, 30)],
        ),
        // Backward: the engine's operator began before the module.
        ("Engine", "operator", &[]),
        ("step / Engine", "", &[(2, 4)]),
        ("step / Engine / aten::mm", "operator", &[(1, 100)]),
    ];
    let findings = program(labels).findings();
    let rows: Vec<_> = (findings.operators.iter())
        .map(|row| (row.name.as_str(), row.call_count, row.own, row.inclusive))
        .collect();
    let work = |timed_count, us: i64| OperatorWork {
        timed_count,
        total_ns: Some(us * US),
    };
    assert_eq!(
        rows,
        [
            ("aten::mm", 2, work(3, 140), work(3, 140)),
            ("Engine", 1, work(1, 4), work(2, 104)),
            ("aten::linear", 1, work(1, 2), work(3, 42)),
        ]
    );
    let labels: Vec<_> = (findings.labels.iter())
        .map(|row| {
            (
                row.path.as_str(),
                row.instances,
                row.inclusive.busy_ns,
                row.exclusive.busy_ns,
            )
        })
        .collect();
    assert_eq!(
        labels,
        [
            ("step", Some(1), Some(147 * US), Some(104 * US)),
            ("step / attn", Some(1), Some(43 * US), Some(43 * US)),
        ],
        "their work belongs to the label around them"
    );
}

#[test]
fn operators_of_imported_files_have_what_their_threads_launched_inside_of_them() {
    let mut p = Program::with(
        "process id=1 pid=1
         kernel id=1 name=gemm
         label id=1 text=aten::linear
         label id=2 text=aten::addmm
         label id=3 text=aten::relu",
    );
    // Thread 7 calls linear, which calls addmm, and then relu; thread 8 calls relu at the same time.
    for (thread, label, start, length) in [
        (7, 1, 0, 100),
        (7, 2, 10, 20),
        (7, 3, 200, 50),
        (8, 3, 0, 300),
    ] {
        p.line(&format!("marker process=1 scope=thread thread={thread} label={label} domain=operator start_ns={start}us duration_ns={length}us"));
    }
    let launches = [
        (7, 15, 3),
        (7, 50, 5),
        (7, 150, 7),
        (7, 210, 11),
        (8, 15, 13),
    ];
    for (id, (thread, call, length)) in (1..).zip(launches) {
        let start = 1000 + id * 100;
        p.line(&format!("submission id={id} process=1 queue=1 thread={thread} kind=kernel start_ns={call}us duration_ns=2us"));
        p.line(&format!(
            "dispatch submission={id} queue=1 kernel=1 start_ns={start}us duration_ns={length}us"
        ));
    }
    let rows: Vec<_> = (p.findings().operators.into_iter())
        .map(|row| {
            let us = |work: OperatorWork| work.total_ns.map_or(0, |ns| ns / US);
            (
                row.name.clone(),
                row.call_count,
                us(row.own),
                us(row.inclusive),
            )
        })
        .collect();
    let expected = [
        ("aten::relu", 2, 24, 24),
        ("aten::linear", 1, 5, 8),
        ("aten::addmm", 1, 3, 3),
    ];
    assert_eq!(
        rows,
        expected.map(|(name, calls, own, all)| (name.to_owned(), calls, own, all))
    );
}
