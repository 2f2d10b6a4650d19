//! Git's configuration files, read without git: what of a tree they name for git to run or to obey later, and
//! how much of a person's own settings commands may see. It reads regular files of a bounded size and writes
//! none.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest file that is read, and the most that are read for one repository.
const LARGEST: u64 = 1 << 20;
const FILES: usize = 64;

/// One line of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    /// Section and name in small letters, as `core.hookspath`; the subsection is not in it.
    key: String,
    /// What stands in quotes behind the section.
    subsection: Option<Vec<u8>>,
    value: Vec<u8>,
}

/// What of a directory the configuration of its repository names: where hooks are, and files that it
/// includes, by their real paths, also where nothing is yet. `home` is where the person's own settings are,
/// which may name hooks for all repositories.
pub(crate) fn named_in(dir: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut files: VecDeque<PathBuf> = home.into_iter().flat_map(of_person).collect();
    let mut top = dir;
    if let Some((found, git_dir)) = repository(dir) {
        top = found;
        let common =
            read(&git_dir.join("commondir")).map(|text| git_dir.join(OsStr::from_bytes(text.trim_ascii())));
        files.extend([common.as_ref().unwrap_or(&git_dir).join("config"), git_dir.join("config.worktree")]);
    }
    let mut named = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut add = |path: &Path| {
        let path = super::confine::look(path).path;
        if path.starts_with(dir) && path != dir {
            named.insert(path);
        }
    };
    while let Some(file) = files.pop_front() {
        if seen.len() >= FILES || !seen.insert(file.clone()) {
            continue;
        }
        for setting in parse(&read(&file).unwrap_or_default()) {
            let value = Path::new(OsStr::from_bytes(&setting.value));
            // Another person's home, or ours by its short name, is no part of a tree.
            if setting.value.is_empty() || setting.value.starts_with(b"~") {
                continue;
            }
            match setting.key.as_str() {
                "core.hookspath" => add(&top.join(value)),
                "include.path" | "includeif.path" => {
                    let included = file.parent().unwrap_or(Path::new("/")).join(value);
                    add(&included);
                    files.push_back(included);
                }
                _ => {}
            }
        }
    }
    named.into_iter().collect()
}

/// Where a person keeps their own settings.
fn of_person(home: &Path) -> [PathBuf; 2] {
    [home.join(".config/git/config"), home.join(".gitconfig")]
}

/// The top of the work tree that a directory lies in, and its git directory.
fn repository(dir: &Path) -> Option<(&Path, PathBuf)> {
    let top = dir.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())?;
    let git = top.join(".git");
    if git.is_dir() {
        return Some((top, git));
    }
    let text = read(&git)?;
    let to = text.strip_prefix(b"gitdir:")?.trim_ascii();
    Some((top, top.join(OsStr::from_bytes(to))))
}

/// Sections and names of a person's settings that say who they are and how git writes things down. Everything
/// else stays with them: what can hold a token (addresses, headers, helpers), what is run, and where other
/// files are.
const HARMLESS: &[&str] = &[
    "user.name",
    "user.email",
    "init.defaultbranch",
    "core.abbrev",
    "core.autocrlf",
    "core.commentchar",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.symlinks",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renames",
    "fetch.prune",
    "log.date",
    "merge.conflictstyle",
    "merge.ff",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "rebase.autosquash",
    "rebase.autostash",
    "rerere.enabled",
    "safe.directory",
    "status.short",
    "status.showuntrackedfiles",
    "tag.sort",
];

/// A person's settings without what commands must not see, in the form in which git reads them; nothing if
/// nothing is left.
pub(crate) fn reduced(home: &Path) -> Option<Vec<u8>> {
    let text = of_person(home).map(|file| harmless(&file)).concat();
    (!text.is_empty()).then_some(text)
}

