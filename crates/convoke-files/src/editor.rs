//! The text editor tool: view, create, str_replace and insert. It says what is to be written; `write` writes
//! it.

use std::path::PathBuf;

use serde::Deserialize;

use crate::beneath::{self, Opened};
use crate::caps::Caps;
use crate::line_ends;
use crate::listing;
use crate::refused::Refused;
use crate::replace::{self, Found};
use crate::root::{Named, Root};
use crate::show;
use crate::text::{self, Content, Encoding, Text};
use crate::view;
use crate::write::{Target, Written};

/// One call of the text editor tool, as its input is declared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Edit {
    /// Shows a file or a directory.
    View {
        /// Which.
        path: String,
        /// Its first and last line, counted from 1; -1 is the end.
        #[serde(default, rename = "view_range")]
        range: Option<(i64, i64)>,
    },
    /// Writes a whole file, new or not.
    Create {
        /// Which.
        path: String,
        /// Its content.
        #[serde(rename = "file_text")]
        text: String,
    },
    /// Replaces the one place a text stands at.
    #[serde(rename = "str_replace")]
    Replace {
        /// In which file.
        path: String,
        /// What stands there.
        #[serde(rename = "old_str")]
        old: String,
        /// What shall stand there.
        #[serde(default, rename = "new_str")]
        new: String,
    },
    /// Adds lines.
    Insert {
        /// To which file.
        path: String,
        /// After which line; 0 is the top.
        #[serde(rename = "insert_line")]
        line: u64,
        /// What to add.
        #[serde(rename = "insert_text")]
        text: String,
    },
}

/// A call that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// What the model reads.
    pub text: String,
    /// What was changed in the tree, if anything.
    pub changed: Option<Change>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The real file, relative to the tree: where links led, not what was said.
    pub path: PathBuf,
    /// Whether it did not exist before.
    pub created: bool,
}

impl Edit {
    /// The path the call is about, as it was said.
    pub fn path(&self) -> &str {
        match self {
            Self::View { path, .. }
            | Self::Create { path, .. }
            | Self::Replace { path, .. }
            | Self::Insert { path, .. } => path,
        }
    }

    /// Whether carrying it out changes files.
    pub fn writes(&self) -> bool {
        !matches!(self, Self::View { .. })
    }
}

/// Carries out one call of the text editor tool.
pub fn edit(root: &Root, edit: &Edit, caps: &Caps) -> Result<Done, Refused> {
    let named = root.named(edit.path())?;
    match edit {
        Edit::View { range, .. } => view(root, &named, *range, caps),
        Edit::Create { text, .. } => create(root, &named, text, caps),
        Edit::Replace { old, new, .. } => replace(root, &named, old, new, caps),
        Edit::Insert { line, text, .. } => insert(root, &named, *line, text, caps),
    }
}

fn view(root: &Root, named: &Named, range: Option<(i64, i64)>, caps: &Caps) -> Result<Done, Refused> {
    let text = match beneath::open(root, named)? {
        Opened::File(file, stat) => view::file(named, file, &stat, range, caps)?,
        Opened::Directory(_) if range.is_some() => {
            let advice = "view it without view_range";
            return Err(Refused::Kind { path: named.said.clone(), kind: "a directory", advice });
        }
        Opened::Directory(directory) => listing::directory(root, named, directory, caps),
    };
    Ok(Done { text, changed: None })
}

fn create(root: &Root, named: &Named, text: &str, caps: &Caps) -> Result<Done, Refused> {
    if named.said.ends_with('/') {
        let why = "it ends in a slash, and create makes files; the directories above a file are made with it";
        return Err(Refused::Path { path: named.said.clone(), why });
    }
    let mut target = Target::find(root, named)?;
    // An old file that is too large to be compared is replaced all the same.
    let old = if target.length().is_some_and(|length| length <= caps.file_bytes) {
        target.read(caps.file_bytes)?
    } else {
        None
    };
    if old.as_deref() == Some(text.as_bytes()) {
        return Ok(Done {
            text: format!("`{}` already has exactly this content; nothing was written.\n", named.said),
            changed: None,
        });
    }
    let before = target.length();
    let written = target.put(text.as_bytes())?;
    let lines = line_ends::lines(text.as_bytes()).len() as u64;
    let lines = show::count(lines, "line", "lines");
    let mut said = match (before, old.map(text::content)) {
        (None, _) => format!("created `{}` with {lines}.", named.said),
        (_, Some(Content::Text(old))) => {
            let were = line_ends::lines(&old.body).len() as u64;
            format!(
                "overwrote `{}`: it has {lines}, was {}.{}",
                named.said,
                show::count(were, "line", "lines"),
                differences(&old, text)
            )
        }
        (Some(bytes), Some(Content::Binary(kind))) => {
            format!("overwrote `{}`: it has {lines}, was {kind} of {}.", named.said, show::size(bytes))
        }
        (Some(bytes), None) => {
            format!("overwrote `{}`: it has {lines}, was {}.", named.said, show::size(bytes))
        }
    };
    said.push('\n');
    Ok(done(said, named, written))
}

