//! Reading bash's own listing of its exported variables (`declare -px`). It only reads: what the listing says
//! is the shell's word, which decides nothing but what the next shell begins with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Exported variables; values need not be text.
pub(crate) type Env = BTreeMap<OsString, OsString>;

/// The variables with a value. `None` if the listing breaks off or is none.
pub(super) fn parse(mut text: &[u8]) -> Option<Env> {
    let mut env = Env::new();
    while !text.is_empty() {
        let rest = text.strip_prefix(b"declare -")?;
        let space = rest.iter().position(|&byte| byte == b' ')?;
        let is_list = rest[..space].iter().any(|letter| b"aA".contains(letter));
        let rest = &rest[space + 1..];
        let end = rest.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_'))?;
        let name = &rest[..end];
        let (value, rest) = match rest[end..].strip_prefix(b"=") {
            // Lists are listed but not exported.
            Some(rest) if is_list => (None, &rest[rest.iter().position(|&byte| byte == b'\n')?..]),
            Some(rest) => unquote(rest).map(|(value, rest)| (Some(value), rest))?,
            None => (None, &rest[end..]),
        };
        if let Some(value) = value {
            env.insert(OsString::from_vec(name.to_vec()), OsString::from_vec(value));
        }
        text = rest.strip_prefix(b"\n")?;
    }
    Some(env)
}

/// One word in any of bash's quotes, and what follows it.
fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (opening, is_ansi) = match text {
        [b'"', ..] => (1, false),
        [b'$', b'\'', ..] => (2, true),
        // A word without anything special stands for itself.
        _ => {
            let end = text.iter().position(|&byte| byte == b'\n')?;
            return Some((text[..end].to_vec(), &text[end..]));
        }
    };
    let closing = if is_ansi { b'\'' } else { b'"' };
    let mut value = Vec::new();
    let mut at = opening;
    loop {
        match *text.get(at)? {
            byte if byte == closing => return Some((value, &text[at + 1..])),
            b'\\' if is_ansi => at += 1 + escape(&text[at + 1..], &mut value)?,
            b'\\' => {
                let next = *text.get(at + 1)?;
                if !b"\"\\$`\n".contains(&next) {
                    value.push(b'\\');
                }
                value.push(next);
                at += 2;
            }
            byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
}

/// What stands behind a backslash in `$'…'`; says how long it was.
fn escape(text: &[u8], value: &mut Vec<u8>) -> Option<usize> {
    let octal = text.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if octal > 0 {
        let number = u32::from_str_radix(std::str::from_utf8(&text[..octal]).ok()?, 8).ok()?;
        value.push((number & 0xff) as u8);
        return Some(octal);
    }
    value.push(match *text.first()? {
        b'a' => 7,
        b'b' => 8,
        b't' => 9,
        b'n' => 10,
        b'v' => 11,
        b'f' => 12,
        b'r' => 13,
        b'e' | b'E' => 27,
        other => other,
    });
    Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_exactly() {
        let text = b"declare -x A=\"1\"\ndeclare -irx B=$'x\\ny=\\'\\302\\200\\E'\ndeclare -x NONE\n\
            declare -ax list=([0]=\"x\")\ndeclare -x C=\"a\\\"b\\\\ \\$c \\` d\"\ndeclare -x D=\"\"\n";
        let env = parse(text).unwrap();
        let value = |name: &str| env.get(std::ffi::OsStr::new(name)).map(|value| value.clone().into_vec());
        assert_eq!(env.len(), 4, "{env:?}");
        assert_eq!(value("A"), Some(b"1".to_vec()));
        assert_eq!(value("B"), Some(b"x\ny='\xc2\x80\x1b".to_vec()));
        assert_eq!(value("C"), Some(b"a\"b\\ $c ` d".to_vec()));
        assert_eq!(value("D"), Some(Vec::new()));
    }

    #[test]
    fn what_breaks_off_or_is_something_else_is_no_listing() {
        let whole: &[u8] = b"declare -x A=\"1\"\n";
        assert_eq!(parse(whole).map(|env| env.len()), Some(1));
        for cut in 1..whole.len() {
            assert_eq!(parse(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(parse(b"hello\n"), None);
    }
}
