//! The one change the offline model makes: a text is replaced by another, in files that are named, because
//! the prompt says so word for word. And the one change it can judge: a patch that was to do that.

use crate::probes::quoted;

/// The first line of the command that puts a patch on.
pub(super) const TRIAL: &str = "# Putting a patch on, in a place of its own";

/// Longer ones are not put on: the command would not fit into a reply.
const LONGEST_PATCH: usize = 12_000;

/// The first line of the command that replaces.
pub(super) const TITLE: &str = "# Replacing a text, word for word";

/// A replacement that a prompt asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Swap {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) files: Vec<String>,
}

/// A patch in a prompt, and what it was to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) swap: Swap,
    pub(super) patch: String,
}

/// Words by which a prompt says that nothing is to be changed.
const FORBIDS: [&str; 6] =
    ["change nothing", "do not change", "don't change", "only read", "without changing", "edit nothing"];

/// What is to be replaced by what: "replace `a` with `b`", in any quotes.
pub(super) fn read(prompt: &str) -> Option<Swap> {
    for (at, _) in prompt.to_ascii_lowercase().match_indices("replace ") {
        let Some((old, rest)) = in_quotes(&prompt[at + "replace ".len()..]) else { continue };
        let rest = rest.trim_start();
        let Some(rest) = ["with ", "by "].iter().find_map(|word| rest.strip_prefix(word)) else { continue };
        let Some((new, _)) = in_quotes(rest) else { continue };
        return Some(Swap { old: old.to_owned(), new: new.to_owned(), files: Vec::new() });
    }
    None
}

pub(super) fn forbids(prompt: &str) -> bool {
    let low = prompt.to_lowercase();
    FORBIDS.iter().any(|words| low.contains(words))
}

/// Whether a patch in the prompt does what the prompt wants replaced; none if there is no patch or nothing to
/// hold it to.
pub(super) fn patch_holds(prompt: &str) -> Option<bool> {
    let swap = read(prompt)?;
    let patch = patch_in(prompt)?;
    let lines = |sign: char, header: &'static str| {
        patch.lines().filter(move |line| line.starts_with(sign) && !line.starts_with(header))
    };
    let removed = lines('-', "---").any(|line| line.contains(&swap.old));
    let added = lines('+', "+++").any(|line| line.contains(&swap.new));
    let left = lines('+', "+++").any(|line| line.contains(&swap.old) && !swap.new.contains(&swap.old));
    Some(removed && added && !left)
}

/// The patch that a prompt holds, with what it was to replace; none if there is nothing to hold it to, or it
/// is too long.
pub(super) fn trial(prompt: &str) -> Option<Trial> {
    let swap = read(prompt)?;
    let patch = patch_in(prompt)?.trim_start_matches('\n');
    let files = patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::to_owned).collect();
    (patch.len() <= LONGEST_PATCH).then(|| Trial { swap: Swap { files, ..swap }, patch: patch.to_owned() })
}

fn patch_in(prompt: &str) -> Option<&str> {
    Some(prompt.split_once("<patch>")?.1.rsplit_once("</patch>")?.0)
}

fn in_quotes(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next().filter(|c| "`\"'".contains(*c))?;
    let (inside, rest) = text[1..].split_once(mark)?;
    (!inside.is_empty() && !inside.contains('\n') && inside.len() < 200).then_some((inside, rest))
}

