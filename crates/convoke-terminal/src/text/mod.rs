//! Text on its way to a terminal: made harmless, measured, coloured, broken into rows.

mod flow;
mod highlight;
mod markdown;
mod marked;
mod measure;
mod theme;

pub(crate) use convoke_view::{count, dollars, first_line, revealed, seconds, shown, tokens};
pub(crate) use flow::hung;
pub(crate) use markdown::markdown;
pub use markdown::rendered;
pub use marked::marked;
pub(crate) use measure::cut;
pub use measure::{broken, hanging, last_rows, text_columns, wrapped};
pub use theme::{Theme, Tone};
