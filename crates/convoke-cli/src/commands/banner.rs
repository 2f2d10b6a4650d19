//! The first line on stderr: what is asked and how hard, whether it may fan out, what it may spend, what
//! holds its commands, and where it is remembered. One line, whatever the width: what does not fit is said
//! shorter, then left out. What is open or weaker than it could be is never left out; the policy and what
//! holds it go last. What the layers of this machine do not hold is told on a line of its own.

use std::path::Path;

use convoke_kernel::{Confinement, Network as Reach, Sandbox as Policy};

use crate::confine::{layers_words, network_words, weaker_line, weaker_names};
use crate::render::{Look, clean, count, text_columns};
use crate::settings::{Caps, ModelSource, ProjectKeys, Settings, caps_words, switch_word};

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
    /// What the project's configuration chose; `None` where that is of no interest.
    pub(super) project: Option<&'a ProjectKeys>,
    pub(super) source: &'a ModelSource,
    pub(super) confinement: &'a Confinement,
    pub(super) dir: &'a Path,
    pub(super) journal: String,
}

/// One thing that is told, from its longest form to its shortest; empty when it is left out.
#[derive(Default)]
struct Part {
    forms: Vec<String>,
    /// Whether its shortest form is told whatever the width.
    stays: bool,
}

/// The parts, in the order in which they stand.
#[derive(Clone, Copy)]
enum BannerPart {
    Name,
    Model,
    Mode,
    Caps,
    Project,
    Sandbox,
    Network,
    Layers,
    Dir,
    Journal,
}

use BannerPart::{Caps as Money, Dir, Journal, Layers, Mode, Model, Name, Network, Project, Sandbox};

/// What becomes shorter, one form at a time, until the line fits.
const STEPS: &[BannerPart] = &[
    Dir, Journal, Project, Sandbox, Layers, Money, Model, Dir, Name, Journal, Money, Mode, Mode, Project,
    Model, Money, Network, Model, Layers, Network, Sandbox,
];

/// Less of a model's name says nothing.
const LEAST_NAME: usize = 6;

