//! Numbers and names as people read them. It rounds for the eye only; data formats carry the exact figures.

use std::time::Duration;

use convoke_kernel::FailureKind;

/// `950`, `12.3k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..999_950 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// `$0.04`, `$0.0012`, or that the price is not known.
pub fn dollars(nano: Option<u64>) -> String {
    match nano {
        None => "price unknown".to_owned(),
        Some(0) => "$0.00".to_owned(),
        Some(nano) if nano < 10_000_000 => format!("${:.4}", nano as f64 / 1e9),
        Some(nano) => format!("${:.2}", nano as f64 / 1e9),
    }
}

/// A time span in the unit that says it best, rounded down: `12 s`, `5 min`, `2 h`, `3 d`.
pub fn age(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `0.2 s`, `12 s`, `3 min 5 s`.
pub fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{whole} s"),
        _ => format!("{} min {} s", whole / 60, whole % 60),
    }
}

/// `1 turn`, `3 turns`.
pub fn count(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A kind of failure as programs read it.
pub fn kind_word(kind: FailureKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "internal".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(
            ["999", "1.0k", "12.3k", "1.0M"],
            [999, 1_000, 12_345, 999_990].map(tokens).each_ref().map(String::as_str)
        );
        assert_eq!(dollars(Some(41_200_000)), "$0.04");
        assert_eq!(dollars(Some(1_234_000)), "$0.0012");
        assert_eq!(dollars(Some(0)), "$0.00");
        assert_eq!(dollars(None), "price unknown");
        assert_eq!(seconds(Duration::from_millis(240)), "0.2 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 5 s");
        assert_eq!(count(1, "turn"), "1 turn");
        assert_eq!(count(0, "turn"), "0 turns");
    }
}
