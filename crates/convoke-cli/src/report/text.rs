//! The report for a person at a terminal or a log: what counts first, in a few lines, and where the whole is;
//! with `--verbose` all of it, long texts shortened and said to be. Everything that a model wrote is cleaned,
//! so that no terminal obeys it. The whole of it is in the other forms.

use super::changes::{CALLEE, LATER_HEAD, callee_lines, file_line, files_head, tree_line};
use super::model::{Agent, AgentStatus, Finding, LostItem, SessionReport, Verdict};
use super::order::{counts, in_order, worst};
use super::program::ProgramReport;
use crate::render::{Look, clean, count, dollars, file_name, flat, hanging, tokens};
use crate::settings::minutes;

/// More findings than this scroll everything else away.
const MOST_FINDINGS: usize = 50;
/// More lines than this about agents or subtasks do so too.
const MOST_LINES: usize = 20;
/// Of everything that can be long, a summary has this many lines.
const FEW_LINES: usize = 3;
/// More files than this are counted.
const MOST_FILES: usize = 8;
/// A text is shortened to this many characters.
const MOST_CHARS: usize = 400;
/// A place in a summary is shortened to this many.
const MOST_PLACE: usize = 80;
/// Of a claim in a summary this much is shown at any width.
const LEAST_CLAIM: usize = 40;

/// The report, in lines of this width; `whole` says where all of it is to be had. Of a lead that did
/// everything by itself there is nothing to tell that the last line of a session does not say.
pub(crate) fn text(report: &SessionReport, look: Look, width: usize, whole: Option<&str>) -> String {
    let children = report.agents.iter().filter(|agent| agent.role != "lead").count();
    let most = if look.verbose { MOST_LINES } else { FEW_LINES };
    let mut page = Page { lines: String::new(), look, width, most, shortened: false };
    let alone = children == 0 && report.programs.is_empty();
    if alone && report.findings.is_empty() && report.skipped.is_empty() && report.notes.is_empty() {
        page.left(report);
        page.shortening(whole);
        return page.lines;
    }
    match look.verbose {
        true => page.findings(&report.findings),
        false => page.worst(&report.findings),
    }
    page.programs(&report.programs, report.worktrees.is_empty());
    page.agents(report);
    page.lost(report);
    page.left(report);
    page.not_run(report);
    for note in report.notes.iter().take(most) {
        page.line("", &format!("note: {}", clean(note)));
    }
    page.more(most, report.notes.len());
    if look.verbose {
        page.line("", &spend(report));
        page.line("", &cache(report));
    }
    page.shortening(whole);
    page.lines
}

/// What was used of what was granted.
pub(super) fn spend(report: &SessionReport) -> String {
    let spend = &report.spend;
    let of = |cap: Option<String>| cap.map(|cap| format!(" of {cap}")).unwrap_or_default();
    let unconfirmed = |amount: u64, words: String| match amount {
        0 => String::new(),
        _ => format!(" and up to {words} unconfirmed"),
    };
    let money = format!(
        "{}{}{}",
        dollars(spend.nano),
        of(spend.cap_nano.map(|nano| dollars(Some(nano)))),
        unconfirmed(spend.unconfirmed_nano, dollars(Some(spend.unconfirmed_nano)))
    );
    let agents = match spend.cap_agents {
        Some(cap) => format!("{} of {}", spend.agents, count(cap, "agent")),
        None => count(spend.agents, "agent"),
    };
    let used = format!(
        "{}{} tokens{}",
        tokens(spend.tokens),
        of(spend.cap_tokens.map(tokens)),
        unconfirmed(spend.unconfirmed_tokens, tokens(spend.unconfirmed_tokens))
    );
    format!("spent: {money} · {agents} · {used} · {}{}", minutes(spend.ms), of(spend.cap_ms.map(minutes)))
}

/// What the prompt cache did.
pub(super) fn cache(report: &SessionReport) -> String {
    let cache = &report.cache;
    let read = tokens(cache.read);
    let written = tokens(cache.written);
    let fresh = tokens(cache.fresh);
    let saved = match cache.saved_nano {
        None => String::new(),
        Some(nano) if nano < 0 => format!(" · {} more than without it", dollars(Some(nano.unsigned_abs()))),
        Some(nano) => format!(" · {} saved", dollars(Some(nano.unsigned_abs()))),
    };
    format!("cache: {read} tokens read, {written} written, {fresh} fresh{saved}")
}