impl<'a> Banner<'a> {
    /// What a new session tells.
    pub(super) fn new(
        settings: &'a Settings,
        source: &'a ModelSource,
        model: &'a str,
        effort: Option<&'a str>,
        confinement: &'a Confinement,
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
            project: Some(&settings.project),
            source,
            confinement,
            dir: &settings.dir,
            journal: settings.journal.to_string(),
        }
    }

    /// The line, and below it what does not hold here.
    pub(super) fn lines(&self, look: Look) -> String {
        let line = self.line(look.width());
        match weaker_line(self.confinement) {
            Some(weaker) => format!("{line}\n{}", look.fit(&clean(&weaker))),
            None => line,
        }
    }

    /// The line, in at most this many columns.
    fn line(&self, width: Option<usize>) -> String {
        let mut parts = self.parts();
        let mut line = joined(&parts);
        let Some(width) = width else { return line };
        let spare = parts[Model as usize].forms.last().cloned();
        for step in STEPS {
            if text_columns(&line) <= width {
                break;
            }
            let over = text_columns(&line) - width;
            parts[*step as usize].shorten(if matches!(step, Model) { over } else { usize::MAX });
            line = joined(&parts);
        }
        if !parts[Model as usize].forms.is_empty() {
            return line;
        }
        // Where the layers did not fit after all, there may be room for the model again.
        parts[Model as usize].forms = spare.into_iter().collect();
        let with_model = joined(&parts);
        if text_columns(&with_model) <= width { with_model } else { line }
    }

    fn parts(&self) -> Vec<Part> {
        let part =
            |forms: &[String]| Part { forms: forms.iter().map(|form| clean(form)).collect(), stays: false };
        let staying = |forms: &[String]| Part { stays: true, ..part(forms) };
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let here = name(self.dir).unwrap_or_else(|| self.dir.display().to_string());
        let remembered = name(Path::new(&self.journal)).unwrap_or_else(|| self.journal.clone());
        let short_family = |model: &str| model.trim_start_matches("claude-").to_owned();
        let offline = matches!(self.source, ModelSource::Offline);
        let model = match (offline, self.effort) {
            (true, _) => {
                part(&["model offline (rules, no intelligence)".into(), "offline".into(), "offline".into()])
            }
            (false, effort) => {
                let long = format!("model {}", with_effort(self.model, effort));
                let workers =
                    self.worker.map(|(model, effort)| format!(", workers {}", with_effort(model, effort)));
                let short = match effort {
                    Some(effort) => format!("{} {effort}", short_family(self.model)),
                    None => short_family(self.model),
                };
                part(&[format!("{long}{}", workers.unwrap_or_default()), short, short_family(self.model)])
            }
        };
        let mode = match self.mode {
            None => Part::default(),
            Some(on) => {
                let word = format!("mode {}", switch_word(on));
                let consent = if self.consent && !on { ", workflows allowed" } else { "" };
                part(&[format!("{word}{consent}"), word])
            }
        };
        let money = match &self.caps {
            None => Part::default(),
            Some(caps) => {
                let words = caps_words(caps);
                let first = words.split(", ").next().unwrap_or_default().to_owned();
                part(&[format!("at most {words}").replace("at most no caps", "no caps"), words, first])
            }
        };
        let project = match self.project.map(|project| (project.in_force(), project.ignored())) {
            Some((Some(keys), _)) => {
                part(&[format!("the trusted project sets {keys}"), format!("project: {keys}")])
            }
            Some((_, Some(keys))) => staying(&[
                format!("ignored of the project: {keys} (not trusted; --trust-project)"),
                format!("project's {keys} ignored"),
                "project keys ignored".into(),
            ]),
            _ => Part::default(),
        };
        let sandbox = match self.confinement.sandbox {
            Policy::Off => staying(&["commands UNCONFINED (--sandbox off)".into(), "UNCONFINED".into()]),
            policy => part(&[format!("sandbox {}", policy.name()), policy.name().into()]),
        };
        let reach = network_words(self.confinement);
        let network = match (&self.confinement.network, self.confinement.sandbox) {
            // That nothing is confined says this too.
            (_, Policy::Off) => part(&[reach.clone(), reach]),
            (Reach::Off, _) => part(&[reach]),
            (Reach::On, _) => staying(&[reach.clone(), reach, "net open".into()]),
            (Reach::Hosts(hosts), _) => {
                let hosts = count(u32::try_from(hosts.len()).unwrap_or(u32::MAX), "host");
                staying(&[reach, format!("network {hosts}"), hosts])
            }
        };
        let layers = layers_words(self.confinement);
        let short = layers.replace("bubblewrap", "bwrap").replace("+cgroup", "");
        let layers = match weaker_names(self.confinement).is_empty() {
            _ if layers.is_empty() => Part::default(),
            true => part(&[layers, short]),
            false => staying(&[format!("{layers} (weaker)"), format!("{short} (weaker)"), "weaker".into()]),
        };
        let dir = part(&[format!("in {}", self.dir.display()), format!("in {here}")]);
        let journal = part(&[format!("journal {}", self.journal), format!("journal {remembered}")]);
        vec![part(&["convoke".into()]), model, mode, money, project, sandbox, network, layers, dir, journal]
    }
}

impl Part {
    /// Tells less of it: the next form, or of the last one what is left without that many columns, or
    /// nothing.
    fn shorten(&mut self, over: usize) {
        match self.forms.as_mut_slice() {
            [_, _, ..] => drop(self.forms.remove(0)),
            [last] if !self.stays => match last.chars().count().saturating_sub(over.saturating_add(1)) {
                kept if kept >= LEAST_NAME => *last = last.chars().take(kept).chain(['…']).collect(),
                _ => self.forms.clear(),
            },
            _ => {}
        }
    }
}