/// The same of one file.
pub(crate) fn harmless(file: &Path) -> Vec<u8> {
    let settings = parse(&read(file).unwrap_or_default()).into_iter();
    let mut text = Vec::new();
    for setting in
        settings.filter(|setting| setting.subsection.is_none() && HARMLESS.contains(&setting.key.as_str()))
    {
        let Some((section, name)) = setting.key.split_once('.') else { continue };
        if setting.value.iter().any(u8::is_ascii_control) {
            continue;
        }
        text.extend_from_slice(format!("[{section}]\n\t{name} = \"").as_bytes());
        for byte in setting.value {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend_from_slice(b"\"\n");
    }
    text
}

/// What is in a file, if it is a regular one of an ordinary size. A pipe is not waited for.
fn read(path: &Path) -> Option<Vec<u8>> {
    let (file, _) = convoke_beneath::named_file(path, None).ok()?;
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Reads configuration as git does. What git would not read at all is read as far as it makes sense: too much
/// is named rather than too little.
fn parse(text: &[u8]) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let mut subsection = None;
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    while let Some(&byte) = rest.first() {
        match byte {
            b'[' => (section, subsection, rest) = header(&rest[1..]),
            b'#' | b';' => rest = line_end(rest),
            _ if byte.is_ascii_alphabetic() => {
                let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
                let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
                let key = format!("{section}.{}", String::from_utf8_lossy(name).to_ascii_lowercase());
                let spaces =
                    after.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(after.len());
                let (value, after) = match after[spaces..].strip_prefix(b"=") {
                    Some(after) => value(after),
                    None => (Vec::new(), line_end(after)),
                };
                settings.push(Setting { key, subsection: subsection.clone(), value });
                rest = after;
            }
            _ => rest = &rest[1..],
        }
    }
    settings
}

fn line_end(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    &text[end..]
}

/// A section's head, behind its first bracket.
fn header(text: &[u8]) -> (String, Option<Vec<u8>>, &[u8]) {
    let end =
        text.iter().position(|byte| matches!(byte, b']' | b'"' | b'\n' | b' ' | b'\t')).unwrap_or(text.len());
    let name = String::from_utf8_lossy(&text[..end]).to_ascii_lowercase();
    // The old form `[section.subsection]`.
    let (name, old) = match name.split_once('.') {
        Some((name, old)) => (name.to_owned(), Some(old.as_bytes().to_vec())),
        None => (name, None),
    };
    let mut rest = text[end..].trim_ascii_start();
    let mut subsection = old;
    if let Some(quoted) = rest.strip_prefix(b"\"") {
        let mut word = Vec::new();
        let mut bytes = quoted.iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                b'"' | b'\n' => break,
                b'\\' => word.extend(bytes.next()),
                byte => word.push(byte),
            }
        }
        subsection = Some(word);
        rest = bytes.as_slice();
    }
    let close = rest.iter().position(|byte| matches!(byte, b']' | b'\n')).map_or(rest.len(), |at| at + 1);
    (name, subsection, &rest[close..])
}

