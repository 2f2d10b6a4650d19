//! The environment: what Convoke reads of it, and what commands get of it. Secrets reach a command only when
//! the user names them one by one.

use std::collections::BTreeMap;

use convoke_runtime::COMMAND_VARIABLES as ALLOWED;

use crate::failure::Failure;

/// The environment as it was when the process started. Empty variables count as not set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out: no setting is.
    pub(crate) fn of_this_process() -> Self {
        let pairs = std::env::vars_os();
        pairs
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All of it, by name.
    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// The person's editor, named by the variables that other programs read too.
    pub(super) fn editor(&self) -> &str {
        self.get("VISUAL").or_else(|| self.get("EDITOR")).unwrap_or("vi")
    }

    /// These variables of it.
    pub(super) fn only(&self, names: &[&str]) -> Self {
        names.iter().filter_map(|name| Some(((*name).to_owned(), self.get(name)?.to_owned()))).collect()
    }

    /// The environment of commands: the built-in allow-list and what the user passes on. A pattern never
    /// passes on what looks like a secret; that is an error, because a variable that is silently missing is
    /// hard to explain.
    pub(super) fn for_commands(&self, pass: &[String]) -> Result<BTreeMap<String, String>, Failure> {
        let mut passed = BTreeMap::new();
        for (name, value) in &self.0 {
            let by_pattern = pass.iter().find(|pattern| *pattern != name && matches(pattern, name));
            match by_pattern {
                Some(pattern) if !pass.contains(name) && looks_secret(name) => {
                    let message = format!(
                        "env.pass '{pattern}' would show {name} to commands, which looks like a secret"
                    );
                    return Err(Failure::usage(message)
                        .hint(format!("write the pattern more narrowly, or add '{name}' by its full name")));
                }
                _ => {}
            }
            if by_pattern.is_some()
                || pass.contains(name)
                || ALLOWED.iter().any(|allowed| matches(allowed, name))
            {
                passed.insert(name.clone(), value.clone());
            }
        }
        // A command's output does not go to a terminal, so nothing should be drawn for one.
        passed.entry("TERM".to_owned()).or_insert_with(|| "dumb".to_owned());
        Ok(passed)
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Whether a name fits a pattern, in which each `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(tail)
}

fn looks_secret(name: &str) -> bool {
    const ANYWHERE: &[&str] =
        &["SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "COOKIE"];
    const WHOLE_WORDS: &[&str] = &["KEY", "KEYS", "PASS", "PWD", "AUTH", "PAT", "PRIVATE"];
    let name = name.to_ascii_uppercase();
    let has_word = name.split('_').any(|word| WHOLE_WORDS.contains(&word));
    name.starts_with("ANTHROPIC_")
        || ANYWHERE.iter().any(|part| name.contains(part))
        || (has_word && name != "PWD")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn check(pass: &[&str], expected: &[&str]) {
        let env = environment(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "k"),
            ("GITHUB_TOKEN", "t"),
            ("MY_APP_MODE", "x"),
            ("MY_APP_DB_PASSWORD", "p"),
        ]);
        let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        let names: Vec<String> =
            env.for_commands(&pass).unwrap().into_keys().filter(|name| name != "TERM").collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn commands_see_the_allow_list_and_what_the_user_names() {
        check(&[], &["LC_ALL", "PATH"]);
        check(&["MY_APP_MODE"], &["LC_ALL", "MY_APP_MODE", "PATH"]);
        check(&["MY_*_MODE"], &["LC_ALL", "MY_APP_MODE", "PATH"]);
        check(&["GITHUB_TOKEN"], &["GITHUB_TOKEN", "LC_ALL", "PATH"]);
        check(&["MY_APP_*", "MY_APP_DB_PASSWORD"], &["LC_ALL", "MY_APP_DB_PASSWORD", "MY_APP_MODE", "PATH"]);
    }

    #[test]
    fn the_editor_is_visual_then_editor_then_vi() {
        let check =
            |pairs: &[(&str, &str)], expected: &str| assert_eq!(environment(pairs).editor(), expected);
        check(&[], "vi");
        check(&[("EDITOR", "nano")], "nano");
        check(&[("EDITOR", "nano"), ("VISUAL", "code --wait")], "code --wait");
        check(&[("EDITOR", "nano"), ("VISUAL", "")], "nano");
    }

    #[test]
    fn a_pattern_that_would_pass_a_secret_is_an_error_that_names_it() {
        let env = environment(&[("GITHUB_TOKEN", "t")]);
        let failure = env.for_commands(&["GITHUB_*".to_owned()]).unwrap_err();
        let expected = "env.pass 'GITHUB_*' would show GITHUB_TOKEN to commands, which looks like a secret";
        assert_eq!(failure.message, expected);
    }

    #[test]
    fn names_that_look_like_secrets_are_known() {
        for name in
            ["ANTHROPIC_X", "AWS_ACCESS_KEY_ID", "npm_token", "DB_PASS", "CLIENT_SECRET", "SSH_AUTH_SOCK"]
        {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["PATH", "PWD", "KEYBOARD", "MONKEY_MODE", "COMPASS", "EDITOR"] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
