//! What a person wants of a team, by the words of the request: tasks, teammates, letters, and what is to be
//! looked up. It hears intentions and not sentences; what it does not know it says, and a request without any
//! of these is no team's business.

mod sentences;

pub(super) use self::sentences::words;
use self::sentences::{is, items, joined_bullets, parts, sentences, without_leading};
use super::names::{self, Spawn, number};
use super::work;
use crate::intent::mask;

/// What is wished for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TeamRequest {
    /// The subjects of tasks for the board.
    pub(super) tasks: Vec<String>,
    /// Whether they depend on each other: the first before all others, the last after them.
    pub(super) ordered: bool,
    pub(super) spawns: Vec<Spawn>,
    /// Letters to members: the receiver and the text.
    pub(super) letters: Vec<(String, String)>,
    pub(super) broadcasts: Vec<String>,
    pub(super) shutdowns: Vec<String>,
    pub(super) looks: Vec<&'static str>,
    /// Whether plans are to be approved, one by one; the last holds for all that follow.
    pub(super) verdicts: Vec<bool>,
    /// Parts that no rule knows.
    pub(super) unknown: Vec<String>,
}

/// Words for a member that was named before.
const PRONOUNS: &str = "him her his it its them their they he she both everyone everybody all each";

/// Reads a request; `known` are the members there are. None if it is no team's business.
pub(super) fn read(request: &str, known: &[String]) -> Option<TeamRequest> {
    if request.trim_start().starts_with('[') {
        // What the harness tells begins like this, and is no wish.
        return None;
    }
    let (masked, quotes) = mask(&joined_bullets(request));
    let mut reader = Reader {
        wishes: TeamRequest::default(),
        known,
        quotes: &quotes,
        last: Vec::new(),
        plan: false,
        sure: false,
    };
    let mut teammates = false;
    for sentence in sentences(&masked) {
        for part in parts(&sentence) {
            teammates |= words(&part).iter().any(|word| word == "teammates" || word == "teammate");
            reader.part(&part);
        }
    }
    let Reader { mut wishes, sure, .. } = reader;
    if !sure {
        return None;
    }
    // Tasks that teammates are to be watched at need some.
    if !wishes.tasks.is_empty() && teammates && wishes.spawns.is_empty() && known.is_empty() {
        wishes.spawns = names::spawns("two teammates", known);
    }
    Some(wishes)
}

struct Reader<'a> {
    wishes: TeamRequest,
    known: &'a [String],
    quotes: &'a [String],
    /// The members that were spoken of last.
    last: Vec<String>,
    /// Whether a plan was spoken of.
    plan: bool,
    /// Whether something was heard that only a team can do.
    sure: bool,
}

