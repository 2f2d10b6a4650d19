//! Files as text and back: encodings and byte-order marks. Pure. What is not touched comes back byte for
//! byte.

/// What the bytes of a file are.
#[derive(Debug)]
pub(crate) enum Content {
    Text(Text),
    /// No text; with a word for what it looks like.
    Binary(&'static str),
}

/// A text, in a form that can be searched and cut as bytes of UTF-8.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) encoding: Encoding,
    /// Whether the file begins with a byte-order mark, which is no part of `body`.
    pub(crate) marked: bool,
    /// UTF-8; for [`Encoding::Mixed`] the bytes of the file as they are.
    pub(crate) body: Vec<u8>,
}

/// How a file encodes its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// Not UTF-8, and nothing in it looks like it: every byte is one character.
    Latin1,
    /// Not UTF-8 everywhere, but somewhere: bytes are left alone.
    Mixed,
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_LE_MARK: &[u8] = b"\xff\xfe";
const UTF16_BE_MARK: &[u8] = b"\xfe\xff";
const UTF32_LE_MARK: &[u8] = b"\xff\xfe\0\0";

/// Reads a file's bytes as text.
pub(crate) fn content(bytes: Vec<u8>) -> Content {
    if let Some(kind) = known(&bytes) {
        return Content::Binary(kind);
    }
    if !bytes.starts_with(UTF32_LE_MARK) {
        for (mark, encoding) in [(UTF16_LE_MARK, Encoding::Utf16Le), (UTF16_BE_MARK, Encoding::Utf16Be)] {
            if let Some(rest) = bytes.strip_prefix(mark) {
                return match from_utf16(rest, encoding) {
                    Some(body) => Content::Text(Text { encoding, marked: true, body }),
                    None => Content::Binary("a file marked as UTF-16 that is not valid UTF-16"),
                };
            }
        }
    }
    if memchr::memchr(0, &bytes).is_some() {
        return Content::Binary("a binary file");
    }
    let marked = bytes.starts_with(UTF8_MARK);
    let body = if marked { bytes[UTF8_MARK.len()..].to_vec() } else { bytes };
    let encoding = if std::str::from_utf8(&body).is_ok() {
        Encoding::Utf8
    } else if marked || body.utf8_chunks().any(|chunk| !chunk.valid().is_ascii()) {
        Encoding::Mixed
    } else {
        let text: String = body.iter().map(|byte| char::from(*byte)).collect();
        return Content::Text(Text { encoding: Encoding::Latin1, marked, body: text.into_bytes() });
    };
    Content::Text(Text { encoding, marked, body })
}

/// Whether the first bytes of a file are those of no text.
pub(crate) fn binary_head(head: &[u8]) -> Option<&'static str> {
    known(head).or_else(|| {
        let wide = head.starts_with(UTF16_LE_MARK) || head.starts_with(UTF16_BE_MARK);
        if wide { Some("a large file in UTF-16") } else { memchr::memchr(0, head).map(|_| "a binary file") }
    })
}

impl Text {
    /// The file's bytes again, or the first character that its encoding cannot write.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, char> {
        let mut bytes = Vec::with_capacity(self.body.len() + 3);
        match self.encoding {
            Encoding::Utf8 | Encoding::Mixed => {
                if self.marked {
                    bytes.extend_from_slice(UTF8_MARK);
                }
                bytes.extend_from_slice(&self.body);
            }
            Encoding::Utf16Le => {
                bytes.extend_from_slice(UTF16_LE_MARK);
                bytes.extend(String::from_utf8_lossy(&self.body).encode_utf16().flat_map(u16::to_le_bytes));
            }
            Encoding::Utf16Be => {
                bytes.extend_from_slice(UTF16_BE_MARK);
                bytes.extend(String::from_utf8_lossy(&self.body).encode_utf16().flat_map(u16::to_be_bytes));
            }
            Encoding::Latin1 => {
                for character in String::from_utf8_lossy(&self.body).chars() {
                    bytes.push(u8::try_from(u32::from(character)).map_err(|_| character)?);
                }
            }
        }
        Ok(bytes)
    }

    /// A word about the encoding, where it is not the usual one.
    pub(crate) fn encoding_note(&self) -> Option<&'static str> {
        match self.encoding {
            Encoding::Utf8 if self.marked => Some("UTF-8 with a byte-order mark"),
            Encoding::Utf8 => None,
            Encoding::Utf16Le => Some("UTF-16, little-endian"),
            Encoding::Utf16Be => Some("UTF-16, big-endian"),
            Encoding::Latin1 => Some("not UTF-8; read as Latin-1"),
            Encoding::Mixed => {
                Some("not UTF-8 everywhere; other bytes are shown as \\xNN and stay as they are")
            }
        }
    }
}

