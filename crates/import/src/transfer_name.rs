//! What a transfer does, by the name that a profiler gives it.

use gapscope_trace::tables::TransferKind;

/// The kind of a piece of GPU work that is known to be a transfer.
pub(crate) fn kind(name: &str) -> TransferKind {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let has = |texts: &[&str]| texts.iter().any(|text| plain.contains(text));
    if has(&["memset", "fill"]) {
        TransferKind::Fill
    } else if has(&["htod", "h2d", "hosttodevice"]) {
        TransferKind::HostToDevice
    } else if has(&["dtoh", "d2h", "devicetohost"]) {
        TransferKind::DeviceToHost
    } else if has(&["ptop", "p2p", "peertopeer"]) {
        TransferKind::PeerToPeer
    } else if has(&["htoh", "h2h", "hosttohost"]) {
        TransferKind::HostToHost
    } else if has(&["dtod", "d2d", "devicetodevice"]) {
        TransferKind::Copy
    } else {
        TransferKind::of(name)
    }
}

/// Whether work is a transfer, where only its name can tell: the names that CUPTI and ROCm give, no kernel's.
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
            ("MemcpyOther", TransferKind::Unknown),
        ] {
            assert!(is_transfer(name), "{name}");
            assert_eq!(kind(name), expected, "{name}");
        }
        assert!(!is_transfer("copy_kernel"));
        assert!(!is_transfer("Memcpy_kernel<float>"));
        assert_eq!(kind("copy-image"), TransferKind::CopyImage);
    }
}
