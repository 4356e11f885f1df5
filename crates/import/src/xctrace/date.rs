//! Dates as the table of contents writes them: `2026-09-25T02:18:16.751+03:00`.

/// Nanoseconds since 1970 of an ISO 8601 date with an offset or `Z`.
pub(crate) fn unix_ns(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = time.find(['Z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let mut clock = clock.splitn(3, ':');
    let hour: i64 = clock.next()?.parse().ok()?;
    let minute: i64 = clock.next()?.parse().ok()?;
    let (second, fraction) = match clock.next()?.split_once('.') {
        Some(parts) => parts,
        None => (text_second(text)?, ""),
    };
    let second: i64 = second.parse().ok()?;
    let fraction: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let fraction: i64 = fraction.parse().ok()?;
    let offset_s = match zone.split_at_checked(1)? {
        ("Z", "") => 0,
        (sign, offset) => {
            let (hours, minutes) = match offset.split_once(':') {
                Some(parts) => parts,
                None => offset.split_at_checked(2)?,
            };
            let seconds = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
            if sign == "-" { -seconds } else { seconds }
        }
    };
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && offset_s.abs() < 86_400;
    if !in_range {
        return None;
    }
    let seconds =
        days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// The seconds of a time without a fraction.
fn text_second(text: &str) -> Option<&str> {
    let time = text.split_once('T')?.1;
    let zone = time.find(['Z', '+', '-'])?;
    time[..zone].rsplit(':').next()
}

/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
    fn what_is_no_date_is_unknown() {
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