/// A value, behind its equals sign: quotes, escapes, comments and lines that go on.
fn value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut kept = 0;
    let mut quoted = false;
    let mut comment = false;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\n' => {
                at -= 1;
                break;
            }
            _ if comment => {}
            b'\r' if matches!(text.get(at), Some(b'\n')) => {}
            b'#' | b';' if !quoted => comment = true,
            b'"' => {
                quoted = !quoted;
                kept = value.len();
            }
            b'\\' => {
                let next = text.get(at).copied();
                at += usize::from(next.is_some());
                match next {
                    Some(b'\n') | None => {}
                    Some(b'\r') => at += usize::from(text.get(at) == Some(&b'\n')),
                    Some(b'n') => value.push(b'\n'),
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(other) => value.push(other),
                }
                kept = value.len();
            }
            b' ' | b'\t' if !quoted => {
                if !value.is_empty() {
                    value.push(byte);
                }
            }
            byte => {
                value.push(byte);
                kept = value.len();
            }
        }
    }
    value.truncate(kept);
    (value, &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_read_as_git_reads_it() {
        let check = |text: &str, expected: &[(&str, Option<&str>, &str)]| {
            let found: Vec<(String, Option<String>, String)> = parse(text.as_bytes())
                .into_iter()
                .map(|Setting { key, subsection, value }| {
                    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                    (key, subsection.map(text), text(value))
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(key, subsection, value)| {
                    ((*key).to_owned(), subsection.map(str::to_owned), (*value).to_owned())
                })
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("[core]\n\thooksPath = .husky/_\n", &[("core.hookspath", None, ".husky/_")]);
        check("[CORE] HooksPath=a b  # said\n", &[("core.hookspath", None, "a b")]);
        check("[core]\nhooksPath = \"a # b\" ; c\n", &[("core.hookspath", None, "a # b")]);
        check("[core]\nhooksPath = a\\\nb\\\\c\n", &[("core.hookspath", None, "ab\\c")]);
        check(
            "[core]\r\n\tbare\r\n\thooksPath = x\r\n",
            &[("core.bare", None, ""), ("core.hookspath", None, "x")],
        );
        check(
            "; c\n[includeIf \"gitdir:/a\\\"]b/\"]\n path = c\n[url.x] insteadOf = y",
            &[("includeif.path", Some("gitdir:/a\"]b/"), "c"), ("url.insteadof", Some("x"), "y")],
        );
        check("\u{feff}[a]\nb = \" lead\" trail \n", &[("a.b", None, " lead trail")]);
    }

    #[test]
    fn hooks_and_included_files_in_the_tree_are_named_also_through_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        let put = |name: &str, text: &str| {
            std::fs::create_dir_all(at.join(name).parent().unwrap()).unwrap();
            std::fs::write(at.join(name), text).unwrap();
        };
        put(
            "w/.git/config",
            "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../a\n\tpath = ~/x\n\tpath = ../../o\n",
        );
        put("w/.git/config.worktree", "[core]\n\thooksPath = .\n");
        put("w/a", "[includeIf \"onbranch:x\"]\n\tpath = deep/b\n[include]\n\tpath = a\n");
        put("w/deep/b", "[core]\n\thooksPath = /nowhere\n");
        put("o", &format!("[core]\n\thooksPath = {}\n", at.join("w/late/hooks").display()));
        put("home/.gitconfig", "[core]\n\thooksPath = .githooks\n");
        let named = named_in(&at.join("w"), Some(&at.join("home")));
        let expected =
            ["w/.githooks", "w/.husky/_", "w/a", "w/deep/b", "w/late/hooks"].map(|name| at.join(name));
        assert_eq!(named, expected);
        // A worktree of it reads the same, with hooks below its own top.
        put("t/.git", &format!("gitdir: {}\n", at.join("w/.git/worktrees/t").display()));
        put("w/.git/worktrees/t/commondir", "../..\n");
        assert_eq!(named_in(&at.join("t"), None), [at.join("t/.husky/_")]);
        std::fs::create_dir(at.join("t/.husky")).unwrap();
        assert_eq!(named_in(&at.join("t/.husky"), None), [at.join("t/.husky/_")]);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join(".git/config")).status().unwrap();
        assert!(made.success());
        assert_eq!(named_in(dir.path(), None), Vec::<PathBuf>::new());
    }

    #[test]
    fn of_a_persons_settings_nothing_is_left_that_can_hold_a_token_or_a_program() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".config/git")).unwrap();
        std::fs::write(
            dir.path().join(".gitconfig"),
            "[user]\n\tname = Some \"Body\"\n\temail = a@b\n\tsigningKey = \
                KEY1\n[url \"https://KEY2@host/\"]\n\tinsteadOf = https://host/\n\
             [http \"https://host/\"]\n\textraheader = KEY3\n[http]\n\textraheader = \
             KEY4\n[credential]\n\thelper = KEY5\n\
             [include]\n\tpath = KEY6\n[alias]\n\tx = !KEY7\n[core]\n\tautocrlf = input\n\tsshCommand = \
             KEY8\n[user \"KEY9\"]\n\tname = x\n",
        )
        .unwrap();
        std::fs::write(dir.path().join(".config/git/config"), "[init]\n\tdefaultBranch = trunk\n").unwrap();
        let text = String::from_utf8(reduced(dir.path()).unwrap()).unwrap();
        assert!(!text.contains("KEY"), "{text}");
        let again: Vec<(String, String)> = parse(text.as_bytes())
            .into_iter()
            .map(|setting| (setting.key, String::from_utf8(setting.value).unwrap()))
            .collect();
        let expected = [
            ("init.defaultbranch", "trunk"),
            ("user.name", "Some Body"),
            ("user.email", "a@b"),
            ("core.autocrlf", "input"),
        ];
        assert_eq!(again, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(reduced(&dir.path().join("none")), None);
    }
}
