//! Lays values over one another and holds a project to narrowing. What a value means is decided in `resolve`.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_claude::{DEFAULT_VERSION, OFFLINE_MODEL, Timeouts};
use convoke_kernel::{Limits, Rule, Sandbox};

use super::caps::{Cap, Caps, Unit};
use super::confine;
use super::file::Stated;
use super::keys::{self, Project};
use super::origin::Origin;
use super::team;
use super::time::show_duration;
use super::value::Value;
use crate::failure::Failure;

/// The model that is asked unless a layer says otherwise.
const MODEL: &str = "claude-opus-4-8";

/// What holds after the layers put so far.
#[derive(Debug, Clone)]
pub(super) struct Layers(BTreeMap<&'static str, Stated>);

impl Layers {
    /// The built-in values.
    pub(super) fn builtin() -> Self {
        let limits = Limits::default();
        let timeouts = Timeouts::default();
        let values = [
            ("model", Value::Text(MODEL.to_owned())),
            ("max_turns", Value::Count(limits.max_turns)),
            ("max_attempts", Value::Count(limits.max_attempts)),
            ("bash_timeout", Value::Time(Duration::from_millis(limits.bash_timeout_ms))),
            ("budget.agents", Value::Cap(Unit::Agents, Cap(Some(500)))),
            ("budget.tokens", Value::Cap(Unit::Tokens, Cap(None))),
            ("budget.usd", Value::Cap(Unit::Dollars, Cap(Some(10_000_000_000)))),
            ("budget.minutes", Value::Cap(Unit::Minutes, Cap(Some(7_200_000)))),
            ("sandbox", Value::Sandbox(Sandbox::Workspace)),
            ("network", Value::Switch(false)),
            ("lean", Value::Text("auto".to_owned())),
            ("mode", Value::Switch(true)),
            ("verify", Value::Voters(1)),
            ("max_concurrent", Value::Count(10)),
            ("max_subtasks", Value::Count(200)),
            ("worker.turns", Value::Count(15)),
            ("team", Value::Switch(true)),
            ("team_idle", Value::Time(team::IDLE)),
            ("memory", Value::Switch(true)),
            ("postgres.connections", Value::Count(8)),
            ("postgres.outage", Value::Time(Duration::from_secs(60))),
            ("plain", Value::Switch(false)),
            ("insecure_http", Value::Switch(false)),
            ("ci_safe", Value::Text("auto".to_owned())),
            ("version", Value::Text(DEFAULT_VERSION.to_owned())),
            ("proxy", Value::Text("environment".to_owned())),
            ("timeouts.connect", Value::Time(timeouts.connect)),
            ("timeouts.first", Value::Time(timeouts.first)),
            ("timeouts.idle", Value::Time(timeouts.idle)),
            ("timeouts.total", Value::Time(timeouts.total)),
        ];
        let stated = |(name, value)| (name, Stated { value, origin: Origin::Default });
        Self(values.into_iter().map(stated).collect())
    }

    /// Puts one value over what is there.
    pub(super) fn put(&mut self, name: &'static str, value: Value, origin: Origin) {
        self.insert(name, Stated { value, origin });
    }

    /// A switch and a list say the same thing about the network, so the later of them replaces the other.
    fn insert(&mut self, name: &'static str, stated: Stated) {
        match name {
            "network" => drop(self.0.remove("network_allow")),
            "network_allow" => {
                let closed = Stated { value: Value::Switch(false), origin: stated.origin.clone() };
                self.0.insert("network", closed);
            }
            _ => {}
        }
        self.0.insert(name, stated);
    }

    /// Puts the user's file over what is there.
    pub(super) fn put_user(&mut self, stated: BTreeMap<&'static str, Stated>) -> Result<(), Failure> {
        if let (Some(network), Some(_)) = (stated.get("network"), stated.get("network_allow")) {
            return Err(confine::twice(&format!("{}: 'network'", network.origin), "'network_allow'"));
        }
        stated.into_iter().for_each(|(name, stated)| self.insert(name, stated));
        Ok(())
    }

    /// Puts a project's file over what is there, as far as it only narrows or is trusted. Returns the keys
    /// that need trust, whether they count or not.
    pub(super) fn put_project(
        &mut self,
        mut stated: BTreeMap<&'static str, Stated>,
        trusted: bool,
    ) -> Result<Vec<(&'static str, Origin)>, Failure> {
        let mut chosen = Vec::new();
        for key in keys::KEYS {
            let Some(stated) = stated.remove(key.name) else { continue };
            match (key.project, self.0.get_mut(key.name)) {
                (Project::Lower, Some(below)) => refuse_higher(key.name, &stated, below)?,
                // A project's rules come to the user's and take nothing away.
                (Project::Adds, Some(below)) => {
                    if let (Value::Rules(more), Value::Rules(below)) = (&stated.value, &mut below.value) {
                        below.extend(more.iter().cloned());
                    }
                    continue;
                }
                (Project::Trusted, _) => {
                    chosen.push((key.name, stated.origin.clone()));
                    if !trusted {
                        continue;
                    }
                    if key.name == "model" && stated.value == Value::Text(OFFLINE_MODEL.to_owned()) {
                        let message = format!("{}: a project cannot choose the offline model", stated.origin);
                        return Err(Failure::usage(message).hint("a person chooses it with --offline"));
                    }
                }
                // There is a built-in value of every key that may be lowered, and the file was refused for a
                // key that may not be set.
                (Project::Lower | Project::MayNot, _) => continue,
                (Project::Adds, None) => {}
            }
            self.insert(key.name, stated);
        }
        Ok(chosen)
    }

    /// Takes credentials of lower layers away: those of a higher one replace them together.
    pub(super) fn forget_credentials(&mut self) {
        self.0.remove("auth.key");
        self.0.remove("auth.bearer");
    }

    /// Where the value of a key came from.
    pub(super) fn origin(&self, name: &str) -> Origin {
        self.0.get(name).map_or(Origin::Default, |stated| stated.origin.clone())
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).map(|stated| &stated.value)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn count(&self, name: &str) -> u32 {
        match self.value(name) {
            Some(Value::Count(count)) => *count,
            _ => 1,
        }
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Switch(true)))
    }

    pub(super) fn sandbox(&self, name: &str) -> Sandbox {
        match self.value(name) {
            Some(Value::Sandbox(sandbox)) => *sandbox,
            _ => Sandbox::ReadOnly,
        }
    }

    pub(super) fn voters(&self, name: &str) -> u32 {
        match self.value(name) {
            Some(Value::Voters(voters)) => *voters,
            _ => 0,
        }
    }

    /// The budget.
    pub(super) fn caps(&self) -> Caps {
        let cap = |name| match self.value(name) {
            Some(Value::Cap(_, cap)) => cap.0,
            _ => None,
        };
        let agents = cap("budget.agents").map(|agents| u32::try_from(agents).unwrap_or(u32::MAX));
        Caps { agents, tokens: cap("budget.tokens"), nano: cap("budget.usd"), ms: cap("budget.minutes") }
    }

    pub(super) fn time(&self, name: &str) -> Duration {
        match self.value(name) {
            Some(Value::Time(time)) => *time,
            _ => Duration::from_secs(1),
        }
    }

    pub(super) fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn headers(&self) -> Vec<(String, String)> {
        match self.value("headers") {
            Some(Value::Headers(pairs)) => pairs.clone(),
            _ => Vec::new(),
        }
    }

    /// The rules about calls, the user's before the project's, and where each came from.
    pub(super) fn rules(&self) -> &[(Rule, Origin)] {
        match self.value("rules") {
            Some(Value::Rules(rules)) => rules,
            _ => &[],
        }
    }

    pub(super) fn rows(&self, name: &str) -> BTreeMap<String, toml::Value> {
        match self.value(name) {
            Some(Value::Rows(rows)) => rows.clone(),
            _ => BTreeMap::new(),
        }
    }
}

