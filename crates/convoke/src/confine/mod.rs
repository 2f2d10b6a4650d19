//! What holds the commands of a run: which places they must not see, what of the machine's layers holds, and what is
//! refused before anything begins. `convoke-sandbox` does the holding; the choice is a person's.

mod guard;
mod hold;
mod own_files;
mod places;
mod table;
mod words;

pub(crate) use guard::{check_places, lies_inside};
pub(crate) use hold::{hold, hold_again, layers, sight};
pub(crate) use table::VARIABLES;
pub(crate) use words::{layers_words, network_words, weaker_line, weaker_names};
