//! Behaviour of the client and its tables, seen from outside.

#[cfg(test)]
mod content;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tables;
