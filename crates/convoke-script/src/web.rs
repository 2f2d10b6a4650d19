//! Takes addresses and queries apart for the program's `URL`. It parses text and looks nothing up.

use url::{Url, form_urlencoded, quirks};

/// The parts of an address as a JSON array, in the order the prelude reads them; `None` if it is none.
pub(crate) fn url(text: &str, base: Option<&str>) -> Option<String> {
    let parsed = match base {
        Some(base) => Url::parse(base).ok()?.join(text).ok()?,
        None => Url::parse(text).ok()?,
    };
    parts(&parsed)
}

/// The parts after one of them was set. What the standard ignores changes nothing; only a bad `href` is
/// refused.
pub(crate) fn set_url(href: &str, part: &str, value: &str) -> Option<String> {
    let mut url = Url::parse(href).ok()?;
    // A part that cannot be set so stays as it was, without a word.
    let _ = match part {
        "href" => return self::url(value, None),
        "protocol" => quirks::set_protocol(&mut url, value),
        "username" => quirks::set_username(&mut url, value),
        "password" => quirks::set_password(&mut url, value),
        "host" => quirks::set_host(&mut url, value),
        "hostname" => quirks::set_hostname(&mut url, value),
        "port" => quirks::set_port(&mut url, value),
        "pathname" => {
            quirks::set_pathname(&mut url, value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, value);
            Ok(())
        }
        _ => Err(()),
    };
    parts(&url)
}

/// A query's pairs as JSON.
pub(crate) fn query(text: &str) -> String {
    let text = text.strip_prefix('?').unwrap_or(text);
    let pairs: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
    serde_json::to_string(&pairs).unwrap_or_else(|_| "[]".to_owned())
}

/// The query of pairs.
pub(crate) fn write_query(pairs: &str) -> String {
    let pairs: Vec<(String, String)> = serde_json::from_str(pairs).unwrap_or_default();
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn parts(url: &Url) -> Option<String> {
    let origin = quirks::origin(url);
    let parts = [
        quirks::href(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
        &origin,
    ];
    serde_json::to_string(&parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(part: &str, value: &str, expected: &str) {
        let parts = set_url("https://u:p@a.example:8080/x/y?q=1#h", part, value).expect("parts");
        let parts: Vec<String> = serde_json::from_str(&parts).expect("JSON");
        assert_eq!(parts[0], expected, "{part} = {value}");
    }

    #[test]
    fn parts_of_an_address_are_set_as_the_standard_says() {
        check("hash", "", "https://u:p@a.example:8080/x/y?q=1");
        check("search", "?b=2", "https://u:p@a.example:8080/x/y?b=2#h");
        check("port", "443", "https://u:p@a.example/x/y?q=1#h");
        check("hostname", "b.example", "https://u:p@b.example:8080/x/y?q=1#h");
        check("port", "nonsense", "https://u:p@a.example:8080/x/y?q=1#h");
        assert_eq!(set_url("https://a.example", "href", "nonsense"), None);
        assert_eq!(url("/z", Some("nonsense")), None);
    }
}