fn refuse_higher(name: &str, stated: &Stated, below: &Stated) -> Result<(), Failure> {
    let (higher, new, old) = match (&stated.value, &below.value) {
        (Value::Count(new), Value::Count(old)) => (new > old, new.to_string(), old.to_string()),
        (Value::Time(new), Value::Time(old)) => (new > old, show_duration(*new), show_duration(*old)),
        (Value::Cap(unit, new), Value::Cap(_, old)) => {
            (new.is_higher_than(*old), unit.show(*new), unit.show(*old))
        }
        (Value::Sandbox(Sandbox::Workspace), Value::Sandbox(Sandbox::ReadOnly)) => {
            let message = format!(
                "{}: '{name}' is workspace, and it is read-only ({}); a project may only narrow it",
                stated.origin, below.origin
            );
            return Err(Failure::usage(message).hint("widen it in your own configuration or with a flag"));
        }
        (Value::Switch(true), Value::Switch(false)) => {
            let message = format!(
                "{}: '{name}' is on, and it is off ({}); a project may only switch it off",
                stated.origin, below.origin
            );
            return Err(Failure::usage(message).hint("switch it on in your own configuration or with a flag"));
        }
        _ => return Ok(()),
    };
    if !higher {
        return Ok(());
    }
    let message = format!(
        "{}: '{name}' is {new}, which is higher than {old} ({}); a project may only lower it",
        stated.origin, below.origin
    );
    Err(Failure::usage(message).hint("raise it in your own configuration or with a flag"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_may_be_lowered_has_something_to_be_lower_than() {
        let layers = Layers::builtin();
        for key in keys::KEYS.iter().filter(|key| key.project == Project::Lower) {
            assert!(
                layers.value(key.name).is_some(),
                "{} has no built-in value: a project could set any",
                key.name
            );
        }
    }

    #[test]
    fn what_needs_trust_changes_nothing_without_it() {
        let origin = || Origin::File { path: "/p/.convoke/config.toml".into(), line: 1 };
        let value = || Value::Text("theirs".to_owned());
        for key in keys::KEYS.iter().filter(|key| key.project == Project::Trusted) {
            for trusted in [false, true] {
                let mut layers = Layers::builtin();
                let before = Layers::builtin();
                let stated = BTreeMap::from([(key.name, Stated { value: value(), origin: origin() })]);
                assert_eq!(layers.put_project(stated, trusted).unwrap(), [(key.name, origin())]);
                let expected = if trusted { Some(value()) } else { before.value(key.name).cloned() };
                assert_eq!(layers.value(key.name).cloned(), expected, "{} {trusted}", key.name);
            }
        }
    }
}