fn from_utf16(bytes: &[u8], encoding: Encoding) -> Option<Vec<u8>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let unit = |pair: &[u8; 2]| match encoding {
        Encoding::Utf16Be => u16::from_be_bytes(*pair),
        _ => u16::from_le_bytes(*pair),
    };
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(unit)).collect();
    text.ok().filter(|_| rest.is_empty()).map(String::into_bytes)
}

/// The kinds of binary files a model is likely to meet, by their first bytes.
fn known(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 9] = [
        (b"\x89PNG\r\n\x1a\n", "an image (PNG)"),
        (b"\xff\xd8\xff", "an image (JPEG)"),
        (b"GIF87a", "an image (GIF)"),
        (b"GIF89a", "an image (GIF)"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "an archive (zip)"),
        (b"\x1f\x8b", "compressed data (gzip)"),
        (b"\x7fELF", "a program (ELF)"),
        (b"SQLite format 3\0", "a database (SQLite)"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("an image (WebP)");
    }
    KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], encoding: Encoding, marked: bool, body: &str) {
        let Content::Text(text) = content(bytes.to_vec()) else { panic!("{bytes:?} is text") };
        assert_eq!((text.encoding, text.marked, show(&text)), (encoding, marked, body.to_owned()));
        assert_eq!(text.bytes().unwrap(), bytes);
    }

    fn show(text: &Text) -> String {
        crate::show::readable(&text.body)
    }

    #[test]
    fn every_encoding_is_recognised_and_comes_back_byte_for_byte() {
        check("grüße\n".as_bytes(), Encoding::Utf8, false, "grüße\n");
        check(b"\xef\xbb\xbfa\r\n", Encoding::Utf8, true, "a\r\n");
        check(b"\xff\xfea\0\n\0=\xd8\0\xde", Encoding::Utf16Le, true, "a\n😀");
        check(b"\xfe\xff\0a\0\n", Encoding::Utf16Be, true, "a\n");
        check(b"caf\xe9\n", Encoding::Latin1, false, "café\n");
        check(b"caf\xe9 \xc3\xa9\n", Encoding::Mixed, false, "caf\\xE9 é\n");
    }

    #[test]
    fn what_is_no_text_is_named() {
        let kind = |bytes: &[u8]| match content(bytes.to_vec()) {
            Content::Binary(kind) => kind,
            Content::Text(_) => "text",
        };
        assert_eq!(kind(b"\x89PNG\r\n\x1a\nrest"), "an image (PNG)");
        assert_eq!(kind(b"a\0b"), "a binary file");
        assert_eq!(kind(b"\xff\xfea"), "a file marked as UTF-16 that is not valid UTF-16");
        assert_eq!(kind(b"\xff\xfe\x00\xd8"), "a file marked as UTF-16 that is not valid UTF-16");
        assert_eq!(kind(b"\xff\xfe\0\0a\0\0\0"), "a binary file");
    }

    #[test]
    fn bytes_of_any_kind_come_back_as_they_were() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..2_000 {
            let mut bytes = Vec::new();
            for _ in 0..round % 40 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let alphabet: &[u8] =
                    if round % 3 == 0 { b"a\r\n\xe9\xff" } else { b"a\r\n\xc3\xa9\xef\xbb\xbf\xfe\xff" };
                bytes.push(alphabet[(seed >> 32) as usize % alphabet.len()]);
            }
            if let Content::Text(text) = content(bytes.clone()) {
                assert_eq!(text.bytes().unwrap(), bytes);
            }
        }
    }
}
