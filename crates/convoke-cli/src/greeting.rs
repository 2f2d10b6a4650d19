//! What a session says when it begins: the model that answers, what it may touch, what it may spend, how to
//! stop it and where help is. Five lines for a person who leads a session for the first time, one afterwards.
//! Facts in, lines out; it looks nothing up. What does not fit is said shorter, and what is open or weaker
//! than it could be is never left out.

use std::path::Path;

use convoke_kernel::{Confinement, Network, Sandbox};

use crate::confine::{layers_words, network_words, weaker_names};
use crate::render::{count, revealed, text_columns};
use crate::settings::{Caps, ModelSource, Origin, Settings, caps_words};

/// The facts of a session that begins or is gone on with.
#[derive(Debug, Clone)]
pub(crate) struct Greeting<'a> {
    /// The configured source of answers.
    pub(crate) source: &'a ModelSource,
    /// The model and its effort.
    pub(crate) model: &'a str,
    pub(crate) effort: Option<&'a str>,
    /// Where the credentials came from, if there are any.
    pub(crate) credentials: Option<String>,
    /// What holds its commands.
    pub(crate) confinement: &'a Confinement,
    /// Where it works.
    pub(crate) dir: &'a Path,
    /// What it may spend.
    pub(crate) caps: Caps,
    /// The session's id, if it has one already.
    pub(crate) session: Option<&'a str>,
    /// Whether nothing is drawn: there, lines are typed and keys mean nothing.
    pub(crate) plain: bool,
}

/// The column in which the facts begin.
const LABEL: usize = 9;
/// As many characters of an id as people type.
const SHORT_ID: usize = 10;

impl<'a> Greeting<'a> {
    /// What a session with these settings says.
    pub(crate) fn new(
        settings: &'a Settings,
        (model, effort): (&'a str, Option<&'a str>),
        confinement: &'a Confinement,
        session: Option<&'a str>,
    ) -> Self {
        let origin = |key| match settings.origin(key)? {
            Origin::Variable(name) => Some((*name).to_owned()),
            origin => Some(origin.to_string()),
        };
        let credentials = match &settings.source {
            ModelSource::Api { key: Some(_), .. } => origin("auth.key"),
            ModelSource::Api { bearer: Some(_), .. } => origin("auth.bearer"),
            _ => None,
        };
        let source = &settings.source;
        let dir = settings.dir.as_path();
        let caps = settings.caps;
        Self { source, model, effort, credentials, confinement, dir, caps, session, plain: settings.plain }
    }

    /// The lines, each in at most this many columns.
    pub(crate) fn lines(&self, is_first: bool, width: usize) -> Vec<String> {
        if !is_first {
            return vec![fitting(self.short(), width)];
        }
        let rows = [
            ("answers", self.answers()),
            ("touches", self.touches()),
            ("spends", self.spends()),
            ("stops", self.stops()),
            ("help", help(self.plain)),
        ];
        let row = |(label, forms): (&str, Vec<String>)| {
            let forms = forms.into_iter().map(|form| format!("{label:LABEL$}{form}")).collect();
            fitting(forms, width)
        };
        rows.into_iter().map(row).collect()
    }

