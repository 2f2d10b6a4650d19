//! What holds the commands of a session: which places they must not see, what of the machine's layers holds,
//! and what is refused before anything begins. `convoke-sandbox` does the holding; the choice is a person's.

mod describe;
mod guard;
mod hold;

pub(crate) use describe::{layers_words, network_words, weaker_line, weaker_names};
pub(crate) use guard::check_places;
pub(crate) use hold::{Probing, hold, hold_again, layers, sight};
