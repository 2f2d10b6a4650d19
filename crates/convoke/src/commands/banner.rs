//! The first line on stderr: what is asked and how hard, whether it may fan out, what it may spend, what holds its
//! commands, and where it is remembered. One line, whatever the width: what does not fit is said shorter, then left out,
//! and that nothing confines the commands is left out last.

use std::path::Path;

use crate::render::{clean, text_columns};
use crate::settings::{Caps, ModelSource, Settings, caps_words, switch_word};

/// What the line tells.
pub(super) struct Banner<'a> {
    pub(super) model: &'a str,
    pub(super) effort: Option<&'a str>,
    /// The model and effort of workers, if they are others.
    pub(super) worker: Option<(&'a str, Option<&'a str>)>,
    /// `None` where that is not known.
    pub(super) mode: Option<bool>,
    /// Whether the person consented to workflows by flag.
    pub(super) consent: bool,
    /// `None` where they are what they were.
    pub(super) caps: Option<Caps>,
    pub(super) source: &'a ModelSource,
    pub(super) dir: &'a Path,
    pub(super) journal: String,
}

/// One thing that is told, from its longest form to its shortest; empty when it is left out.
struct Part(Vec<String>);

/// The parts, in the order in which they stand.
#[derive(Clone, Copy)]
enum Place {
    Name,
    Model,
    Mode,
    Caps,
    Sandbox,
    Network,
    Dir,
    Journal,
}

use Place::{Caps as Money, Dir, Journal, Mode, Model, Name, Network, Sandbox};

/// What becomes shorter, one form at a time, until the line fits.
const STEPS: &[Place] =
    &[Dir, Journal, Sandbox, Money, Model, Dir, Name, Network, Journal, Money, Model, Mode, Mode, Money];

impl<'a> Banner<'a> {
    /// What a new run tells.
    pub(super) fn new(
        settings: &'a Settings,
        source: &'a ModelSource,
        model: &'a str,
        effort: Option<&'a str>,
    ) -> Self {
        let fan_out = &settings.fan_out;
        let worker = (fan_out.worker.model.as_str(), fan_out.worker.effort.as_deref());
        let offline = matches!(source, ModelSource::Offline);
        Self {
            model,
            effort,
            worker: Some(worker).filter(|worker| !offline && *worker != (model, effort)),
            mode: Some(fan_out.mode),
            consent: fan_out.consent,
            caps: Some(settings.caps),
            source,
            dir: &settings.dir,
            journal: settings.journal.to_string(),
        }
    }

    /// The line, in at most this many columns.
    pub(super) fn line(&self, width: Option<usize>) -> String {
        let mut parts = self.parts();
        let mut line = joined(&parts);
        let Some(width) = width else { return line };
        for step in STEPS {
            if text_columns(&line) <= width {
                return line;
            }
            let forms = &mut parts[*step as usize].0;
            if !forms.is_empty() {
                forms.remove(0);
            }
            line = joined(&parts);
        }
        // Only a very narrow terminal, or a very long name of a model, gets here; the name is cut.
        let over = text_columns(&line).saturating_sub(width);
        if let (true, Some(name)) = (over > 0, parts[Model as usize].0.first_mut()) {
            let kept = name.chars().count().saturating_sub(over + 1);
            *name = name.chars().take(kept).chain(['…']).collect();
        }
        joined(&parts)
    }

    fn parts(&self) -> Vec<Part> {
        let part = |forms: &[String]| Part(forms.iter().map(|form| clean(form)).collect());
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let here = name(self.dir).unwrap_or_else(|| self.dir.display().to_string());
        let remembered = name(Path::new(&self.journal)).unwrap_or_else(|| self.journal.clone());
        let short_family = |model: &str| model.trim_start_matches("claude-").to_owned();
        let offline = matches!(self.source, ModelSource::Offline);
        let model = match (offline, self.effort) {
            (true, _) => part(&["model offline (rules, no intelligence)".into(), "offline".into(), "offline".into()]),
            (false, effort) => {
                let long = format!("model {}", with_effort(self.model, effort));
                let workers = self.worker.map(|(model, effort)| format!(", workers {}", with_effort(model, effort)));
                let short = match effort {
                    Some(effort) => format!("{} {effort}", short_family(self.model)),
                    None => short_family(self.model),
                };
                part(&[format!("{long}{}", workers.unwrap_or_default()), short, short_family(self.model)])
            }
        };
        let mode = match self.mode {
            None => Part(Vec::new()),
            Some(on) => {
                let word = format!("mode {}", switch_word(on));
                let consent = if self.consent && !on { ", workflows allowed" } else { "" };
                part(&[format!("{word}{consent}"), word])
            }
        };
        let money = match &self.caps {
            None => Part(Vec::new()),
            Some(caps) => {
                let words = caps_words(caps);
                let first = words.split(", ").next().unwrap_or_default().to_owned();
                part(&[format!("at most {words}").replace("at most no caps", "no caps"), words, first])
            }
        };
        let (sandbox, network) = match offline {
            true => (
                part(&["built-in commands only, unconfined (no sandbox yet)".into(), "no sandbox".into()]),
                part(&["network not used".into()]),
            ),
            false => (
                part(&["commands UNCONFINED, with your rights (no sandbox yet)".into(), "UNCONFINED".into()]),
                part(&["network open".into()]),
            ),
        };
        let dir = part(&[format!("in {}", self.dir.display()), format!("in {here}")]);
        let journal = part(&[format!("journal {}", self.journal), format!("journal {remembered}")]);
        vec![Part(vec!["convoke".into()]), model, mode, money, sandbox, network, dir, journal]
    }
}

