//! Parses dates of the table of contents: `2026-09-25T02:18:16.751+03:00`.

use chrono::DateTime;

/// Parses an ISO 8601 date with an offset or `Z`, and returns nanoseconds since 1970; `None` for other texts and
/// earlier dates.
pub(crate) fn unix_ns(text: &str) -> Option<i64> {
    let date = DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%#z").ok()?;
    date.timestamp_nanos_opt().filter(|ns| *ns >= 0)
}

#[cfg(test)]
mod tests {
    use super::unix_ns;

    // The expected values are those of GNU date: `date -d TEXT +%s%N`.
    #[test]
    fn dates_are_placed_on_the_wall_clock() {
        assert_eq!(
            unix_ns("2026-09-25T02:18:16.751+03:00"),
            Some(1_790_291_896_751_000_000)
        );
        assert_eq!(unix_ns("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            unix_ns("2024-02-29T12:00:00.5-0800"),
            Some(1_709_236_800_500_000_000)
        );
    }

    #[test]
    fn what_is_not_a_date_is_unknown() {
        for text in [
            "",
            "2026",
            "2026-13-01T00:00:00Z",
            "2026-09-25T02:18:16",
            "2026-09-25T02:18:16.x+03:00",
            "1-1-1T1:1:1Z",
        ] {
            assert_eq!(unix_ns(text), None, "{text}");
        }
    }
}
