//! Draws a session and all its agents on a terminal, from the events that the journal records. It decides
//! nothing and does nothing: it is told what has happened ([`SessionEvent`](convoke_view::SessionEvent),
//! [`ScreenUpdate`]), draws what `convoke-view` folds of it, and says what the person wants ([`UserAction`]).
//!
//! It uses the kernel for its words and the view for its fold and nothing else of Convoke, so that no picture
//! can be drawn from anything but events: neither the runtime nor the journal can be reached from here.

mod app;
mod composer;
mod plain;
mod question;
mod screen;
mod screen_update;
mod stage;
mod status;
mod text;
mod transcript;
mod user_action;
mod view;

pub use composer::{COMMANDS, CommandRow, Given, command_help, nearest_command};
pub use screen::{Drawn, Ends, Opens, Screen, ScreenOptions, run};
pub use screen_update::{About, Asking, Candidate, Facts, ScreenUpdate};
pub use stage::{GUARD_ARGUMENT, guard_entry};
pub use text::{Theme, Tone, broken, hanging, last_rows, marked, rendered, text_columns, wrapped};
pub use user_action::{QuestionAnswer, UserAction};