/// What an agent is called in a line: `worker a_… (item 3: label)`.
pub(super) fn name(agent: &Agent) -> String {
    let id = agent.agent.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    let label = agent.label.trim();
    match (agent.item, label.is_empty()) {
        (Some(item), false) => format!("{}{id} (item {item}: {label})", agent.role),
        (Some(item), true) => format!("{}{id} (item {item})", agent.role),
        (None, false) => format!("{}{id} ({label})", agent.role),
        (None, true) => format!("{}{id}", agent.role),
    }
}

/// `2 ok (1 reused), 1 failed`, of the agents below the lead.
pub(super) fn outcomes(agents: &[Agent]) -> String {
    let below = || agents.iter().filter(|agent| agent.role != "lead");
    let all = [AgentStatus::Ok, AgentStatus::Degraded, AgentStatus::Failed, AgentStatus::Open];
    let mut said = Vec::new();
    for status in all {
        let these = below().filter(|agent| agent.status == status);
        let (count, reused) =
            these.fold((0, 0), |(n, r), agent| (n + 1, r + usize::from(agent.reused.is_some())));
        match (count, reused) {
            (0, _) => {}
            (count, 0) => said.push(format!("{count} {}", status.word())),
            (count, reused) => said.push(format!("{count} {} ({reused} reused)", status.word())),
        }
    }
    said.join(", ")
}

/// `3 subtasks, 1 verification; 1 is not tried again, because a model refused it`.
pub(crate) fn lost_words(lost: &[&LostItem]) -> String {
    let number =
        |what: &str| u32::try_from(lost.iter().filter(|item| item.what == what).count()).unwrap_or(u32::MAX);
    let kinds = ["subtask", "verification", "call"].map(|what| (number(what), what));
    let said: Vec<String> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
    let never = lost.iter().filter(|item| !item.retry).count();
    let refused = match never {
        0 => String::new(),
        1 => "; 1 is not tried again, because a model refused it".to_owned(),
        never => format!("; {never} are not tried again, because a model refused them"),
    };
    format!("{}{refused}", said.join(", "))
}

struct Page {
    lines: String,
    look: Look,
    width: usize,
    /// How many lines there are of everything that can be long.
    most: usize,
    shortened: bool,
}

impl Page {
    /// One line, broken between words; what follows a break stands a little further in.
    fn line(&mut self, indent: &str, text: &str) {
        let further = format!("{indent}  ");
        self.lines.push_str(&hanging(&format!("{indent}{text}"), self.width, &further));
        self.lines.push('\n');
    }

    /// A line that is to be seen.
    fn heading(&mut self, text: &str) {
        for line in hanging(text, self.width, "  ").lines() {
            self.lines.push_str(&self.look.bold(line));
            self.lines.push('\n');
        }
    }

    /// Text of a model on one line, shortened if it is long.
    fn flat(&mut self, text: &str) -> String {
        let (flat, whole) = flat(text, MOST_CHARS);
        self.shortened |= !whole;
        flat
    }

    fn more(&mut self, shown: usize, all: usize) {
        if let Some(more) = all.checked_sub(shown).filter(|more| *more > 0) {
            self.shortened = true;
            self.line("  ", &format!("and {more} more"));
        }
    }

    fn findings(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.heading(&format!("findings: {}", counts(findings)));
        for finding in in_order(findings).into_iter().take(MOST_FINDINGS) {
            self.finding(finding);
        }
        self.more(MOST_FINDINGS, findings.len());
    }

