//! Which processes are there, from `/proc`. It only looks; it ends none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The processes that have one of these places in their arguments or their environment, with the time they
/// began.
pub(super) fn ours(tags: &[&Path]) -> BTreeMap<u32, u64> {
    let tags: Vec<&[u8]> = tags.iter().map(|tag| tag.as_os_str().as_encoded_bytes()).collect();
    let tagged = |file: PathBuf| {
        let text = std::fs::read(file).unwrap_or_default();
        tags.iter().any(|tag| text.windows(tag.len()).any(|part| part == *tag))
    };
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let found = pids
        .filter(|pid| ["cmdline", "environ"].iter().any(|file| tagged(format!("/proc/{pid}/{file}").into())));
    found.filter_map(|pid| Some((pid, started_at(pid)?))).collect()
}

/// When a process began, which tells it from a later one with the same id; none if it has ended.
pub(super) fn started_at(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    (!matches!(*fields.first()?, "Z" | "X")).then(|| fields.get(19)?.parse().ok())?
}

/// The arguments of a process, for a person.
pub(super) fn cmdline(pid: u32) -> String {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ")
}
