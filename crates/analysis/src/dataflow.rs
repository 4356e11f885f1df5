//! Finds the data flow of a trace: which dispatches and transfers read what others wrote.
//!
//! A dispatch may read and write the buffer ranges bound to it, as far as its code can; buffers in one allocation share its
//! bytes. A transfer may touch all bytes of its buffers, since the trace does not say which. Work is taken in the order in which
//! the device began it, or, where single dispatches have no times, in the order of the command buffers.
//!
//! What this cannot know: whether a kernel touches everything that is bound to it, so that a dependency here is only possible;
//! memory that it reaches through device addresses, images and push constants; dispatches whose bindings are unknown, which have
//! no dependencies here.
//!
//! Order of calls: `reads_and_writes.rs` makes [`Dataflow`] of a timeline; `hazards.rs` lists its dependencies, and
//! `fold.rs` draws them as a graph of kernels.

mod fold;
mod hazards;
mod reads_and_writes;

pub use fold::{FlowEdge, FlowGraph, FlowNode, NodeKind};
pub use hazards::{Dependency, Hazard, Neighbours};
pub use reads_and_writes::{Dataflow, UnknownDataflow};

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_timeline::{Timeline, WorkKind};
    use gapscope_trace::Trace;

    /// x -> double -> y -> add -> z, twice; `lonely` shares nothing.
    const CHAIN: &str = "
        device id=1
        queue id=1 device=1
        buffer id=1 device=1 bytes=100 name=x
        buffer id=2 device=1 bytes=100 name=y
        buffer id=3 device=1 bytes=100 name=z
        binding id=1 binding=0 buffer=1 bytes=100 access=read
        binding id=1 binding=1 buffer=2 bytes=100 access=write
        binding id=2 binding=0 buffer=2 offset_bytes=50 bytes=50 access=read
        binding id=2 binding=1 buffer=3 bytes=100 access=write
        kernel id=1 name=double
        kernel id=2 name=add
        kernel id=3 name=lonely
        dispatch queue=1 kernel=1 start_ns=100 duration_ns=10 bindings=1
        dispatch queue=1 kernel=3 start_ns=115 duration_ns=2
        dispatch queue=1 kernel=2 start_ns=120 duration_ns=10 bindings=2
        dispatch queue=1 kernel=1 start_ns=140 duration_ns=10 bindings=1
        dispatch queue=1 kernel=2 start_ns=160 duration_ns=10 bindings=2";

    fn with<T>(text: &str, check: impl FnOnce(&Dataflow) -> T) -> T {
        let trace = Trace::from_text(text).unwrap();
        let timeline = Timeline::new(&trace);
        check(&Dataflow::new(&timeline))
    }

    fn rows(dependencies: &[Dependency]) -> Vec<(usize, Hazard, u64)> {
        dependencies
            .iter()
            .map(|d| (d.row, d.hazard, d.bytes))
            .collect()
    }

    #[test]
    fn a_reader_depends_on_the_last_writer_of_the_bytes_that_it_reads() {
        with(CHAIN, |flow| {
            let add = flow.neighbours(WorkKind::Dispatch, 2, 64).unwrap();
            assert_eq!(rows(&add.predecessors), [(0, Hazard::ReadAfterWrite, 50)]);
            assert_eq!(flow.buffer_name(add.predecessors[0].buffers[0]), "y");
            // The next `double` overwrites what this `add` read, the next `add` what it wrote.
            assert_eq!(
                rows(&add.successors),
                [
                    (3, Hazard::WriteAfterRead, 50),
                    (4, Hazard::WriteAfterWrite, 100)
                ]
            );
            let last = flow.neighbours(WorkKind::Dispatch, 4, 64).unwrap();
            assert_eq!(last.predecessors[0].row, 3);
        });
    }

    #[test]
    fn unknown_bindings_have_no_neighbours_to_name() {
        with(CHAIN, |flow| {
            assert!(flow.neighbours(WorkKind::Dispatch, 1, 64).is_err());
        });
    }

    #[test]
    fn repeats_fold_into_one_node() {
        with(CHAIN, |flow| {
            let graph = flow.graph(None, 150, 1000).unwrap();
            let names: Vec<_> = graph
                .nodes
                .iter()
                .map(|n| (n.name.as_str(), n.count))
                .collect();
            assert_eq!(names, [("double", 2), ("lonely", 1), ("add", 2)]);
            assert_eq!(graph.edges.len(), 1);
            assert_eq!((graph.edges[0].from, graph.edges[0].to), (0, 2));
            assert_eq!((graph.edges[0].count, graph.edges[0].bytes), (2, 100));
            assert_eq!((graph.dispatch_count, graph.considered_count), (5, 5));
        });
    }

    #[test]
    fn a_small_graph_folds_what_it_cannot_show() {
        with(CHAIN, |flow| {
            let graph = flow.graph(None, 2, 1000).unwrap();
            assert_eq!(graph.nodes.len(), 2);
            assert_eq!(graph.nodes.iter().map(|n| n.count).sum::<u64>(), 5);
            assert!(graph.nodes.iter().any(|n| n.kind == NodeKind::Rest));
        });
    }

    #[test]
    fn labels_that_count_steps_fold_when_there_are_too_many() {
        let mut text =
            "device id=1\nqueue id=1 device=1\nkernel id=1 name=k\nbuffer id=1 device=1 bytes=8\n\
                        binding id=1 buffer=1 bytes=8 access=read-write\n"
                .to_owned();
        for step in 0..20 {
            text.push_str(&format!("label id={step} text=\"step {step}\"\n"));
            text.push_str(&format!(
                "dispatch queue=1 kernel=1 start_ns={} duration_ns=5 bindings=1 label={step}\n",
                step * 10
            ));
        }
        with(&text, |flow| {
            assert_eq!(flow.graph(None, 20, 1000).unwrap().nodes.len(), 20);
            let folded = flow.graph(None, 10, 1000).unwrap();
            assert_eq!(folded.nodes.len(), 1);
            assert_eq!(folded.nodes[0].label.as_deref(), Some("step #"));
            assert_eq!(folded.edges[0].count, 19);
        });
    }

    #[test]
    fn without_bindings_the_graph_says_so() {
        let text = "device id=1\nqueue id=1 device=1\nkernel id=1 name=k\ndispatch queue=1 kernel=1 start_ns=1 duration_ns=1";
        with(text, |flow| {
            let missing = flow.graph(None, 150, 1000).unwrap_err().to_string();
            assert!(missing.contains("bindings"), "{missing}");
        });
    }

    #[test]
    fn buffers_in_one_allocation_share_bytes() {
        let text = "
            device id=1
            queue id=1 device=1
            kernel id=1 name=k
            buffer id=1 device=1 bytes=64 allocation=7 offset_bytes=0
            buffer id=2 device=1 bytes=64 allocation=7 offset_bytes=32
            binding id=1 buffer=1 bytes=64 access=write
            binding id=2 buffer=2 bytes=64 access=read
            dispatch queue=1 kernel=1 start_ns=1 duration_ns=1 bindings=1
            dispatch queue=1 kernel=1 start_ns=3 duration_ns=1 bindings=2";
        with(text, |flow| {
            let reader = flow.neighbours(WorkKind::Dispatch, 1, 64).unwrap();
            assert_eq!(
                rows(&reader.predecessors),
                [(0, Hazard::ReadAfterWrite, 32)]
            );
        });
    }

    #[test]
    fn without_times_the_order_is_that_of_the_command_buffers() {
        let text = "
            manifest sampling_mode=command-buffer
            device id=1
            queue id=1 device=1
            kernel id=1 name=k
            buffer id=1 device=1 bytes=64
            binding id=1 buffer=1 bytes=64 access=write
            binding id=2 buffer=1 bytes=64 access=read
            command_buffer id=1 queue=1 start_ns=50 duration_ns=10 dispatches=1
            command_buffer id=2 queue=1 start_ns=10 duration_ns=10 dispatches=1
            dispatch command_buffer=1 queue=1 kernel=1 bindings=2
            dispatch command_buffer=2 queue=1 kernel=1 bindings=1";
        with(text, |flow| {
            let reader = flow.neighbours(WorkKind::Dispatch, 0, 64).unwrap();
            assert_eq!(
                rows(&reader.predecessors),
                [(1, Hazard::ReadAfterWrite, 64)]
            );
        });
    }
}
