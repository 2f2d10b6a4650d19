//! A request and its bytes. It joins pieces that were encoded before; it never encodes a message itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use convoke_kernel::{Feature, OLD_VERSION, Segment};
use http_body::{Body, Frame, SizeHint};

/// One request to `/v1/messages`, made of segments. It is always streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The model's id.
    pub model: String,
    /// The most output tokens the reply may have.
    pub max_tokens: u32,
    /// The other top-level members, in the order they are sent: `thinking`, `output_config`, `metadata`…
    pub params: Vec<(String, Segment)>,
    /// The `tools` array.
    pub tools: Option<Segment>,
    /// The `system` text or blocks.
    pub system: Option<Segment>,
    /// The messages, each one an encoded object.
    pub messages: Vec<Segment>,
    /// The `anthropic-version` to send instead of the client's own.
    pub version: Option<&'static str>,
}

impl Request {
    /// A request with nothing but messages.
    pub fn new(model: impl Into<String>, max_tokens: u32, messages: Vec<Segment>) -> Self {
        Self {
            model: model.into(),
            max_tokens,
            params: Vec::new(),
            tools: None,
            system: None,
            messages,
            version: None,
        }
    }

    /// The body, as a list of shared pieces: its cost grows with the number of segments, not with their
    /// bytes.
    pub fn body(&self) -> RequestBody {
        let mut pieces = Vec::with_capacity(2 * (self.messages.len() + self.params.len()) + 6);
        let mut own =
            format!(r#"{{"model":{},"max_tokens":{},"stream":true"#, quoted(&self.model), self.max_tokens);
        let members = self.params.iter().map(|(name, segment)| (name.as_str(), segment));
        let members = members.chain(self.tools.as_ref().map(|tools| ("tools", tools)));
        let members = members.chain(self.system.as_ref().map(|system| ("system", system)));
        for (name, segment) in members {
            own.push(',');
            own.push_str(&quoted(name));
            own.push(':');
            pieces.push(Piece::Own(std::mem::take(&mut own)));
            pieces.push(Piece::Shared(segment.shared()));
        }
        own.push_str(r#","messages":["#);
        pieces.push(Piece::Own(own));
        for (index, message) in self.messages.iter().enumerate() {
            if index > 0 {
                pieces.push(Piece::Mark(","));
            }
            pieces.push(Piece::Shared(message.shared()));
        }
        pieces.push(Piece::Mark("]}"));
        let left = pieces.iter().map(|piece| piece.as_str().len() as u64).sum();
        RequestBody { pieces, next: 0, left }
    }

    /// Whether it carries this part, sent by a client whose own `anthropic-version` is this one.
    pub(crate) fn carries(&self, part: Feature, version: &str) -> bool {
        let member = |name: &str| self.params.iter().any(|(member, _)| member == name);
        match part {
            Feature::CacheMarks => {
                // In a text of the segment the quotes would be escaped.
                let marked = |segment: &Segment| segment.as_str().contains(r#""cache_control":{"#);
                let parts = self.system.iter().chain(&self.tools).chain(&self.messages);
                member("cache_control") || parts.into_iter().any(marked)
            }
            Feature::Thinking => member("thinking"),
            Feature::Effort => member("output_config"),
            Feature::SystemRole => {
                self.messages.iter().any(|message| message.as_str().starts_with(r#"{"role":"system","#))
            }
            Feature::Version => self.version.unwrap_or(version) != OLD_VERSION,
        }
    }

    /// The body in one piece, for tests and logs.
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = self.body();
        body.pieces.iter().flat_map(|piece| piece.as_str().bytes()).collect()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A run of bytes of a body.
#[derive(Debug)]
enum Piece {
    Own(String),
    Shared(Arc<str>),
    Mark(&'static str),
}

impl Piece {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(text) => text,
            Self::Shared(text) => text,
            Self::Mark(text) => text,
        }
    }
}

/// Lends the bytes of a segment to the socket.
struct Lent(Arc<str>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Pieces shorter than this are gathered, because a system call per comma would cost more than copying them.
const SMALL: usize = 16 * 1024;

/// Gathered pieces are handed over once they are this long.
const GATHERED: usize = 64 * 1024;

/// The bytes of a [`Request`], of known length, so that they are sent with `Content-Length`.
#[derive(Debug)]
pub struct RequestBody {
    pieces: Vec<Piece>,
    next: usize,
    left: u64,
}

impl RequestBody {
    /// How many bytes are still to be sent.
    pub fn len(&self) -> u64 {
        self.left
    }

    /// Whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    fn chunk(&mut self) -> Option<Bytes> {
        let first = self.pieces.get(self.next)?;
        if let Piece::Shared(text) = first
            && text.len() >= SMALL
        {
            self.next += 1;
            return Some(Bytes::from_owner(Lent(Arc::clone(text))));
        }
        let mut gathered = BytesMut::with_capacity(SMALL.min(self.left as usize));
        while let Some(piece) = self.pieces.get(self.next) {
            let text = piece.as_str();
            if text.len() >= SMALL && !gathered.is_empty() || gathered.len() >= GATHERED {
                break;
            }
            gathered.extend_from_slice(text.as_bytes());
            self.next += 1;
        }
        Some(gathered.freeze())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.chunk();
        self.left -= chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.next == self.pieces.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
