//! Reads one configuration file into stated values with their lines. Every mistake is an error that names
//! file, line and key. It knows nothing of other layers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_beneath::{Error, named_file, read_whole};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, KEPT_FROM_PROJECTS, KEYS, Key, Kind, Project};
use super::origin::Origin;
use super::rules;
use super::time::parse_duration;
use super::value::{self, Value};
use crate::args::nearest;
use crate::failure::Failure;

/// No real configuration is this long.
const MOST_BYTES: u64 = 1 << 20;

/// Whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user's: everything may be set.
    User,
    /// The project's; the user's own file is named in advice.
    Project {
        /// The user's own file.
        user_file: PathBuf,
    },
}

/// A value that was stated, and where.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stated {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path, owner: &Owner) -> Result<Option<BTreeMap<&'static str, Stated>>, Failure> {
    // The project's file is one of the tree, which strangers fill: no link of it leads out. Either is looked
    // at before it is opened: opening a pipe would wait for another end.
    let tree = match owner {
        Owner::User => None,
        Owner::Project { .. } => path.parent().and_then(Path::parent),
    };
    let bytes = match named_file(path, tree).and_then(|(file, _)| read_whole(file, path, MOST_BYTES)) {
        Ok(bytes) => bytes,
        Err(error) if error.io_kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(Error::Kind { .. }) => {
            return Err(Failure::usage(format!(
                "{} is no file and cannot be a configuration",
                path.display()
            )));
        }
        Err(Error::TooLarge { .. }) => {
            return Err(Failure::usage(format!(
                "{} is larger than 1 MiB and is no configuration",
                path.display()
            )));
        }
        Err(error) => {
            return Err(Failure::usage(format!("cannot read {}: {}", path.display(), error.reason())));
        }
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{} is not UTF-8 text; TOML files are", path.display())))?;
    parse(path, &text, owner).map(Some)
}

/// Checks what a user's file is to hold.
pub(crate) fn check_user_file(path: &Path, text: &str) -> Result<(), Failure> {
    parse(path, text, &Owner::User).map(|_| ())
}

fn parse(path: &Path, text: &str, owner: &Owner) -> Result<BTreeMap<&'static str, Stated>, Failure> {
    let reader = Reader { path, text, owner };
    let table = DeTable::parse(text).map_err(|error| reader.syntax(&error))?;
    // The spans come from one reading and the values from another, because the library keeps them apart.
    let values: toml::Table = toml::from_str(text).map_err(|error| reader.syntax(&error))?;
    let mut stated = BTreeMap::new();
    for (name, value) in table.get_ref() {
        let at = name.span();
        let name = name.get_ref().as_ref();
        reader.may_set(name, &at)?;
        let Some(plain) = values.get(name) else { continue };
        if let Some(key) = keys::find(name) {
            reader.take(&mut stated, key, at, value, plain)?;
        } else if keys::is_table(name) {
            let (Some(inner), Some(inner_values)) = (value.get_ref().as_table(), plain.as_table()) else {
                return Err(reader.wrong(&at, name, "must be a table", plain));
            };
            for (member, value) in inner {
                let at = member.span();
                let full = format!("{name}.{}", member.get_ref());
                reader.may_set(&full, &at)?;
                let key = keys::find(&full).ok_or_else(|| reader.unknown(&at, &full, siblings(name)))?;
                let Some(plain) = inner_values.get(member.get_ref().as_ref()) else { continue };
                reader.take(&mut stated, key, at, value, plain)?;
            }
        } else {
            return Err(reader.unknown(&at, name, KEYS.iter().map(|key| key.name).collect()));
        }
    }
    Ok(stated)
}

pub(super) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    owner: &'a Owner,
}