    /// The model that answers, from its longest form to its shortest.
    fn answers(&self) -> Vec<String> {
        let (key, server) = match self.source {
            ModelSource::Offline => {
                return forms(&[
                    "the built-in offline model: by rules and without any intelligence, a key or a server",
                    "the offline model, by rules and without any intelligence",
                    "offline: rules, no intelligence",
                ]);
            }
            ModelSource::Nothing => {
                return forms(&[
                    "the built-in offline model, by rules and without any intelligence: there is no \
                     ANTHROPIC_API_KEY (--offline chooses it)",
                    "the offline model, by rules alone: there is no ANTHROPIC_API_KEY",
                    "offline: no ANTHROPIC_API_KEY",
                ]);
            }
            ModelSource::Api { base_url, key, bearer } => {
                let key = match (key, bearer) {
                    (Some(_), _) => "API key",
                    (None, Some(_)) => "bearer token",
                    (None, None) => "no key",
                };
                let usual = base_url == convoke_claude::DEFAULT_BASE_URL;
                (key, if usual { None } else { Some(host(base_url)) })
            }
        };
        let from = self.credentials.as_ref().map(|origin| format!(" of {origin}")).unwrap_or_default();
        let at = server.map(|server| format!(" at {server}")).unwrap_or_default();
        let long = match self.effort {
            Some(effort) => format!("{} (effort {effort})", self.model),
            None => self.model.to_owned(),
        };
        let short = self.short_model();
        forms(&[
            &format!("{long}{at}, with the {key}{from}").replace("with the no key", "without a key"),
            &format!("{long}{at}, {key}{from}"),
            &format!("{long}{at}, {key}"),
            &format!("{short}{at}, {key}"),
            &format!("{short}, {key}"),
            &short,
        ])
    }

    /// What its commands may touch.
    fn touches(&self) -> Vec<String> {
        let dir = self.dir.display().to_string();
        let name = dir_name(self.dir);
        let long_net = network_words(self.confinement);
        let net = self.short_network();
        if self.confinement.sandbox == Sandbox::Off {
            return forms(&[
                &format!("everything you may: commands run UNCONFINED (--sandbox off) in {dir} · {long_net}"),
                &format!("UNCONFINED (--sandbox off) in {name} · {long_net}"),
                "UNCONFINED · network open",
            ]);
        }
        let weaker = self.weaker();
        let policy = self.confinement.sandbox.name();
        let held = layers_words(self.confinement);
        let what = match self.confinement.sandbox {
            Sandbox::ReadOnly => "read in",
            Sandbox::Workspace | Sandbox::Off => "change files in",
        };
        let held = if held.is_empty() { String::new() } else { format!(", held by {held}") };
        forms(&[
            &format!("commands may {what} {dir} alone (sandbox {policy}{held}){weaker} · {long_net}"),
            &format!("{dir} alone (sandbox {policy}{held}){weaker} · {long_net}"),
            &format!("{dir} alone (sandbox {policy}){weaker} · {long_net}"),
            &format!("{name} (sandbox {policy}){weaker} · {long_net}"),
            &format!("{name} ({policy}){weaker} · {net}"),
            &format!("{policy}{weaker} · {net}"),
        ])
    }

    /// What it may spend.
    fn spends(&self) -> Vec<String> {
        let words = caps_words(&self.caps);
        if self.caps == Caps::default() {
            return forms(&[
                "as much as it takes: there are no caps (/budget sets them)",
                "no caps (/budget sets them)",
            ]);
        }
        let first = words.split(", ").next().unwrap_or_default();
        forms(&[
            &format!("at most {words} in this session, all agents together; /budget grants more"),
            &format!("at most {words}; /budget grants more"),
            &format!("at most {words}"),
            &words,
            &format!("{first} and other caps: /budget"),
            first,
        ])
    }

    /// How it is stopped, and that nothing is lost by it.
    fn stops(&self) -> Vec<String> {
        let id: String = self.session.map_or("ID".to_owned(), |id| id.chars().take(SHORT_ID).collect());
        let on = format!("`convoke session {id}` goes on");
        if self.plain {
            return forms(&[
                &format!(
                    "Ctrl-C stops safely, Ctrl-C again cuts, Ctrl-D leaves; nothing is lost by any of them: \
                        {on}"
                ),
                &format!("Ctrl-C, again cuts, Ctrl-D leaves: {on}").replace('`', ""),
                "Ctrl-C, Ctrl-D",
            ]);
        }
        forms(&[
            &format!("Esc stops safely, Esc again cuts, Ctrl-D leaves; nothing is lost by any of them: {on}"),
            &format!("Esc stops, Esc again cuts, Ctrl-D leaves; nothing is lost: {on}"),
            &format!("Esc, again cuts, Ctrl-D leaves: {on}").replace('`', ""),
            "Esc, Esc again, Ctrl-D leaves",
            "Esc, Ctrl-D",
        ])
    }