fn with_effort(model: &str, effort: Option<&str>) -> String {
    match effort {
        Some(effort) => format!("{model} (effort {effort})"),
        None => model.to_owned(),
    }
}

fn joined(parts: &[Part]) -> String {
    let said: Vec<&str> = parts.iter().filter_map(|part| part.forms.first().map(String::as_str)).collect();
    said.join(" · ")
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    fn confinement(sandbox: Policy, network: Reach, held_by: &[&str], weaker: &[&str]) -> Confinement {
        let texts = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        Confinement { sandbox, network, held_by: texts(held_by), weaker: texts(weaker) }
    }

    static FULL: LazyLock<Confinement> = LazyLock::new(|| {
        let layers = ["bubblewrap", "landlock 7", "seccomp", "rlimits"];
        confinement(Policy::Workspace, Reach::Off, &layers, &["disk: it can be filled"])
    });

    static WEAK: LazyLock<Confinement> = LazyLock::new(|| {
        let weaker = ["git-metadata: it can be written", "names: they can be found out"];
        confinement(Policy::Workspace, Reach::Off, &["landlock 7", "seccomp", "rlimits"], &weaker)
    });

    static OPEN: LazyLock<Confinement> = LazyLock::new(|| Confinement { network: Reach::On, ..FULL.clone() });

    static HOSTS: LazyLock<Confinement> = LazyLock::new(|| {
        let hosts = vec!["crates.io".to_owned(), "pypi.org".to_owned()];
        Confinement { network: Reach::Hosts(hosts), ..FULL.clone() }
    });

    static WORST: LazyLock<Confinement> =
        LazyLock::new(|| Confinement { network: Reach::On, ..WEAK.clone() });

    static OFF: LazyLock<Confinement> =
        LazyLock::new(|| confinement(Policy::Off, Reach::On, &[], &["everything: all rights"]));

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
            caps: Some(Caps {
                agents: Some(500),
                tokens: None,
                nano: Some(10_000_000_000),
                ms: Some(7_200_000),
            }),
            project: None,
            source,
            confinement: &FULL,
            dir: Path::new("/home/me/project"),
            journal: "/home/me/.local/state/convoke/journal.db".into(),
        }
    }

    #[test]
    fn the_line_tells_everything_where_there_is_room() {
        let expected = "convoke · model claude-opus-4-8 (effort xhigh) · mode on · at most $10.00, 500 \
            agents, 120 min · sandbox workspace · no network · bubblewrap+landlock+seccomp · in \
            /home/me/project · journal /home/me/.local/state/convoke/journal.db";
        assert_eq!(banner(&api(), "claude-opus-4-8").line(None), expected);
    }

    #[test]
    fn the_line_collapses_to_the_width_and_drops_what_confines_last() {
        let check = |confinement: &Confinement, width: usize, expected: &str| {
            let source = api();
            let banner = Banner { confinement, ..banner(&source, "claude-opus-4-8") };
            assert_eq!(banner.line(Some(width)), expected, "at {width}");
        };
        check(
            &FULL,
            160,
            "convoke · opus-4-8 xhigh · mode on · $10.00, 500 agents, 120 min · workspace · no network · \
             bwrap+landlock+seccomp · in project · journal journal.db",
        );
        check(
            &FULL,
            120,
            "opus-4-8 xhigh · mode on · $10.00, 500 agents, 120 min · workspace · no network · \
                bwrap+landlock+seccomp",
        );
        check(&FULL, 80, "opus-4-8 xhigh · $10.00 · workspace · no network · bwrap+landlock+seccomp");
        check(&FULL, 40, "workspace · bwrap+landlock+seccomp");
        check(&WEAK, 80, "opus-4-8 xhigh · $10.00 · workspace · no network · landlock+seccomp (weaker)");
        check(&WEAK, 40, "workspace · landlock+seccomp (weaker)");
        check(&OPEN, 80, "opus-4-8 xhigh · $10.00 · workspace · network open · bwrap+landlock+seccomp");
        check(&OPEN, 40, "opus-4-8 · workspace · network open");
        check(&HOSTS, 80, "opus-4-8 · workspace · network crates.io, pypi.org · bwrap+landlock+seccomp");
        check(&HOSTS, 40, "opus-4-8 · workspace · network 2 hosts");
        check(&OFF, 80, "opus-4-8 xhigh · mode on · $10.00 · UNCONFINED · network open");
        check(&OFF, 40, "opus-4-8 · UNCONFINED · network open");
        check(&OFF, 20, "UNCONFINED");
        let source = api();
        let long = "x".repeat(60);
        let line = banner(&source, &long).line(Some(80));
        assert_eq!(line, format!("{}… · workspace · bwrap+landlock+seccomp", "x".repeat(42)));
    }

    #[test]
    fn what_is_open_or_weaker_is_told_at_every_width() {
        let check = |confinement: &Confinement, told: &[&[&str]], least: usize| {
            for width in least..220 {
                let source = api();
                let line = Banner { confinement, ..banner(&source, "claude-opus-4-8") }.line(Some(width));
                assert!(text_columns(&line) <= width && !line.contains('\n'), "{width}: {line}");
                for forms in told {
                    assert!(forms.iter().any(|form| line.contains(form)), "{width}: {forms:?} in {line}");
                }
            }
        };
        check(&FULL, &[&["workspace"]], 20);
        check(&FULL, &[&["workspace"], &["+landlock+seccomp"]], 40);
        check(&WEAK, &[&["workspace"], &["weaker"]], 20);
        check(&OPEN, &[&["network open", "net open"]], 20);
        check(&OPEN, &[&["network open"], &["workspace"]], 24);
        check(&HOSTS, &[&["network", "2 hosts"]], 20);
        check(&WORST, &[&["network open", "net open"], &["weaker"]], 20);
        check(&OFF, &[&["UNCONFINED"]], 20);
        check(&OFF, &[&["UNCONFINED"], &["network open"]], 36);
    }

    #[test]
    fn layers_that_hold_less_are_told_so_on_the_line_and_below_it() {
        let source = api();
        let weak = Banner { confinement: &WEAK, ..banner(&source, "m") };
        assert!(
            weak.line(None).contains(" · no network · landlock+seccomp (weaker) · "),
            "{}",
            weak.line(None)
        );
        let lines = weak.lines(Look::detect(crate::settings::OutputFormat::Json, true));
        assert!(lines.contains("\nweaker here, without bubblewrap: git-metadata, names ("), "{lines}");
        let full = banner(&source, "m").lines(Look::detect(crate::settings::OutputFormat::Json, true));
        assert!(!full.contains('\n'), "{full}");
    }

    #[test]
    fn other_workers_consent_and_lifted_caps_are_told() {
        let worker = Some(("claude-haiku-4-5", None));
        let source = api();
        let odd = Banner {
            worker,
            mode: Some(false),
            consent: true,
            caps: Some(Caps::default()),
            ..banner(&source, "m")
        };
        let line = odd.line(None);
        let expected =
            "m (effort xhigh), workers claude-haiku-4-5 · mode off, workflows allowed · no caps · ";
        assert!(line.contains(expected), "{line}");
    }

    #[test]
    fn the_offline_model_is_told_as_what_it_is() {
        let line = banner(&ModelSource::Offline, "offline").line(None);
        assert!(
            line.contains("model offline (rules, no intelligence)") && line.contains("no network"),
            "{line}"
        );
    }

    #[test]
    fn nothing_in_a_name_is_obeyed() {
        let source = api();
        let wild = Banner { dir: Path::new("/a\u{1b}[2Jb"), ..banner(&source, "m\u{7}") };
        assert!(!wild.line(None).contains(|c: char| c.is_control()));
    }
}