impl Reader<'_> {
    fn part(&mut self, said: &str) {
        let said = without_leading(said);
        let words = words(said);
        let Some(first) = words.first().map(String::as_str) else { return };
        let rest = said.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
        let has = |word: &str| words.iter().any(|other| other == word);
        let team = ["teammate", "teammates"].iter().any(|word| has(word));
        let known = match first {
            "spawn" | "hire" | "recruit" => self.spawn(rest),
            "create" | "add" | "make" | "start" | "launch" | "put" | "post" if self.tasks(said, &words) => {
                true
            }
            "create" | "add" | "make" | "start" | "launch" if team => self.spawn(rest),
            "broadcast" | "announce" => self.broadcast(rest),
            "have" | "let" | "get" | "ask" | "tell" | "make" => self.told(rest),
            "send" | "message" => self.letter(said),
            "request" | "shut" | "shutdown" | "stop" | "dismiss" => self.shutdown(said, &words),
            "list" | "show" | "check" | "read" => self.look(&words),
            "review" | "approve" | "reject" | "accept" | "decline" | "refuse" => self.verdict(first, &words),
            // A wish to watch asks for nothing beside what is to be watched.
            "watch" | "observe" | "wait" | "see" => true,
            _ => false,
        };
        if !known {
            self.wishes.unknown.push(self.unmasked(said).trim_end_matches(['.', ',']).to_owned());
        }
    }

    fn spawn(&mut self, rest: &str) -> bool {
        let taken: Vec<String> =
            self.wishes.spawns.iter().map(|one| one.name.clone()).chain(self.known.to_vec()).collect();
        let mut found = names::spawns(&self.unmasked(rest), &taken);
        for one in &mut found {
            one.work = one.work.take().filter(|work| !work::waits(work));
        }
        self.last = found.iter().map(|one| one.name.clone()).collect();
        self.wishes.spawns.append(&mut found);
        self.sure |= !self.last.is_empty();
        !self.last.is_empty()
    }

    /// Tasks for the board: how many, or which.
    fn tasks(&mut self, said: &str, words: &[String]) -> bool {
        let Some(at) = words.iter().position(|word| word == "task" || word == "tasks") else { return false };
        let next = words.get(at + 1).map_or("", String::as_str);
        let open = [
            "",
            "on",
            "with",
            "for",
            "to",
            "that",
            "called",
            "named",
            "in",
            "from",
            "and",
            "where",
            "depending",
        ];
        if at > 6 || !(open.contains(&next) || next.starts_with('§') || said.contains(':')) {
            return false;
        }
        let many = words[1..at].iter().find_map(|word| number(word));
        let board = words.iter().any(|word| word == "board");
        let depends =
            ["depend", "blocked", "in order", "one after", "->", "→"].iter().any(|sign| said.contains(sign));
        let listed: Vec<String> = match said.split_once(':') {
            Some((_, list)) => items(&self.unmasked(list)),
            None if !self.quoted(said).is_empty() => self.quoted(said),
            None if board => {
                let behind =
                    [" board to ", " board for "].iter().find_map(|sign| Some(said.split_once(sign)?.1));
                behind.map(|what| items(&self.unmasked(what))).unwrap_or_default()
            }
            None if next == "to" || next == "for" => {
                let (_, what) =
                    said.split_once(if next == "to" { " to " } else { " for " }).unwrap_or_default();
                if next == "to" && words.get(at + 2).is_some_and(|word| is(word, "the a an this")) {
                    return false;
                }
                items(&self.unmasked(what))
            }
            None => Vec::new(),
        };
        if listed.is_empty()
            && many.is_none()
            && !board
            && !depends
            && words[at] == "tasks"
            && !next.is_empty()
        {
            return false;
        }
        let number = many.unwrap_or(if words[at] == "tasks" { 3 } else { 1 });
        self.wishes.tasks.extend(if listed.is_empty() { work::subjects(number) } else { listed });
        self.wishes.ordered |= depends;
        self.sure = true;
        true
    }

    fn broadcast(&mut self, rest: &str) -> bool {
        let text = self.text_in(rest).unwrap_or_else(|| {
            let plain = self.unmasked(rest);
            plain.split(" to all").next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
        });
        self.sure |= !text.is_empty();
        self.wishes.broadcasts.extend(Some(text).filter(|text| !text.is_empty()));
        true
    }

    /// "have alice send bob a message", "let it find work", "ask bob to count the lines".
    fn told(&mut self, rest: &str) -> bool {
        let (who, what) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let targets = self.targets(who);
        let what = what.trim().trim_start_matches("to ").trim_end_matches(['.', ',']);
        if targets.is_empty() || what.is_empty() {
            return false;
        }
        self.sure = true;
        let words = words(what);
        let has = |word: &str| words.iter().any(|other| other == word);
        for target in targets {
            if let Some((to, text)) = self.message(what) {
                let text =
                    text.unwrap_or_else(|| format!("Hello {to}, this is {target}. Are you ready to work?"));
                self.wishes.letters.push((target, format!("Send {to} a message: {text}")));
            } else if has("plan")
                && ["submit", "present", "hand", "write", "make", "propose"].iter().any(|word| has(word))
            {
                self.plan = true;
                self.set_plan(&target);
            } else if has("shut") || has("shutdown") || has("stop") {
                self.wishes.shutdowns.push(target);
            } else if !work::waits(what) {
                let what = self.unmasked(what);
                match self.wishes.spawns.iter_mut().find(|one| one.name == target && one.work.is_none()) {
                    Some(one) => one.work = Some(what),
                    None => self.wishes.letters.push((target, what)),
                }
            }
        }
        true
    }

    /// A letter of the lead's own.
    fn letter(&mut self, said: &str) -> bool {
        let Some((to, text)) = self.message(said) else { return false };
        let targets = if self.is_known(&to) || !is(&to, PRONOUNS) { vec![to] } else { self.targets(&to) };
        let text = text.unwrap_or_else(|| "Hello from the lead. Please say what you are doing.".to_owned());
        self.sure |= !targets.is_empty();
        self.wishes.letters.extend(targets.into_iter().map(|to| (to, text.clone())));
        true
    }

    /// The receiver of a message and its text, in "send bob a message: …" and its like.
    fn message(&self, said: &str) -> Option<(String, Option<String>)> {
        let head = said.split(':').next().unwrap_or_default();
        let words = words(head);
        let first = words.first()?.as_str();
        let noun =
            words.iter().position(|word| ["message", "letter", "mail", "note"].contains(&word.as_str()));
        let to = match first {
            "send" | "write" | "drop" => {
                let noun = noun?;
                let behind = words[noun..]
                    .iter()
                    .position(|word| word == "to")
                    .and_then(|at| words.get(noun + at + 1));
                let before =
                    words.get(1).filter(|word| !["a", "an", "the", "message"].contains(&word.as_str()));
                behind.or(before)?
            }
            "message" | "tell" | "ask" | "greet" => {
                words.get(1).filter(|word| self.is_known(word) || first == "message")?
            }
            _ => return None,
        };
        if ["me", "us"].contains(&to.as_str()) {
            return None;
        }
        let text = self.text_in(said).or_else(|| {
            let behind = said.split_once(&format!("{to} "))?.1;
            let word = words.iter().position(|word| word == to).and_then(|at| words.get(at + 1))?;
            (noun.is_none() && ["to", "that", "about", "whether"].contains(&word.as_str()))
                .then(|| self.unmasked(behind))
        });
        Some((to.clone(), text))
    }

    fn shutdown(&mut self, said: &str, words: &[String]) -> bool {
        let asks = words.iter().any(|word| word.starts_with("shut") || word == "stop" || word == "dismiss");
        let mut targets: Vec<String> = words[1..].iter().flat_map(|word| self.targets(word)).collect();
        if targets.is_empty() && words.iter().any(|word| word == "shutdown") {
            let owner =
                said.split_whitespace().find_map(|word| word.strip_suffix("'s").or(word.strip_suffix("’s")));
            let of = words
                .windows(2)
                .find(|pair| ["of", "for", "from"].contains(&pair[0].as_str()))
                .map(|pair| &pair[1]);
            targets.extend(owner.map(str::to_lowercase).or(of.cloned()));
        }
        let known = asks && !targets.is_empty();
        if known {
            targets.dedup();
            self.sure = true;
            self.last.clone_from(&targets);
            self.wishes.shutdowns.append(&mut targets);
        }
        known
    }

    /// What is only to be looked up. What follows the object says what for.
    fn look(&mut self, words: &[String]) -> bool {
        let object = words[1..]
            .iter()
            .find(|word| !is(word, "the all my our current for at lead lead's task team's your me"));
        let (object, at) = match object {
            Some(object) => {
                (object.as_str(), words.iter().position(|word| word == object).unwrap_or_default())
            }
            None => return false,
        };
        let next = words.get(at + 1).map_or("", String::as_str);
        let ends = is(next, "to and for with on so after before again of") || next.is_empty();
        let tool = match object {
            "teammates" | "teammate" | "team" | "roster" | "members" if ends || next == "members" => {
                "list_teammates"
            }
            "inbox" | "mailbox" | "mail" if ends => "read_inbox",
            "board" | "tasks"
                if ends && (object == "board" || words.len() <= 3 || words.contains(&"board".to_owned())) =>
            {
                "task_list"
            }
            _ => return false,
        };
        self.sure = true;
        if !self.wishes.looks.contains(&tool) {
            self.wishes.looks.push(tool);
        }
        true
    }

    /// What is to be said to plans.
    fn verdict(&mut self, first: &str, words: &[String]) -> bool {
        let alone = words.len() == 1 || words.get(1).is_some_and(|word| is(word, "it this that"));
        let plan = words.iter().any(|word| word == "plan" || word == "plans");
        if first == "review" && (plan || words.len() == 1) {
            // "Review and reject": what comes of it stands in the next part.
            self.plan |= plan;
            self.plan_of(words);
            return true;
        }
        if first == "review"
            || !(plan || alone && self.plan || self.plan && words.iter().any(|word| is(word, "first second")))
        {
            return false;
        }
        self.plan = true;
        self.sure = true;
        self.plan_of(words);
        self.wishes.verdicts.push(["approve", "accept"].contains(&first));
        true
    }

    /// A teammate that is spawned here and whose plan is spoken of has to hand one in.
    fn plan_of(&mut self, words: &[String]) {
        for target in words.iter().flat_map(|word| self.targets(word)).collect::<Vec<_>>() {
            self.set_plan(&target);
        }
        let last = self.last.clone();
        if !self.wishes.spawns.iter().any(|one| one.plan) {
            last.iter().for_each(|name| self.set_plan(name));
        }
    }

    fn set_plan(&mut self, name: &str) {
        self.wishes.spawns.iter_mut().filter(|one| one.name == name).for_each(|one| one.plan = true);
    }

    /// The members that a word means: one by its name, or those that were spoken of last.
    fn targets(&self, word: &str) -> Vec<String> {
        let low = word.trim_matches(|c: char| !c.is_alphanumeric() && !"-_'’".contains(c)).to_lowercase();
        let name = low.trim_end_matches("'s").trim_end_matches("’s");
        if self.is_known(name) {
            vec![name.to_owned()]
        } else if ["them", "both", "they", "their", "everyone", "everybody", "all", "each"].contains(&name) {
            self.last.clone()
        } else if is(name, PRONOUNS) {
            self.last.last().cloned().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.iter().any(|known| known == name) || self.wishes.spawns.iter().any(|one| one.name == name)
    }

    /// What stands in quotes, behind a colon or behind "saying".
    fn text_in(&self, said: &str) -> Option<String> {
        let quoted = self.quoted(said).into_iter().next();
        let behind = |sign: &str| {
            Some(said.split_once(sign)?.1.trim().trim_end_matches(" to all teammates").to_owned())
        };
        let plain = || [": ", " saying ", " that says "].iter().find_map(|sign| behind(sign));
        quoted.or_else(|| plain().map(|text| self.unmasked(&text))).filter(|text| !text.is_empty())
    }

    /// Everything that stands in quotes in a part.
    fn quoted(&self, said: &str) -> Vec<String> {
        let numbers = said.split('§').skip(1).step_by(2);
        numbers.filter_map(|number| self.quotes.get(number.parse::<usize>().ok()?).cloned()).collect()
    }

    fn unmasked(&self, said: &str) -> String {
        let mut text = said.to_owned();
        for (number, quote) in self.quotes.iter().enumerate() {
            text = text.replace(&format!("§{number}§"), quote);
        }
        text
    }
}

#[cfg(test)]
mod tests;