    /// Everything on one line.
    fn short(&self) -> Vec<String> {
        let words = caps_words(&self.caps);
        let first = words.split(", ").next().unwrap_or_default();
        let who = self.short_model();
        let dir = self.dir.display().to_string();
        let name = dir_name(self.dir);
        let weaker = self.weaker();
        let policy = match self.confinement.sandbox {
            Sandbox::Off => "UNCONFINED",
            policy => policy.name(),
        };
        let long_net = network_words(self.confinement);
        let net = self.short_network();
        let closed = self.confinement.network == Network::Off && self.confinement.sandbox != Sandbox::Off;
        let net_or_nothing = if closed { String::new() } else { format!(" · {net}") };
        forms(&[
            &format!("convoke · {who} · at most {words} · {dir} · {policy}{weaker} · {long_net} · /help")
                .replace("at most no caps", "no caps"),
            &format!("{who} · {words} · {name} · {policy}{weaker} · {long_net} · /help"),
            &format!("{who} · {words} · {policy}{weaker} · {net} · /help"),
            &format!("{who} · {first} · {policy}{weaker} · {net} · /help"),
            &format!("{who} · {policy}{weaker}{net_or_nothing} · /help"),
            &format!("{policy}{weaker}{net_or_nothing} · /help"),
            &format!("{policy}{weaker}{net_or_nothing}"),
        ])
    }

    fn short_model(&self) -> String {
        let family = self.model.trim_start_matches("claude-");
        match (self.source, self.effort) {
            (ModelSource::Offline | ModelSource::Nothing, _) => "offline".to_owned(),
            (ModelSource::Api { .. }, Some(effort)) => format!("{family} {effort}"),
            (ModelSource::Api { .. }, None) => family.to_owned(),
        }
    }

    fn short_network(&self) -> String {
        match (&self.confinement.network, self.confinement.sandbox) {
            (Network::Hosts(hosts), Sandbox::ReadOnly | Sandbox::Workspace) => {
                format!("network {}", count(u32::try_from(hosts.len()).unwrap_or(u32::MAX), "host"))
            }
            _ => network_words(self.confinement),
        }
    }

    fn weaker(&self) -> &'static str {
        let held = self.confinement.sandbox != Sandbox::Off;
        if held && !weaker_names(self.confinement).is_empty() { " (weaker)" } else { "" }
    }
}

fn help(plain: bool) -> Vec<String> {
    if plain {
        return forms(&["/help lists the commands; /team, /tasks and /inbox say who works", "/help"]);
    }
    forms(&[
        "/help lists the commands and keys; Ctrl-O shows all agents at work, and ? helps there; `convoke \
         man` and docs/terminal.md say more",
        "/help lists commands and keys; Ctrl-O shows who works (? helps)",
        "/help; Ctrl-O, and ? there",
        "/help",
    ])
}

/// Texts in which a terminal obeys nothing and nothing is hidden: a person agrees to what they say.
fn forms(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| revealed(text)).collect()
}

/// The server of an address, without a user and a password.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