    /// How many there are of each verdict, and the worst that may hold, each on one line: equal ones
    /// together.
    fn worst(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.heading(&format!("findings: {}", counts(findings)));
        let groups = worst(findings);
        for (finding, places) in groups.iter().take(self.most) {
            let verdict = match finding.verdict {
                Verdict::Confirmed => String::new(),
                verdict => format!(" {}", verdict.word()),
            };
            let place = finding.citations.iter().find_map(|citation| citation.place());
            let place = place.map(|place| format!(" {}", flat(&place, MOST_PLACE).0)).unwrap_or_default();
            let others = match places - 1 {
                0 => String::new(),
                others => format!(" (and {others} like it)"),
            };
            let head = format!("{}{verdict}{place}{others}: ", finding.severity.word());
            let left = (2 * self.width).saturating_sub(head.len() + 6).max(LEAST_CLAIM);
            let claim = shortened(&finding.claim, left);
            self.line("  ", &format!("{head}{claim}"));
        }
        let shown: usize = groups.iter().take(self.most).map(|(_, places)| places).sum();
        self.shortened = true;
        let refuted = findings.iter().filter(|finding| finding.verdict == Verdict::Refuted).count();
        if let Some(more) = findings.len().checked_sub(shown + refuted).filter(|more| *more > 0) {
            self.line("  ", &format!("and {more} more"));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let claim = self.flat(&finding.claim);
        self.line("  ", &format!("{} {}: {claim}", finding.severity.word(), finding.verdict.word()));
        let reason = self.flat(&finding.reason);
        if finding.verdict == Verdict::Refuted {
            // What does not hold needs no evidence, only why.
            return self.line("      ", &format!("refuted: {reason}"));
        }
        let evidence = self.flat(&finding.evidence);
        self.line("      ", &format!("evidence: {evidence}"));
        if !reason.is_empty() {
            self.line("      ", &format!("{}: {reason}", finding.verdict.word()));
        }
        let places: Vec<String> = finding.citations.iter().filter_map(|citation| citation.place()).collect();
        if !places.is_empty() {
            let places = self.flat(&places.join(", "));
            self.line("      ", &format!("at {places}"));
        }
        if let Some(source) = finding.source() {
            let source = self.flat(&source);
            let by = if finding.is_call { "judged by" } else { "by" };
            self.line("      ", &format!("{by} {source}"));
        }
    }

    fn programs(&mut self, programs: &[ProgramReport], notes: bool) {
        for program in programs {
            self.heading(&program.head());
            let lines = program.lines(notes);
            for line in lines.iter().take(self.most) {
                let line = self.flat(line);
                self.line("  ", &line);
            }
            self.more(self.most, lines.len());
            if !program.by_person && (program.value.is_some() || !program.losses.is_empty()) {
                self.line(
                    "  ",
                    &format!("to see what it returned: convoke sessions show {} --value", program.run),
                );
            }
        }
    }

    fn agents(&mut self, report: &SessionReport) {
        let agents = &report.agents;
        let said = outcomes(agents);
        let below = || agents.iter().filter(|agent| agent.role != "lead");
        // That all of them did what they were to do is in the last line of a session.
        let is_usual = below().all(|agent| agent.status == AgentStatus::Ok && agent.reused.is_none());
        if !said.is_empty() && (self.look.verbose || !is_usual) {
            self.heading(&format!("agents: {said}"));
        }
        // What a program lost is listed with the program.
        let of_program =
            |agent: &Agent| report.programs.iter().any(|program| agent.run.as_ref() == Some(&program.run));
        // What was lost with an agent is listed by subtask.
        let is_lost =
            |agent: &Agent| agent.agent.is_some() && report.lost.iter().any(|lost| lost.agent == agent.agent);
        let is_bad = |agent: &&Agent| {
            agent.role != "lead" && agent.status != AgentStatus::Ok && !of_program(agent) && !is_lost(agent)
        };
        let bad: Vec<&Agent> = agents.iter().filter(is_bad).collect();
        for agent in bad.iter().take(self.most) {
            let name = self.flat(&name(agent));
            let status = agent.status.word();
            match &agent.failure {
                Some(failure) if agent.status == AgentStatus::Failed => {
                    let message = self.flat(&failure.message);
                    self.line("  ", &format!("{status} ({}): {name}: {message}", clean(&failure.kind)));
                }
                Some(failure) => {
                    let message = self.flat(&failure.message);
                    self.line("  ", &format!("{status}: {name}: {message}"));
                }
                None => self.line("  ", &format!("{status}: {name}")),
            }
        }
        self.more(self.most, bad.len());
        // What the others changed is listed by file.
        let reports =
            |agent: &&Agent| !agent.changed.is_empty() && !matches!(agent.role, "lead" | "task" | CALLEE);
        let changed: Vec<&Agent> = agents.iter().filter(reports).collect();
        for agent in changed.iter().take(self.most) {
            let files: Vec<String> =
                agent.changed.iter().take(MOST_FILES).map(|file| file_name(file)).collect();
            let more = match agent.changed.len().saturating_sub(MOST_FILES) {
                0 => String::new(),
                more => {
                    self.shortened = true;
                    format!(" and {more} more")
                }
            };
            let name = self.flat(&name(agent));
            let files = self.flat(&files.join(", "));
            // Changes by others at the same time cannot be told apart from the agent's.
            self.line("  ", &format!("changed while {name} worked: {files}{more}"));
        }
        self.more(self.most, changed.len());
        let files = callee_lines(report);
        for line in files.iter().take(self.most) {
            let line = self.flat(line);
            self.line("  ", &line);
        }
        self.more(self.most, files.len());
    }

    /// What the session left behind in files, and how to see it and take it back.
    fn left(&mut self, report: &SessionReport) {
        if !report.changed.is_empty() {
            self.heading(&files_head(report));
            for file in report.changed.iter().take(self.most) {
                let line = self.flat(&file_line(report, file));
                self.line("  ", &line);
            }
            self.more(self.most, report.changed.len());
        }
        if !report.runs_later.is_empty() {
            self.heading(&format!("{LATER_HEAD}: {}", report.runs_later.len()));
            for later in report.runs_later.iter().take(self.most) {
                let line = self.flat(&later.words());
                self.line("  ", &line);
            }
            self.more(self.most, report.runs_later.len());
        }
        if let Some(undo) = &report.undo {
            let see = undo.replacen("sessions undo", "sessions diff", 1);
            self.line("  ", &format!("to see them: {}", clean(&see)));
            self.line("  ", &format!("to take them back: {}", clean(undo)));
        }
        if !report.worktrees.is_empty() {
            self.heading(&format!("worktrees: {}", report.worktrees.len()));
            for tree in report.worktrees.iter().take(self.most) {
                let line = self.flat(&tree_line(report, tree));
                self.line("  ", &line);
            }
            self.more(self.most, report.worktrees.len());
            if let Some(apply) = &report.apply {
                self.line("  ", &format!("to take it over: {}", clean(apply)));
            }
        }
    }

    /// Where the rest is.
    fn shortening(&mut self, whole: Option<&str>) {
        match whole {
            Some(whole) if self.shortened => self.line("", &format!("the whole report: {}", clean(whole))),
            None if self.shortened => {
                self.line("", "some of this is shortened: --report FILE.md and --output json have the whole");
            }
            _ => {}
        }
    }

    /// What was lost of flat workflows; what a program lost is listed with the program.
    fn lost(&mut self, report: &SessionReport) {
        let lost: Vec<&LostItem> = report.lost.iter().filter(|lost| lost.what != "call").collect();
        if lost.is_empty() {
            return;
        }
        self.heading(&format!("lost: {}", lost_words(&lost)));
        for item in lost.iter().take(self.most) {
            let line = self.flat(&item.line());
            self.line("  ", &line);
        }
        self.more(self.most, lost.len());
    }

    fn not_run(&mut self, report: &SessionReport) {
        if report.skipped.is_empty() {
            return;
        }
        let subtasks = count(u32::try_from(report.skipped.len()).unwrap_or(u32::MAX), "subtask");
        self.heading(&format!("not run: {subtasks}"));
        for skipped in report.skipped.iter().take(self.most) {
            let item = skipped.item.map(|item| format!("item {item}: ")).unwrap_or_default();
            let label = self.flat(&skipped.label);
            let reason = self.flat(&skipped.reason);
            self.line("  ", &format!("{item}{label} ({reason})"));
        }
        self.more(self.most, report.skipped.len());
    }
}

/// A text on one line of at most so many characters, ended between two words if it is too long.
fn shortened(text: &str, most: usize) -> String {
    let line = flat(text, usize::MAX).0;
    if line.chars().count() <= most {
        return line;
    }
    let begun: String = line.chars().take(most.saturating_sub(2)).collect();
    let end = begun.rfind(' ').unwrap_or(begun.len());
    format!("{} …", begun[..end].trim_end())
}