fn with_effort(model: &str, effort: Option<&str>) -> String {
    match effort {
        Some(effort) => format!("{model} (effort {effort})"),
        None => model.to_owned(),
    }
}

fn joined(parts: &[Part]) -> String {
    let said: Vec<&str> = parts.iter().filter_map(|part| part.0.first().map(String::as_str)).collect();
    said.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api() -> ModelSource {
        ModelSource::Api { base_url: String::new(), key: None, bearer: None }
    }

    fn banner<'a>(source: &'a ModelSource, model: &'a str) -> Banner<'a> {
        Banner {
            model,
            effort: Some("xhigh"),
            worker: None,
            mode: Some(true),
            consent: false,
            caps: Some(Caps { agents: Some(500), tokens: None, nano: Some(10_000_000_000), ms: Some(7_200_000) }),
            source,
            dir: Path::new("/home/me/project"),
            journal: "/home/me/.local/state/convoke/journal.db".into(),
        }
    }

    #[test]
    fn the_line_tells_everything_where_there_is_room() {
        let expected = "convoke · model claude-opus-4-8 (effort xhigh) · mode on · at most $10.00, 500 agents, 120 min · commands \
                        UNCONFINED, with your rights (no sandbox yet) · network open · in /home/me/project · journal \
                        /home/me/.local/state/convoke/journal.db";
        assert_eq!(banner(&api(), "claude-opus-4-8").line(None), expected);
    }

    #[test]
    fn the_line_collapses_to_the_width_and_names_the_danger_at_any() {
        let check = |width: usize, expected: &str| {
            assert_eq!(banner(&api(), "claude-opus-4-8").line(Some(width)), expected, "at {width}");
        };
        check(
            160,
            "convoke · model claude-opus-4-8 (effort xhigh) · mode on · at most $10.00, 500 agents, 120 min · UNCONFINED · \
             network open · in project · journal journal.db",
        );
        check(
            120,
            "convoke · opus-4-8 xhigh · mode on · $10.00, 500 agents, 120 min · UNCONFINED · network open · journal \
             journal.db",
        );
        check(80, "opus-4-8 xhigh · mode on · $10.00, 500 agents, 120 min · UNCONFINED");
        check(40, "opus-4-8 · mode on · $10.00 · UNCONFINED");
        check(20, "opus-4… · UNCONFINED");
        for width in 20..220 {
            let line = banner(&api(), "claude-opus-4-8").line(Some(width));
            assert!(text_columns(&line) <= width && !line.contains('\n'), "{width}: {line}");
            assert!(line.contains("UNCONFINED"), "{width}: {line}");
        }
    }

    #[test]
    fn other_workers_consent_and_lifted_caps_are_told() {
        let worker = Some(("claude-haiku-4-5", None));
        let source = api();
        let odd =
            Banner { worker, mode: Some(false), consent: true, caps: Some(Caps::default()), ..banner(&source, "m") };
        let line = odd.line(None);
        let expected = "m (effort xhigh), workers claude-haiku-4-5 · mode off, workflows allowed · no caps · ";
        assert!(line.contains(expected), "{line}");
    }

    #[test]
    fn the_offline_model_is_told_as_what_it_is() {
        let line = banner(&ModelSource::Offline, "offline").line(None);
        assert!(line.contains("model offline (rules, no intelligence)") && line.contains("network not used"), "{line}");
        assert!(!line.contains("UNCONFINED") && line.contains("no sandbox"), "{line}");
    }

    #[test]
    fn nothing_in_a_name_is_obeyed() {
        let source = api();
        let wild = Banner { dir: Path::new("/a\u{1b}[2Jb"), ..banner(&source, "m\u{7}") };
        assert!(!wild.line(None).contains(|c: char| c.is_control()));
    }
}