impl Reader<'_> {
    /// Whose file it is.
    pub(super) fn owner(&self) -> &Owner {
        self.owner
    }

    /// Where in the file this is.
    pub(super) fn origin(&self, at: &Range<usize>) -> Origin {
        Origin::File { path: self.path.to_owned(), line: self.line(at) }
    }

    fn line(&self, at: &Range<usize>) -> usize {
        self.text.bytes().take(at.start).filter(|byte| *byte == b'\n').count() + 1
    }

    pub(super) fn place(&self, at: &Range<usize>) -> String {
        format!("{}:{}", self.path.display(), self.line(at))
    }

    fn syntax(&self, error: &toml::de::Error) -> Failure {
        let at = error.span().unwrap_or_default();
        Failure::usage(format!("{}: {}", self.place(&at), error.message()))
    }

    pub(super) fn unknown(&self, at: &Range<usize>, name: &str, candidates: Vec<&str>) -> Failure {
        let suggestion = match nearest(name, candidates.into_iter()) {
            Some(key) => format!("; the nearest key is '{key}'"),
            None => String::new(),
        };
        Failure::usage(format!("{}: unknown key '{name}'{suggestion}", self.place(at)))
            .hint("`convoke config show` prints every key")
    }

    fn wrong(&self, at: &Range<usize>, name: &str, must: &str, found: &toml::Value) -> Failure {
        let found = match found {
            toml::Value::Integer(number) => number.to_string(),
            other => format!("a value of type {}", other.type_str()),
        };
        Failure::usage(format!("{}: '{name}' {must}, not {found}", self.place(at)))
    }

    /// Refuses a key that a project may not set: it may only narrow.
    fn may_set(&self, name: &str, at: &Range<usize>) -> Result<(), Failure> {
        let Owner::Project { user_file } = self.owner else { return Ok(()) };
        let kept = KEPT_FROM_PROJECTS.contains(&name);
        if !kept && keys::find(name).is_none_or(|key| key.project != Project::MayNot) {
            return Ok(());
        }
        let message =
            format!("{}: '{name}' cannot be set by a project, which may only narrow", self.place(at));
        Err(Failure::usage(message).hint(format!("set it in {}", user_file.display())))
    }

    fn take(
        &self,
        stated: &mut BTreeMap<&'static str, Stated>,
        key: &'static Key,
        at: Range<usize>,
        spanned: &Spanned<DeValue<'_>>,
        plain: &toml::Value,
    ) -> Result<(), Failure> {
        let wrong = |must: &str| self.wrong(&at, key.name, must, plain);
        let value = match key.kind {
            Kind::Text | Kind::Secret => {
                Value::Text(plain.as_str().ok_or_else(|| wrong("must be a text"))?.to_owned())
            }
            Kind::Count(most) => {
                let count =
                    plain.as_integer().and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=most).contains(n));
                Value::Count(count.ok_or_else(|| wrong(&format!("must be a whole number from 1 to {most}")))?)
            }
            Kind::Cap(_) | Kind::Switch | Kind::Sandbox | Kind::Voters | Kind::Choice(_) => {
                let text = written(spanned.get_ref())
                    .ok_or_else(|| wrong("must be a text, a number or a switch"))?;
                let read = value::read(key.kind, &text);
                read.map_err(|problem| {
                    Failure::usage(format!("{}: '{}': {problem}", self.place(&at), key.name))
                })?
            }
            Kind::Time => Value::Time(self.time(key.name, &at, plain)?),
            Kind::List => Value::List(list(plain).ok_or_else(|| wrong("must be a list of texts"))?),
            Kind::Hosts => {
                let hosts = value::hosts(list(plain).ok_or_else(|| wrong("must be a list of texts"))?);
                let bad = |problem| Failure::usage(format!("{}: '{}': {problem}", self.place(&at), key.name));
                Value::List(hosts.map_err(bad)?)
            }
            Kind::Headers => {
                let table = plain.as_table().ok_or_else(|| wrong("must be a table"))?;
                let pairs =
                    table.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                Value::Headers(pairs.collect::<Option<_>>().ok_or_else(|| wrong("must hold texts"))?)
            }
            Kind::Rows(members) => {
                let table = plain.as_table().ok_or_else(|| wrong("must be a table"))?;
                self.check_rows(key.name, spanned.get_ref(), members)?;
                Value::Rows(table.iter().map(|(name, row)| (name.clone(), row.clone())).collect())
            }
            Kind::Rules => Value::Rules(rules::read(self, &at, spanned)?),
        };
        let origin = self.origin(&at);
        stated.insert(key.name, Stated { value, origin });
        Ok(())
    }

    fn time(&self, name: &str, at: &Range<usize>, value: &toml::Value) -> Result<Duration, Failure> {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(seconds) => seconds.to_string(),
            other => return Err(self.wrong(at, name, "must be a span of time such as \"90s\"", other)),
        };
        parse_duration(&text)
            .map_err(|problem| Failure::usage(format!("{}: '{name}': {problem}", self.place(at))))
    }

    /// Members of a row are checked here for their names alone, so that a mistyped one is told with its own
    /// line.
    fn check_rows(&self, table: &str, value: &DeValue<'_>, members: &[&str]) -> Result<(), Failure> {
        for (row, value) in value.as_table().into_iter().flatten() {
            let full = format!("{table}.{:?}", row.get_ref());
            let Some(inner) = value.get_ref().as_table() else {
                return Err(Failure::usage(format!("{}: '{full}' must be a table", self.place(&row.span()))));
            };
            for (member, _) in inner {
                if !members.contains(&member.get_ref().as_ref()) {
                    return Err(self.unknown(&member.span(), member.get_ref(), members.to_vec()));
                }
            }
        }
        Ok(())
    }
}

/// A plain value as it stands in the file. A number with decimals stays text, because a cap is read from its
/// digits.
fn written(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().replace('_', "")),
        DeValue::Float(number) => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(on) => Some(value::switch_word(*on).to_owned()),
        _ => None,
    }
}

fn list(value: &toml::Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The keys of a table, with its name.
fn siblings(table: &str) -> Vec<&'static str> {
    let inside = |key: &&Key| key.name.split_once('.').is_some_and(|(name, _)| name == table);
    KEYS.iter().filter(inside).map(|key| key.name).collect()
}
