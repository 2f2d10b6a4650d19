//! The words by which a task is classified, as data. Each table is one text of words, so that it reads as prose.

/// Words with a slash that are no paths.
pub(super) const IDIOMS: &str =
    "and/or i/o todo/fixme fixme/todo read/write yes/no client/server w/o he/she input/output";

/// What joins two clauses.
pub(super) const JOINS: &str = "and then also but or & plus afterwards";

/// What is looked at, as people call it.
pub(super) const HERE: &str = "here this repository repo directory project codebase folder tree code";

/// Words for large.
pub(super) const LARGE: &str = "large larger largest big biggest long longest oversized huge lengthy giant";

/// Verbs for a use of something.
pub(super) const USES: &str =
    "use uses used mention mentions contain contains call calls import imports define defines";

/// What a review is to find.
pub(super) const PROBLEMS: &str = "\
    bug bugs problem problems issue issues smell smells defects defect vulnerabilities vulnerability weaknesses \
    risks mistakes wrong";

/// What a review yields.
pub(super) const REPORTS: &str = "\
    report summary overview list review audit inventory table count exploration search scan statistics stats \
    findings survey look check inspection write-up";

/// Verbs that may stand before a report.
pub(super) const MAKES: &str = "write make create produce generate prepare run do perform conduct start compile build";

/// Verbs that ask for a change, for a design or for a program to be run.
pub(super) const CHANGES: &str = "\
    fix edit implement write refactor rename delete remove add create change update replace move migrate convert \
    port translate design propose suggest recommend improve optimize optimise format reformat install run execute \
    build compile deploy commit push merge rebase generate document debug upgrade downgrade bump make clean patch \
    repair correct rewrite simplify extract split inline insert append apply solve resolve address handle finish \
    complete develop draft plan produce prepare perform conduct start test benchmark profile release publish send \
    open close download fetch set configure enable disable revert undo reduce shorten drop modify transform adapt \
    extend restructure reorganize tidy modernize speed secure harden mock comment annotate decide choose prioritize \
    estimate predict prove save store erase wipe do reply";

/// What a wish for a change says is to be done.
pub(super) const DONE: &str = "\
    fixed implemented renamed refactored removed deleted changed updated added written translated improved rewritten \
    migrated repaired cleaned replaced converted formatted";

/// Verbs that ask to look.
pub(super) const LOOKS: &str = "\
    review explore audit inspect look check analyse analyze scan examine assess survey describe summarise summarize \
    find search grep locate list show count tell report give print read see identify investigate study verify walk \
    go name explain";

/// Verbs that stand inside a clause as often as at its head.
pub(super) const OTHER_VERBS: &str = "\
    parse encode decode load serialize validate call use render connect copy sort get put receive log throw catch \
    return draw compute encrypt decrypt listen";

/// Words that are not searched for.
pub(super) const STOP: &str = "\
    where we is are the a an in for of to do does all every any that this code place places used use uses defined \
    define find me it i they you repository repo here file files which what line lines with on at and usages \
    occurrences references callers contain contains mention mentions up out our handled project directory codebase \
    word text string function functions method class call called calls from by be there please through into look";

/// Phrases that stand before what is really asked, between commas.
pub(super) const POLITE: &str = "\
    please, can you, could you, would you, will you, i want you to, i want to, i'd like you to, i'd like to, \
    i would like you to, i would like to, i need you to, i need to, we need to, you should, you must, we should, \
    let's, lets, let us, help me to, help me, go ahead, just, now, first, next, finally, try to, kindly, quickly, \
    carefully, thoroughly, automatically, immediately, and, then, also, so, hi, hello, hey, ok, okay, to, \
    if possible, be so kind";

/// How a task names a language. Short names count only where nothing else can be meant.
pub(super) const NAMES: [(&str, &str); 20] = [
    ("rust", "Rust"),
    ("python", "Python"),
    ("javascript", "JavaScript"),
    ("js", "JavaScript"),
    ("typescript", "TypeScript"),
    ("ts", "TypeScript"),
    ("golang", "Go"),
    ("go files", "Go"),
    ("go code", "Go"),
    ("in go", "Go"),
    ("of go", "Go"),
    ("java", "Java"),
    ("c++", "C++"),
    ("cpp", "C++"),
    ("c files", "C"),
    ("c code", "C"),
    ("in c", "C"),
    ("of c", "C"),
    ("shell", "Shell"),
    ("bash", "Shell"),
];

/// Whether a word is one of a table.
pub(super) fn is(word: &str, table: &str) -> bool {
    table.split(' ').any(|entry| entry == word)
}
