//! Converts PyTorch's descriptions of collectives (operations of several ranks, such as an all-reduce) to the
//! payloads that NCCL's own ranges have, which analyses read.

use super::json::{self, bare, members};
use super::number::whole;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// The domain of NCCL's ranges.
pub(super) const DOMAIN: &str = "NCCL";

/// Returns the payload of a kernel's collective from the arguments of its event: texts `KEY=VALUE` with a comma
/// between them, NCCL's communicator and message size first and PyTorch's after them.
pub(super) fn payload(args: &[u8]) -> String {
    let mut fields = Vec::new();
    let (mut name, mut dtype) = ("", "");
    let (mut received, mut sent, mut size) = (None, None, None);
    let (mut source, mut target) = (None, None);
    let mut group: (&[u8], &[u8]) = (b"", b"");
    for (key, value) in members(args) {
        let count = || whole(value).and_then(|n| u64::try_from(n).ok());
        match key {
            b"Collective name" => name = std::str::from_utf8(bare(value)).unwrap_or_default(),
            b"dtype" => dtype = std::str::from_utf8(bare(value)).unwrap_or_default(),
            b"In msg nelems" => sent = count(),
            b"Out msg nelems" => received = count(),
            b"Group size" => size = count(),
            b"Src Rank" => source = count(),
            b"Dst Rank" => target = count(),
            b"Process Group Name" => group.0 = bare(value),
            b"Process Group Ranks" => group.1 = bare(value),
            b"Rank"
            | b"Process Group Description"
            | b"Seq"
            | b"Comms Id"
            | b"In split size"
            | b"Out split size" => {}
            _ => continue,
        }
        let text = json::text(bare(value)).replace(", ", ",");
        fields.push(format!("{}={text}", json::text(key)));
    }
    // PyTorch names the other rank of a message by its number in the group, as NCCL does.
    let peer = match function(name) {
        Some("ncclSend") => target,
        Some("ncclRecv") => source,
        _ => None,
    };
    if let Some(peer) = peer {
        fields.push(format!("Peer rank={peer}"));
    }
    let mut payload = String::new();
    if !group.0.is_empty() || !group.1.is_empty() {
        // Ranks of one group agree on this number.
        let mut hasher = FxHasher::default();
        hasher.write(group.0);
        hasher.write(
            &group
                .1
                .iter()
                .filter(|b| **b != b' ')
                .copied()
                .collect::<Vec<u8>>(),
        );
        payload.push_str(&format!(
            "NCCL communicator ID={}, ",
            hasher.finish().max(1)
        ));
    }
    // NCCL counts the message size of one rank.
    let elements = match function(name) {
        Some("ncclReduceScatter") => received,
        Some("ncclAllToAll") => sent
            .zip(size)
            .and_then(|(all, ranks)| all.checked_div(ranks)),
        _ => sent,
    };
    if let Some(bytes) = elements
        .zip(bytes_of(dtype))
        .map(|(n, b)| n.saturating_mul(b))
    {
        payload.push_str(&format!("Message size [bytes]={bytes}, "));
    }
    payload.push_str(&fields.join(", "));
    payload
}

/// Returns the NCCL function for PyTorch's name of a collective: `allreduce`, `_allgather_base`, `all_to_allv`;
/// `None` for other names. Only the beginning of the name counts, without underscores.
pub(super) fn function(name: &str) -> Option<&'static str> {
    let word: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let starts = |with: &str| word.starts_with(with);
    Some(match () {
        () if starts("allreduce") || starts("barrier") => "ncclAllReduce",
        () if starts("allgather") => "ncclAllGather",
        () if starts("reducescatter") => "ncclReduceScatter",
        () if starts("alltoall") => "ncclAllToAll",
        () if starts("broadcast") => "ncclBroadcast",
        () if starts("reduce") => "ncclReduce",
        () if starts("gather") => "ncclGather",
        () if starts("scatter") => "ncclScatter",
        () if starts("send") => "ncclSend",
        () if starts("recv") => "ncclRecv",
        () => return None,
    })
}

/// Returns the name of the NCCL function in a payload; `None` if there is none.
pub(super) fn function_of_payload(payload: &str) -> Option<&'static str> {
    let (_, rest) = payload.split_once("Collective name=")?;
    function(rest.split(", ").next()?)
}

/// Returns the bytes of an element by PyTorch's name of its type; `None` for other names.
fn bytes_of(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "Byte" | "Char" | "Bool" | "QInt8" | "QUInt8" => 1,
        "Short" | "Half" | "BFloat16" | "UInt16" => 2,
        "Int" | "Float" | "UInt32" | "ComplexHalf" => 4,
        "Long" | "Double" | "UInt64" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        other if other.starts_with("Float8") => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_told_in_words_of_nccl() {
        let args = br#"{"Collective name": "_allgather_base", "In msg nelems": 1024, "Out msg nelems": 8192, "Group size": 8, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]", "stream": 20}"#;
        let payload = payload(args);
        assert!(payload.contains("Message size [bytes]=2048, "), "{payload}");
        assert!(payload.contains("Process Group Ranks=[0,1,2]"), "{payload}");
        assert!(payload.starts_with("NCCL communicator ID="), "{payload}");
        assert_eq!(function_of_payload(&payload), Some("ncclAllGather"));
        assert_eq!(function("all_to_allv"), Some("ncclAllToAll"));
        assert_eq!(function("wait"), None);
    }
}
