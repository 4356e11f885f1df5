//! Says how many bytes the results of queries (measurements inside command buffers) have: the facts of a pool's creation
//! go in, the length of the range that `vkCmdCopyQueryPoolResults` writes comes out.

use ash::vk;
use gapscope_vulkan_layer::arguments;

/// The bytes of a `VkPerformanceCounterResultKHR`.
const COUNTER_BYTES: u64 = 8;
/// The flag `VK_QUERY_RESULT_WITH_STATUS_BIT_KHR`: a status follows the values of a query, as availability does.
const WITH_STATUS: vk::QueryResultFlags = vk::QueryResultFlags::from_raw(0b1_0000);

/// The values that each query of a pool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryPool {
    /// So many integers, whose size the flags of a copy decide.
    Integers(u64),
    /// The values of so many hardware counters.
    Counters(u64),
    /// The pool is of a kind whose values are not known.
    Unknown,
}

impl QueryPool {
    /// Takes the facts from the creation of a pool.
    ///
    /// # Safety
    /// The structures are the program's, during its call.
    pub unsafe fn from_info(info: &vk::QueryPoolCreateInfo<'_>) -> QueryPool {
        use vk::QueryType as Kind;
        match info.query_type {
            Kind::PIPELINE_STATISTICS => {
                let statistics = info.pipeline_statistics.as_raw().count_ones();
                QueryPool::Integers(statistics.into())
            }
            // The numbers of primitives that were written, and that were needed.
            Kind::TRANSFORM_FEEDBACK_STREAM_EXT => QueryPool::Integers(2),
            Kind::PERFORMANCE_QUERY_KHR => {
                let kind = vk::StructureType::QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR;
                // SAFETY: as the caller promises.
                let counters = unsafe {
                    arguments::find::<vk::QueryPoolPerformanceCreateInfoKHR<'_>>(info.p_next, kind)
                };
                counters.map_or(QueryPool::Unknown, |counters| {
                    QueryPool::Counters(counters.counter_index_count.into())
                })
            }
            Kind::OCCLUSION
            | Kind::TIMESTAMP
            | Kind::PRIMITIVES_GENERATED_EXT
            | Kind::MESH_PRIMITIVES_GENERATED_EXT
            | Kind::ACCELERATION_STRUCTURE_COMPACTED_SIZE_KHR
            | Kind::ACCELERATION_STRUCTURE_SERIALIZATION_SIZE_KHR
            | Kind::ACCELERATION_STRUCTURE_SERIALIZATION_BOTTOM_LEVEL_POINTERS_KHR
            | Kind::ACCELERATION_STRUCTURE_SIZE_KHR => QueryPool::Integers(1),
            _ => QueryPool::Unknown,
        }
    }

    /// Returns the length of the range that the results of `count` queries, each `stride` bytes after the one before,
    /// lie in; `None` where it is not known.
    pub fn copied_bytes(self, count: u32, stride: u64, flags: vk::QueryResultFlags) -> Option<u64> {
        let with_state = flags.intersects(vk::QueryResultFlags::WITH_AVAILABILITY | WITH_STATUS);
        let integer_bytes = match flags.contains(vk::QueryResultFlags::TYPE_64) {
            true => 8,
            false => 4,
        };
        let last = match self {
            QueryPool::Integers(values) => (values + u64::from(with_state)) * integer_bytes,
            QueryPool::Counters(values) => values * COUNTER_BYTES,
            QueryPool::Unknown => return None,
        };
        let before = count.checked_sub(1).map(u64::from);
        Some(before.map_or(0, |before| {
            stride.saturating_mul(before).saturating_add(last)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vk::{QueryPipelineStatisticFlags as Statistics, QueryResultFlags as Flags, QueryType};

    #[test]
    fn the_range_of_copied_results_holds_all_values_of_the_last_query() {
        let info = |kind| vk::QueryPoolCreateInfo::default().query_type(kind);
        let statistics = Statistics::COMPUTE_SHADER_INVOCATIONS
            | Statistics::CLIPPING_INVOCATIONS
            | Statistics::VERTEX_SHADER_INVOCATIONS;
        let mut counters =
            vk::QueryPoolPerformanceCreateInfoKHR::default().counter_indices(&[4, 5, 6]);
        let of_counters = info(QueryType::PERFORMANCE_QUERY_KHR).push_next(&mut counters);
        let of_statistics = info(QueryType::PIPELINE_STATISTICS).pipeline_statistics(statistics);
        let with_state = Flags::TYPE_64 | Flags::WITH_AVAILABILITY;
        for (info, flags, count, stride, bytes) in [
            (info(QueryType::TIMESTAMP), Flags::TYPE_64, 2, 8, Some(16)),
            (info(QueryType::TIMESTAMP), Flags::empty(), 1, 0, Some(4)),
            (info(QueryType::OCCLUSION), with_state, 3, 64, Some(144)),
            (of_statistics, Flags::TYPE_64, 1, 0, Some(24)),
            (of_statistics, with_state, 2, 32, Some(64)),
            (of_statistics, Flags::WAIT, 2, 12, Some(24)),
            (of_counters, Flags::WAIT, 2, 24, Some(48)),
            (
                info(QueryType::PERFORMANCE_QUERY_INTEL),
                Flags::empty(),
                1,
                0,
                None,
            ),
            (info(QueryType::TIMESTAMP), Flags::TYPE_64, 0, 8, Some(0)),
            (
                info(QueryType::TIMESTAMP),
                Flags::TYPE_64,
                3,
                u64::MAX,
                Some(u64::MAX),
            ),
        ] {
            // SAFETY: the structures are those above.
            let pool = unsafe { QueryPool::from_info(&info) };
            assert_eq!(
                pool.copied_bytes(count, stride, flags),
                bytes,
                "{pool:?} {flags:?}"
            );
        }
    }
}
