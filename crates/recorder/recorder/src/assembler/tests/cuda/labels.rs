//! Tests the labels (texts that programs set around their work) that launches get.

use super::*;
use gapscope_spool::event::{Layer, Object};
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::{IdIndex, label_path};

#[test]
fn a_kernel_has_the_label_around_its_call_however_late_it_is_told_of() {
    let mut cuda = Cuda::new();
    for (text, value) in [(1, "step"), (2, "forward"), (3, "library")] {
        cuda.event(CommonEvent::Text {
            text: hook::Text(text),
            value,
        });
    }
    let mut label = |scope, edge, text, at_ns| {
        cuda.event(CommonEvent::Label {
            scope,
            edge,
            text: hook::Text(text),
            at_ns,
        });
    };
    use LabelEdge::*;
    label(LabelScope::Thread, Begin, 1, 900);
    label(LabelScope::Thread, Begin, 2, 950);
    label(LabelScope::Domain(hook::LabelDomain(4)), Begin, 3, 980);
    label(LabelScope::Domain(hook::LabelDomain(4)), End, 0, 1100);
    label(LabelScope::Thread, End, 0, 1200);
    label(LabelScope::Thread, End, 0, 1300);
    label(
        LabelScope::Range {
            domain: hook::LabelDomain(4),
            range: hook::LabelRange(77),
        },
        Begin,
        3,
        1350,
    );
    cuda.event(CudaEvent::LabelDetail {
        category: hook::LabelCategory::NONE,
        payload: Some(Payload::Signed(-5)),
    });
    label_end(&mut cuda, 77, 1400);
    cuda.event(CommonEvent::Label {
        scope: LabelScope::Thread,
        edge: Instant,
        text: hook::Text(2),
        at_ns: 1450,
    });
    cuda.event(CudaEvent::LabelPayload {
        ending: None,
        text: "bytes=4096, root=0",
    });
    for (correlation, begin) in [(1, 800), (2, 1000), (3, 1150), (4, 1250), (5, 1500)] {
        cuda.batch(&[
            call(LAUNCH, correlation, begin, begin + 5),
            kernel(1, correlation, begin + 10, begin + 20),
        ]);
    }
    cuda.end(2000);
    let (_, tables) = cuda.finish();
    let texts: Vec<Option<&str>> = tables
        .dispatches
        .label
        .iter()
        .map(|id| id.map(|id| &*tables.labels.text[id.0 as usize]))
        .collect();
    assert_eq!(
        texts,
        [None, Some("library"), Some("forward"), Some("step"), None]
    );
    let m = &tables.markers;
    assert_eq!(m.scope[3], MarkerScope::Process);
    assert_eq!(
        (m.start_ns.at(3), m.duration_ns.at(3)),
        (Some(1350), Some(50))
    );
    assert_eq!(m.payload[3].as_deref(), Some("-5"));
    assert_eq!(
        (m.start_ns.at(4), m.duration_ns.at(4)),
        (Some(1450), Some(0))
    );
    assert_eq!(m.payload[4].as_deref(), Some("bytes=4096, root=0"));
    let parents: Vec<_> = tables.labels.parent.to_vec();
    assert_eq!(
        parents,
        [None, Some(LabelId(0)), None, None],
        "a domain nests for itself"
    );
}

fn label_end(cuda: &mut Cuda, range: u64, at_ns: i64) {
    cuda.event(CommonEvent::Label {
        scope: LabelScope::Range {
            domain: hook::LabelDomain(4),
            range: hook::LabelRange(range),
        },
        edge: LabelEdge::End,
        text: hook::Text::NONE,
        at_ns,
    });
}

#[test]
fn a_value_that_is_given_at_the_end_is_that_of_the_label_which_ends() {
    let mut cuda = Cuda::new();
    let domain = LabelScope::Domain(hook::LabelDomain(4));
    let range = LabelScope::Range {
        domain: hook::LabelDomain(4),
        range: hook::LabelRange(77),
    };
    for (text, value) in [(1, "outer"), (2, "inner"), (3, "range")] {
        cuda.event(CommonEvent::Text {
            text: hook::Text(text),
            value,
        });
    }
    let mut label = |scope, edge, text, at_ns| {
        if edge == LabelEdge::End {
            let text = &format!("at={at_ns}");
            cuda.event(CudaEvent::LabelPayload {
                ending: Some(scope),
                text,
            });
        }
        cuda.event(CommonEvent::Label {
            scope,
            edge,
            text: hook::Text(text),
            at_ns,
        });
        if text == 2 {
            cuda.event(CudaEvent::LabelPayload {
                ending: None,
                text: "count=3",
            });
        }
    };
    use LabelEdge::*;
    label(domain, Begin, 1, 100);
    label(range, Begin, 3, 150);
    label(LabelScope::Thread, Begin, 2, 200);
    label(domain, End, 0, 300);
    label(range, End, 0, 350);
    label(LabelScope::Thread, End, 0, 400);
    // The end matches no open label.
    label(LabelScope::Thread, End, 0, 500);
    let (_, tables) = cuda.finish();
    let m = &tables.markers;
    let payloads: Vec<_> = m.payload.iter().map(|p| p.as_deref()).collect();
    assert_eq!(m.start_ns, [Some(100), Some(150), Some(200)]);
    assert_eq!(
        payloads,
        [Some("at=300"), Some("at=350"), Some("count=3, at=400")]
    );
}