fn dir_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The first of these that fits; the last of them as far as it does.
fn fitting(forms: Vec<String>, width: usize) -> String {
    let last = forms.last().cloned().unwrap_or_default();
    if let Some(form) = forms.into_iter().find(|form| text_columns(form) <= width) {
        return form;
    }
    let mut cut = String::new();
    for c in last.chars() {
        if text_columns(&cut) + text_columns(&c.to_string()) >= width {
            break;
        }
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use convoke_claude::Secret;

    use super::*;

    fn confinement(sandbox: Sandbox, network: Network, weaker: &[&str]) -> Confinement {
        let texts = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let held_by = texts(&["bubblewrap", "landlock 7", "seccomp"]);
        Confinement { sandbox, network, held_by, weaker: texts(weaker) }
    }

    fn usual() -> Confinement {
        confinement(Sandbox::Workspace, Network::Off, &["disk: it can be filled"])
    }

    fn api(base_url: &str) -> ModelSource {
        ModelSource::Api { base_url: base_url.to_owned(), key: Some(Secret::new("sk-secret")), bearer: None }
    }

    fn greeting<'a>(source: &'a ModelSource, confinement: &'a Confinement) -> Greeting<'a> {
        Greeting {
            source,
            model: "claude-opus-4-8",
            effort: Some("xhigh"),
            credentials: Some("ANTHROPIC_API_KEY".to_owned()),
            confinement,
            dir: Path::new("/home/me/project"),
            caps: Caps { agents: Some(500), tokens: None, nano: Some(10_000_000_000), ms: Some(7_200_000) },
            session: Some("s_k3abcdefghijklmn"),
            plain: false,
        }
    }

    #[track_caller]
    fn check(greeting: &Greeting<'_>, is_first: bool, width: usize, expected: &[&str]) {
        assert_eq!(greeting.lines(is_first, width), expected, "at {width}");
    }

    #[test]
    fn a_first_start_explains_itself_in_five_lines_at_every_width() {
        let source = api(convoke_claude::DEFAULT_BASE_URL);
        let held = usual();
        let greeting = greeting(&source, &held);
        check(
            &greeting,
            true,
            200,
            &[
                "answers  claude-opus-4-8 (effort xhigh), with the API key of ANTHROPIC_API_KEY",
                "touches  commands may change files in /home/me/project alone (sandbox workspace, held by \
                 bubblewrap+landlock+seccomp) · no network",
                "spends   at most $10.00, 500 agents, 120 min in this session, all agents together; /budget \
                    grants more",
                "stops    Esc stops safely, Esc again cuts, Ctrl-D leaves; nothing is lost by any of them: \
                 `convoke session s_k3abcdef` goes on",
                "help     /help lists the commands and keys; Ctrl-O shows all agents at work, and ? helps \
                 there; `convoke man` and docs/terminal.md say more",
            ],
        );
        let narrow = [
            "answers  claude-opus-4-8 (effort xhigh), API key of ANTHROPIC_API_KEY",
            "touches  /home/me/project alone (sandbox workspace) · no network",
            "spends   at most $10.00, 500 agents, 120 min; /budget grants more",
            "stops    Esc, again cuts, Ctrl-D leaves: convoke session s_k3abcdef goes on",
            "help     /help lists commands and keys; Ctrl-O shows who works (? helps)",
        ];
        check(&greeting, true, 76, &narrow);
        let mut usual = narrow;
        usual[0] = "answers  claude-opus-4-8 (effort xhigh), with the API key of ANTHROPIC_API_KEY";
        check(&greeting, true, 80, &usual);
        check(
            &greeting,
            true,
            40,
            &[
                "answers  opus-4-8 xhigh, API key",
                "touches  workspace · no network",
                "spends   $10.00, 500 agents, 120 min",
                "stops    Esc, Esc again, Ctrl-D leaves",
                "help     /help; Ctrl-O, and ? there",
            ],
        );
    }

    #[test]
    fn later_starts_get_one_line() {
        let source = api(convoke_claude::DEFAULT_BASE_URL);
        let held = usual();
        let greeting = greeting(&source, &held);
        let long = "convoke · opus-4-8 xhigh · at most $10.00, 500 agents, 120 min · /home/me/project · \
            workspace · no network · /help";
        check(&greeting, false, 200, &[long]);
        check(
            &greeting,
            false,
            80,
            &["opus-4-8 xhigh · $10.00, 500 agents, 120 min · workspace · no network · /help"],
        );
        check(&greeting, false, 40, &["opus-4-8 xhigh · workspace · /help"]);
    }

    #[test]
    fn no_line_is_too_wide_and_what_is_open_or_weaker_is_told_at_every_width() {
        let weak = ["names: they can be found out"];
        let hosts = Network::Hosts(vec!["crates.io".to_owned(), "pypi.org".to_owned()]);
        let cases = [
            (usual(), &["workspace"][..]),
            (confinement(Sandbox::Workspace, Network::On, &[]), &["network open"]),
            (confinement(Sandbox::ReadOnly, Network::Off, &weak), &["read-only", "(weaker)"]),
            (confinement(Sandbox::Workspace, hosts, &[]), &["network"]),
            (confinement(Sandbox::Off, Network::On, &weak), &["UNCONFINED", "network open"]),
        ];
        for (held, told) in &cases {
            let source = api("https://me:pw@gateway.example/v1");
            let greeting = greeting(&source, held);
            for width in 1..=220 {
                for (is_first, number) in [(true, 5), (false, 1)] {
                    let lines = greeting.lines(is_first, width);
                    assert_eq!(lines.len(), number);
                    let fits = |line: &String| text_columns(line) <= width && !line.contains('\n');
                    assert!(lines.iter().all(fits), "{width}: {lines:?}");
                    let all = lines.join("\n");
                    assert!(!all.contains("pw") && !all.contains("sk-secret"), "{all}");
                    assert!(
                        width < 40 || told.iter().all(|word| all.contains(word)),
                        "{width}: {told:?} in {all}"
                    );
                }
            }
        }
    }

    #[test]
    fn who_answers_is_told_as_it_is() {
        let held = usual();
        let check = |source: &ModelSource, width: usize, expected: &str| {
            let line = greeting(source, &held).lines(true, width).remove(0);
            assert_eq!(line, format!("answers  {expected}"));
        };
        let long = "the offline model, by rules and without any intelligence";
        let short = "offline: rules, no intelligence";
        check(&ModelSource::Offline, 80, long);
        check(&ModelSource::Offline, 40, short);
        check(&ModelSource::Nothing, 80, "the offline model, by rules alone: there is no ANTHROPIC_API_KEY");
        check(&ModelSource::Nothing, 40, "offline: no ANTHROPIC_API_KEY");
        check(
            &api("http://me:pw@localhost:8080/v1"),
            90,
            "claude-opus-4-8 (effort xhigh) at localhost:8080, API key of ANTHROPIC_API_KEY",
        );
        let open = ModelSource::Api { base_url: "http://h".to_owned(), key: None, bearer: None };
        let line = Greeting { credentials: None, ..greeting(&open, &held) }.lines(true, 100).remove(0);
        assert_eq!(line, "answers  claude-opus-4-8 (effort xhigh) at h, without a key");
    }

    #[test]
    fn lifted_caps_are_told_and_nothing_in_a_name_is_obeyed() {
        let source = ModelSource::Offline;
        let held = usual();
        let wild = Path::new("/a\u{1b}[2J\u{202e}b");
        let greeting =
            Greeting { caps: Caps::default(), dir: wild, session: None, ..greeting(&source, &held) };
        let lines = greeting.lines(true, 80);
        assert_eq!(lines[2], "spends   as much as it takes: there are no caps (/budget sets them)");
        assert!(lines[3].ends_with("convoke session ID goes on"), "{}", lines[3]);
        assert!(!lines.concat().contains(|c: char| c.is_control() || c == '\u{202e}'), "{lines:?}");
        assert!(greeting.lines(false, 200)[0].contains(" · no caps · "), "{:?}", greeting.lines(false, 200));
    }

    #[test]
    fn where_nothing_is_drawn_no_key_is_named_that_is_none() {
        let source = ModelSource::Offline;
        let held = Confinement::default();
        for width in [40, 76, 200] {
            let lines = Greeting { plain: true, ..greeting(&source, &held) }.lines(true, width).join("\n");
            assert!(
                lines.contains("Ctrl-C") && !lines.contains("Esc") && !lines.contains("Ctrl-O"),
                "{width}: {lines}"
            );
        }
    }
}
