//! Whatever the rows say, ranks are compared.

use crate::any_trace::{RANGES, garbage, id, rows, time};
use gapscope_analysis::{Findings, Options};
use gapscope_comparison::ranks::{RankDigest, ranks};
use gapscope_timeline::Timeline;
use gapscope_trace::ids::*;
use gapscope_trace::tables::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_traces_of_ranks_are_compared(
        traces in proptest::collection::vec(garbage(), 0..4),
        ranges in rows((id(), time(), time(), 0..RANGES.len(), 0u32..3)),
    ) {
        let mut digests = Vec::new();
        for (rank, mut trace) in (0..).zip(traces) {
            let names = &mut trace.tables.kernels.name;
            for (every, name) in [(2, "ncclDevKernel_AllReduce"), (3, "ncclDevKernel_SendRecv")] {
                (0..names.len()).step_by(every).for_each(|row| names.set(row, name.into()));
            }
            for (thread, start_ns, duration_ns, range, number) in &ranges {
                let label = LabelId(1_000 + trace.tables.labels.len() as u32);
                trace.tables.labels.push(Label { id: label, text: RANGES[*range].into(), parent: None });
                let payload = format!(
                    "NCCL communicator ID={number}, No. of ranks=2, Rank={rank}, Message size [bytes]={}, Peer rank={number}",
                    u64::MAX
                );
                trace.tables.markers.push(Marker {
                    scope: MarkerScope::Thread, label, thread: Some(ThreadId(*thread)), domain: Some("NCCL".into()), payload: Some(payload.into()),
                    start_ns: Some(*start_ns), duration_ns: Some(*duration_ns), ..Marker::default()
                });
            }
            let findings = Findings::new(&trace, &Options::default());
            digests.extend(RankDigest::from_timeline(&Timeline::new(&trace), &findings, rank));
        }
        let found = ranks(&digests, 3);
        prop_assert_eq!(found.ranks.len(), digests.len());
        for kind in &found.collectives {
            prop_assert!(kind.skew.timed_count <= kind.matched_count);
        }
    }
}