/// Tests the label path of each launch inside the program's own range, modules and operators on one thread, forward
/// and backward.
#[test]
fn modules_are_inside_the_programs_labels_and_operators_inside_both() {
    use LabelEdge::*;
    let mut cuda = Cuda::new();
    let texts = [
        "step",
        "blocks.3",
        "blocks.3.attn",
        "aten::linear",
        "aten::addmm",
        "own",
        "Engine",
    ];
    for (text, value) in (1..).zip(texts) {
        cuda.event(CommonEvent::Text {
            text: hook::Text(text),
            value,
        });
    }
    let module = LabelScope::Domain(Layer::Module.domain());
    let operator = LabelScope::Domain(Layer::Operator.domain());
    for layer in Layer::ALL {
        cuda.event(CommonEvent::Name {
            object: Object::LabelDomain(layer.domain()),
            name: layer.name(),
        });
    }
    let mut at_ns = 100;
    let mut correlation = 0;
    let mut launch = |cuda: &mut Cuda, at_ns: i64| {
        correlation += 1;
        cuda.batch(&[
            call(LAUNCH, correlation, at_ns, at_ns + 1),
            kernel(1, correlation, at_ns + 2, at_ns + 3),
        ]);
    };
    for (scope, edge, text, launches) in [
        (LabelScope::Thread, Begin, 1, true),
        (module, Begin, 2, true),
        (module, Begin, 3, false),
        (operator, Begin, 4, false),
        (operator, Begin, 5, true),
        // The program's own range is inside an operator.
        (LabelScope::Thread, Begin, 6, true),
        (LabelScope::Thread, End, 0, false),
        (operator, End, 0, true),
        (operator, End, 0, false),
        (module, End, 0, false),
        (module, End, 0, true),
        // In the backward pass, a module begins after the engine's operator, and ends after it, too.
        (operator, Begin, 7, true),
        (module, Begin, 2, true),
        (operator, Begin, 5, true),
        (operator, End, 0, false),
        (operator, End, 0, true),
        (module, End, 0, false),
        (LabelScope::Thread, End, 0, true),
    ] {
        cuda.event(CommonEvent::Label {
            scope,
            edge,
            text: hook::Text(text),
            at_ns,
        });
        if launches {
            launch(&mut cuda, at_ns + 10);
        }
        at_ns += 100;
    }
    cuda.end(at_ns);
    let (_, tables) = cuda.finish();
    let ids = IdIndex::new(&tables.labels.id);
    let path = |label: Option<LabelId>| {
        let row = label.map(|label| ids.row(label) as usize);
        let rows = row
            .into_iter()
            .flat_map(|row| tables.labels.outwards(&ids, row));
        label_path(rows.map(|row| &*tables.labels.text[row]))
    };
    let labels: Vec<String> = tables.dispatches.label.iter().map(path).collect();
    assert_eq!(
        labels,
        [
            "step",
            "step / blocks.3",
            "step / blocks.3 / blocks.3.attn / aten::linear / aten::addmm",
            "step / blocks.3 / blocks.3.attn / own / aten::linear / aten::addmm",
            "step / blocks.3 / blocks.3.attn / aten::linear",
            "step",
            "step / Engine",
            "step / blocks.3 / Engine",
            "step / blocks.3 / Engine / aten::addmm",
            "step / blocks.3",
            "",
        ]
    );
    let domain = |text: &str| {
        let markers = &tables.markers;
        let is = |label: LabelId| &*tables.labels.text[ids.row(label) as usize] == text;
        let row = markers.label.iter().position(|label| is(*label));
        row.and_then(|row| markers.domain[row].clone())
    };
    assert_eq!(domain("blocks.3").as_deref(), Some("torch.module"));
    assert_eq!(domain("aten::addmm").as_deref(), Some("torch.operator"));
    assert_eq!(domain("own"), None);
}
