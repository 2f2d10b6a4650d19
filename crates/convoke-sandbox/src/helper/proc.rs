//! Short texts in which the kernel describes a process, each read by one call. The standard library asks for
//! a size first, which is told as nothing, and then reads with a small room that it doubles: nine calls, for
//! texts that are read a few dozen times for each command.

use std::fs::File;
use std::io::{self, Read};

use crate::sys::Pid;

/// Larger than any text of one line that is read here.
const ROOM: usize = 4096;

/// A file of one line about a process or a thread, such as `stat`.
pub(crate) fn line(pid: Pid, name: &str) -> io::Result<String> {
    let mut text = [0; ROOM];
    let count = File::open(format!("/proc/{pid}/{name}"))?.read(&mut text)?;
    // A name of a process may hold any bytes; what is looked for stands behind it.
    Ok(String::from_utf8_lossy(&text[..count]).into_owned())
}