impl Swap {
    /// Replaces every occurrence in files that hold no zero byte, then prints how many files changed and the
    /// patch.
    pub(super) fn command(&self) -> String {
        let files = self.files.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" ");
        let old = quoted(&self.old);
        let new = quoted(&self.new);
        [
            TITLE.to_owned(),
            "(".to_owned(),
            format!("export LC_ALL=C GIT_OPTIONAL_LOCKS=0; X={old}; Y={new}; n=0"),
            format!("for f in {files}; do"),
            "  [ -f \"./$f\" ] && [ -w \"./$f\" ] || continue".to_owned(),
            "  t=$(cat \"./$f\" | tr -d '\\0'; printf x); t=${t%x}".to_owned(),
            "  [ \"$(printf %s \"$t\" | wc -c)\" -eq \"$(wc -c < \"./$f\")\" ] || continue".to_owned(),
            "  r=${t//\"$X\"/\"$Y\"}".to_owned(),
            "  [ \"$t\" = \"$r\" ] || { printf %s \"$r\" > \"./$f\" && n=$((n + 1)); }".to_owned(),
            "done".to_owned(),
            "printf 'N\\treplaced\\t%s\\t.\\n' \"$n\"".to_owned(),
            "echo end".to_owned(),
            "git --no-pager diff --no-color --no-ext-diff --no-textconv 2>/dev/null | head -c 6000"
                .to_owned(),
            ":".to_owned(),
            ")".to_owned(),
        ]
        .join("\n")
    }
}

impl Trial {
    /// Copies the files that the patch names to an empty directory, puts it on there, and counts the lines
    /// that still hold what was to be replaced. Nothing in the working directory is touched.
    pub(super) fn command(&self) -> String {
        let files = self.swap.files.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" ");
        // What is put in may hold what was taken out: then nothing can be concluded from what is left.
        let left = if self.swap.new.contains(&self.swap.old) { "" } else { &self.swap.old };
        [
            TRIAL.to_owned(),
            "(".to_owned(),
            format!(
                "export LC_ALL=C GIT_OPTIONAL_LOCKS=0; X={}; P={}; a=0; l=0",
                quoted(left),
                quoted(&self.patch)
            ),
            "d=$(mktemp -d) || exit".to_owned(),
            "export GIT_CEILING_DIRECTORIES=${d%/*}".to_owned(),
            format!("for f in {files}; do"),
            "  case /$f/ in */../*) continue ;; esac".to_owned(),
            "  [ -f \"./$f\" ] && mkdir -p \"$d/./$(dirname \"./$f\")\" && cp \"./$f\" \"$d/./$f\""
                .to_owned(),
            "done".to_owned(),
            "cd \"$d\" || exit".to_owned(),
            "printf %s \"$P\" | git apply --recount --whitespace=nowarn - 2>/dev/null && a=1".to_owned(),
            "[ -z \"$X\" ] || l=$(grep -rhF -- \"$X\" . 2>/dev/null | wc -l)".to_owned(),
            "cd / && rm -rf \"$d\"".to_owned(),
            "printf 'N\\tapplied\\t%d\\t.\\nN\\tleft\\t%d\\t.\\nend\\n' \"$a\" \"$l\"".to_owned(),
            ")".to_owned(),
        ]
        .join("\n")
    }
}

/// The patch that stands behind the end of the command's own lines.
pub(super) fn patch(result: &str) -> Option<&str> {
    let (_, patch) = result.split_once("\nend\n")?;
    patch.starts_with("diff ").then_some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_replacement_in_quotes_is_one() {
        for (prompt, expected) in [
            ("Replace `a b` with `c`.", Some(("a b", "c"))),
            ("please replace \"x\" by 'y' there", Some(("x", "y"))),
            ("Replace the old client with `new`", None),
            ("replace `a` in b", None),
        ] {
            let swap = read(prompt);
            assert_eq!(
                swap.as_ref().map(|swap| (swap.old.as_str(), swap.new.as_str())),
                expected,
                "{prompt}"
            );
        }
    }

    #[test]
    fn a_patch_is_held_to_what_was_to_be_replaced() {
        let prompt = |patch: &str| {
            format!("replace `old` with `new`\n<patch>\n--- a/old\n+++ b/old\n{patch}\n</patch>")
        };
        assert_eq!(patch_holds(&prompt("-an old one\n+a new one")), Some(true));
        assert_eq!(patch_holds(&prompt("-an old one\n+an old new one")), Some(false));
        assert_eq!(patch_holds(&prompt("+a new one")), Some(false));
        assert_eq!(patch_holds("replace `old` with `new`"), None);
        assert_eq!(patch_holds("<patch>-a\n+b</patch>"), None);
    }
}