/// What else became different when a text was written over another.
fn differences(old: &Text, new: &str) -> String {
    let mut text = String::new();
    let were = line_ends::dominant(&old.body);
    let are = line_ends::dominant(new.as_bytes());
    if were != are && line_ends::lines(&old.body).len() > 1 {
        text.push_str(&format!(" Its lines end in {} now, they ended in {}.", are.name(), were.name()));
    }
    if let Some(note) = old.encoding_note() {
        text.push_str(&format!(" It is plain UTF-8 now; it was {note}."));
    }
    text
}

fn replace(root: &Root, named: &Named, old: &str, new: &str, caps: &Caps) -> Result<Done, Refused> {
    let input = |why: &str| Err(Refused::Input { why: why.to_owned() });
    if old.is_empty() {
        return input("old_str is empty. Use insert to add text, or create to write a whole file.");
    }
    if old == new {
        return input("old_str and new_str are the same, so nothing would change.");
    }
    let (target, mut text) = text_of(root, named, caps)?;
    let place = match replace::find(&text.body, old) {
        Found::Once(place) => place,
        Found::Nowhere(nearest) => return Err(Refused::NoMatch { path: named.said.clone(), nearest }),
        Found::Often(lines, more) => {
            let count = if more { format!("more than {}", lines.len()) } else { lines.len().to_string() };
            let lines = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            return Err(Refused::ManyMatches { path: named.said.clone(), count, lines });
        }
    };
    let dominant = line_ends::dominant(&text.body);
    let piece = replace::fit(&text.body[place.clone()], old, new, dominant);
    if text.body[place.clone()] == piece {
        return input(
            "nothing would change: lines keep the endings they have. Use create to write the file with \
                others.",
        );
    }
    let end = place.start + piece.len();
    text.body.splice(place.clone(), piece);
    let written = put(target, named, &text)?;
    let first = line_ends::line_of(&text.body, place.start);
    let last = line_ends::line_of(&text.body, end.saturating_sub(1).max(place.start).min(text.body.len()));
    let said = format!(
        "edited `{}` at line {first}; it now reads:\n{}",
        named.said,
        view::around(&text.body, first, last, caps)
    );
    Ok(done(said, named, written))
}

fn insert(root: &Root, named: &Named, line: u64, added: &str, caps: &Caps) -> Result<Done, Refused> {
    if added.is_empty() {
        return Err(Refused::Input { why: "insert_text is empty, so nothing would change.".to_owned() });
    }
    let (target, mut text) = text_of(root, named, caps)?;
    let lines = line_ends::lines(&text.body);
    let total = lines.len() as u64;
    if line > total {
        let has = show::count(total, "line", "lines");
        let why = format!(
            "`{}` has {has}, so insert_line is 0 (the top) to {total} (the end), not {line}.",
            named.said
        );
        return Err(Refused::Lines { why });
    }
    let at = usize::try_from(line)
        .ok()
        .and_then(|line| line.checked_sub(1))
        .and_then(|at| lines.get(at))
        .map_or(0, |line| line.end);
    let end = line_ends::dominant(&text.body);
    let mut piece = line_ends::with_end(added, end);
    let finished = added.ends_with('\n');
    if at == text.body.len() && line_ends::unfinished(&text.body) {
        // The last line had no ending, and the new last one has none either.
        if finished {
            piece.truncate(show::bare(&piece).len());
        }
        piece.splice(0..0, end.bytes().iter().copied());
    } else if !finished && total > 0 {
        // Between lines, or after a last one that is ended, the new line is ended too.
        piece.extend_from_slice(end.bytes());
    }
    text.body.splice(at..at, piece);
    let written = put(target, named, &text)?;
    let added = line_ends::lines(&text.body).len() as u64 - total;
    let said = format!(
        "inserted {} after line {line} of `{}`; it now reads:\n{}",
        show::count(added, "line", "lines"),
        named.said,
        view::around(&text.body, line + 1, line + added.max(1), caps)
    );
    Ok(done(said, named, written))
}

/// The text of a file that is to be changed.
fn text_of<'a>(root: &'a Root, named: &'a Named, caps: &Caps) -> Result<(Target<'a>, Text), Refused> {
    let mut target = Target::find(root, named)?;
    target.must_exist()?;
    let bytes = target.read(caps.file_bytes)?.unwrap_or_default();
    match text::content(bytes) {
        Content::Text(text) => Ok((target, text)),
        Content::Binary(kind) => {
            Err(Refused::NotText { path: named.said.clone(), why: format!("is {kind}") })
        }
    }
}

fn put(target: Target<'_>, named: &Named, text: &Text) -> Result<Written, Refused> {
    let bytes = text.bytes().map_err(|character| {
        let encoding = if text.encoding == Encoding::Latin1 { "Latin-1" } else { "its own encoding" };
        Refused::NotText {
            path: named.said.clone(),
            why: format!("is written in {encoding}, which has no `{character}`"),
        }
    })?;
    target.put(&bytes)
}

fn done(mut text: String, named: &Named, written: Written) -> Done {
    if written.other_names > 0 {
        let names = show::count(written.other_names, "other name", "other names");
        text.push_str(&format!(
            "[the file had {names} (hard links); those keep the old content, `{}` is a file of its own \
                now]\n",
            named.said
        ));
    }
    if written.path != named.path {
        text.push_str(&format!("[the file written is `{}`]\n", show::path(&written.path)));
    }
    Done { text, changed: Some(Change { path: written.path, created: written.created }) }
}
