//! Returns the kind of a transfer, and the memory of its host end (pinned, pageable, …), from the names that
//! profilers give transfers.

use gapscope_trace::tables::{MemoryPlace, TransferKind};

/// Returns the kind of a transfer from its name: the first of the kinds below whose letters the name has, without
/// regard to signs between them; otherwise the kind that is spelled like it, or unknown.
pub(crate) fn kind(name: &str) -> TransferKind {
    if let Some(kind) = kind_by_ends(name) {
        return kind;
    }
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let has = |texts: &[&str]| texts.iter().any(|text| plain.contains(text));
    // An array lies in the device's memory. The comparison respects case because other words contain the same
    // letters.
    let has_array = |texts: &[&str]| texts.iter().any(|text| name.contains(text));
    if has(&["memset", "fill"]) {
        TransferKind::Fill
    } else if has(&["htod", "h2d", "hosttodevice"]) || has_array(&["HtoA"]) {
        TransferKind::HostToDevice
    } else if has(&["dtoh", "d2h", "devicetohost"]) || has_array(&["AtoH"]) {
        TransferKind::DeviceToHost
    } else if has(&["ptop", "p2p", "peertopeer"]) {
        TransferKind::PeerToPeer
    } else if has(&["htoh", "h2h", "hosttohost"]) {
        TransferKind::HostToHost
    } else if has(&["dtod", "d2d", "devicetodevice"]) || has_array(&["AtoA", "AtoD", "DtoA"]) {
        TransferKind::Copy
    } else {
        TransferKind::from_text_or_unknown(name)
    }
}

/// Returns the kind of a copy of an XPU, such as `Memcpy M2D (Memory -> Device)`, where an end is pageable memory of the
/// host (`M`), which PTI calls just memory, or memory that host and device share (`S`). Between memory of the host and shared
/// memory the kind is unknown, because shared memory lies on either side.
fn kind_by_ends(name: &str) -> Option<TransferKind> {
    let ends = name.strip_prefix("Memcpy ")?.split(' ').next()?;
    match ends {
        "M2D" | "S2D" => Some(TransferKind::HostToDevice),
        "D2M" | "D2S" => Some(TransferKind::DeviceToHost),
        "M2M" | "M2H" | "H2M" => Some(TransferKind::HostToHost),
        _ => None,
    }
}

/// Returns the memory of the host end if the transfer's name, such as `Memcpy HtoD (Pageable -> Device)`, tells it,
/// and the kind has such an end.
pub(crate) fn host_memory(name: &str, kind: TransferKind) -> Option<MemoryPlace> {
    let (_, ends) = name.split_once('(')?;
    let (from, to) = ends.trim_end_matches(')').split_once(" -> ")?;
    match kind {
        TransferKind::HostToDevice | TransferKind::HostToHost => place(from),
        TransferKind::DeviceToHost => place(to),
        _ => None,
    }
}

/// Returns the kind of host memory for a word of CUPTI or PTI in any case; `None` for other words.
pub(crate) fn place(word: &str) -> Option<MemoryPlace> {
    let places = [
        ("pageable", MemoryPlace::Pageable),
        ("pinned", MemoryPlace::Pinned),
        ("managed", MemoryPlace::Managed),
        ("memory", MemoryPlace::Pageable),
        ("shared", MemoryPlace::Managed),
    ];
    let mut places = places.into_iter();
    places.find_map(|(known, place)| known.eq_ignore_ascii_case(word).then_some(place))
}

/// Returns true if CUPTI or ROCm gives this name to transfers and not to kernels.
pub(crate) fn is_transfer(name: &str) -> bool {
    let starts = [
        "Memcpy ",
        "Memset ",
        "MemcpyH2D",
        "MemcpyD2H",
        "MemcpyD2D",
        "MemcpyP2P",
        "MemcpyOther",
        "MEMORY_COPY_",
        "CopyHostToDevice",
        "CopyDeviceToHost",
        "CopyDeviceToDevice",
        "CopyPeerToPeer",
    ];
    name == "Memcpy" || name == "Memset" || starts.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_known_by_the_names_that_profilers_give() {
        for (name, expected) in [
            (
                "Memcpy HtoD (Pageable -> Device)",
                TransferKind::HostToDevice,
            ),
            ("MEMORY_COPY_DEVICE_TO_HOST", TransferKind::DeviceToHost),
            ("MemcpyD2D", TransferKind::Copy),
            ("Memset (Device)", TransferKind::Fill),
            ("CopyDeviceToDevice", TransferKind::Copy),
            ("CopyHostToDevice", TransferKind::HostToDevice),
            ("Memcpy PtoP (Device -> Device)", TransferKind::PeerToPeer),
            ("Memcpy AtoH (Array -> Pinned)", TransferKind::DeviceToHost),
            ("Memcpy ? (? -> ?)", TransferKind::Unknown),
            ("MemcpyOther", TransferKind::Unknown),
            ("Memcpy M2D (Memory -> Device)", TransferKind::HostToDevice),
            ("Memcpy D2M (Device -> Memory)", TransferKind::DeviceToHost),
            ("Memcpy S2D (Shared -> Device)", TransferKind::HostToDevice),
            ("Memcpy D2S (Device -> Shared)", TransferKind::DeviceToHost),
            ("Memcpy M2M (Memory -> Memory)", TransferKind::HostToHost),
            ("Memcpy H2M (Host -> Memory)", TransferKind::HostToHost),
            ("Memcpy M2S (Memory -> Shared)", TransferKind::Unknown),
            ("Memcpy S2S (Shared -> Shared)", TransferKind::Unknown),
        ] {
            assert!(is_transfer(name), "{name}");
            assert_eq!(kind(name), expected, "{name}");
        }
        assert!(!is_transfer("copy_kernel"));
        assert!(!is_transfer("Memcpy_kernel<float>"));
        assert_eq!(kind("copy-image"), TransferKind::CopyImage);
    }
    #[test]
    fn the_hosts_memory_is_that_of_the_hosts_end() {
        for (name, expected) in [
            (
                "Memcpy HtoD (Pageable -> Device)",
                Some(MemoryPlace::Pageable),
            ),
            ("Memcpy DtoH (Device -> Pinned)", Some(MemoryPlace::Pinned)),
            ("Memcpy DtoD (Device -> Device)", None),
            ("Memcpy M2D (Memory -> Device)", Some(MemoryPlace::Pageable)),
            ("Memcpy D2M (Device -> Memory)", Some(MemoryPlace::Pageable)),
            ("Memcpy D2S (Device -> Shared)", Some(MemoryPlace::Managed)),
            ("Memcpy H2D (Host -> Device)", None),
            ("CopyHostToDevice", None),
            ("", None),
        ] {
            assert_eq!(host_memory(name, kind(name)), expected, "{name}");
        }
    }
}
