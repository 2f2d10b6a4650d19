//! Live text: what is told of a reply while it is being written. It is no event; it is never stored and never
//! folded into a state.

/// A piece of a reply that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The model has begun to answer.
    Began,
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A tool call begins.
    Tool {
        /// The tool that is meant.
        name: String,
    },
}
