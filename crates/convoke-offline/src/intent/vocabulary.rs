//! The words by which a task is classified, as data. Each table is one text of words, so that it reads as
//! prose.

/// Words with a slash that are no paths.
pub(super) const IDIOMS: &str =
    "and/or i/o todo/fixme fixme/todo read/write yes/no client/server w/o he/she input/output";

/// What joins two clauses.
pub(super) const JOINS: &str = "and then also but or & plus afterwards";

/// What is looked at, as people call it.
pub(super) const HERE: &str = "here this repository repo directory project codebase folder tree code";

/// What "how" may stand before in a question for a number.
pub(super) const SIZES: &str = "many much large big long";

/// Words for large.
pub(super) const LARGE: &str = "large larger largest big biggest long longest oversized huge lengthy giant";

/// Verbs for a use of something.
pub(super) const USES: &str =
    "use uses used mention mentions contain contains call calls import imports define defines";

/// What a review is to find.
pub(super) const PROBLEMS: &str = "\
    bug bugs problem problems issue issues smell smells defects defect vulnerabilities vulnerability \
    weaknesses risks mistakes wrong fault faults flaw flaws";

/// What a review yields.
pub(super) const REPORTS: &str = "\
    report summary overview review audit inventory exploration statistics stats findings survey look \
    inspection write-up tour scan";

/// What a review yields if it is known what of.
pub(super) const LISTS: &str = "list table count";

/// Verbs that may stand before a report.
pub(super) const MAKES: &str =
    "write make create produce generate prepare run do perform conduct start compile build";

/// Verbs that ask for a change, for a design or for a program to be run.
pub(super) const CHANGES: &str = "\
    fix edit implement write refactor rename delete remove add create change update replace move migrate \
    convert port translate design propose suggest recommend improve optimize optimise format reformat \
    install run execute build compile deploy commit push merge rebase generate document debug upgrade \
    downgrade bump make clean patch repair correct rewrite simplify extract split inline insert append \
    apply solve resolve address handle finish complete develop draft plan produce prepare perform conduct \
    start test benchmark profile release publish send open close download fetch set configure enable \
    disable revert undo reduce shorten drop modify transform adapt extend restructure reorganize tidy \
    modernize speed secure harden mock comment annotate decide choose prioritize estimate predict prove \
    save store erase wipe do reply";

/// What a wish for a change says is to be done.
pub(super) const DONE: &str = "\
    fixed implemented renamed refactored removed deleted changed updated added written translated improved \
    rewritten migrated repaired cleaned replaced converted formatted";

/// Verbs that ask to look, whatever at.
pub(super) const LOOKS: &str = "\
    review explore audit inspect look check analyse analyze scan examine assess survey summarise summarize \
    investigate study browse skim tour glance peek scout";

/// Verbs that ask to look if what they stand before can be looked at.
pub(super) const STRICT: &str = "\
    describe find search grep locate list show count tell report give print read see identify verify walk \
    go name display enumerate detect spot discover gather collect pinpoint uncover point dig focus \
    concentrate explain";

/// What can be looked at, beside the directory and its problems.
pub(super) const OBJECTS: &str = "\
    everything anything source sources module modules crate crates package packages file files structure \
    architecture layout contents content purpose quality parts components around evidence results";

/// Phrases that mean looking around, between commas.
pub(super) const LOOKING: &str = "\
    have a look, have a quick look, have a good look, have a close look, have a closer look, take a look, \
    take a quick look, take a good look, take a close look, take a closer look, have a peek, take a peek, \
    take a tour, get an overview, get a feel, get to know, get an idea, show me around, show us around, \
    give me a tour, give us a tour, what do we have, what do you have, what have we, what have we got, what \
    do you see, what do you find, what can you see, what can you find, what can you tell me about, what is \
    there, what's there, poke around, nose around, snoop around, look around, familiarise yourself, \
    familiarize yourself, get familiar, run through, dig around, dig into, dive into, wander around";

/// What a greeting is made of.
pub(super) const GREETINGS: &str = "\
    hi hello hey hallo good morning afternoon evening day guten tag morgen abend bonjour hola moin servus \
    ciao greetings thanks thank you cheers there everyone team friend";

/// How an answer or the work may be asked to be.
pub(super) const STYLE: &str = "\
    brief short concise thorough careful precise honest quick exact polite detailed specific complete";

/// Words before which a noun phrase begins.
pub(super) const DETERMINERS: &str = "\
    the a an this that these those its our my your their his her all every each any some both such \
    everything anything something whatever";

/// The subjects of statements.
pub(super) const PRONOUNS: &str =
    "i i'm i'd i've i'll we we're we've we'd you they it it's there there's he she";

/// Words after which a verb stands inside a clause.
pub(super) const AGENTS: &str = "i we you they it that which to must can may should";

/// Verbs by which a noun phrase is a statement.
pub(super) const STATES: &str = "\
    is are was were isn't aren't has have had hasn't haven't does doesn't do don't can can't cannot will \
    won't fails fail crashes crash breaks break hangs works work keeps takes gets seems looks";

/// Words by which a question asks for a judgement.
pub(super) const MODALS: &str = "\
    should must need needs needed ought could would best better worth improve improved fix change changes \
    changed";

/// Words that neither begin an imperative nor are its verb.
pub(super) const FUNCTION: &str = "\
    how what what's where which why who whose when while than with without for in of on at by from as if to \
    into about over under between not no only either neither especially including mainly particularly like \
    maybe perhaps even still more most less least very too so is are was were be its and or then";

/// Nouns and adjectives that begin a phrase which names something to look at.
pub(super) const NOUNS: &str = "\
    quick full short brief thorough general detailed careful deep simple rough high-level code security \
    project repo repository directory architecture quality error errors tests source files functions \
    methods modules lines languages todo todos fixme fixmes hacks to-dos todo/fixme large larger largest \
    big biggest long longest oversized huge lengthy giant untested missing unhandled swallowed ignored \
    unwraps panics possible potential obvious serious known common likely critical hidden worst main major \
    bare empty overview summary statistics stats inventory coverage callers usages occurrences references";

/// Verbs that stand inside a clause as often as at its head.
pub(super) const OTHER_VERBS: &str = "\
    parse encode decode load serialize validate call use render connect copy sort get put receive log throw \
    catch return draw compute encrypt decrypt listen take turn bring";

/// Words that are not searched for.
pub(super) const STOP: &str = "\
    where we is are the a an in for of to do does all every any that this code place places used use uses \
    defined define find me it i they you repository repo here file files which what line lines with on at \
    and usages occurrences references callers contain contains mention mentions up out our handled project \
    directory codebase word text string function functions method class call called calls from by be there \
    please through into look";

/// Phrases that stand before what is really asked, between commas.
pub(super) const POLITE: &str = "\
    please, i want to know, i need to know, i'd like to know, let me know, i wonder, how about, what about, \
    can you, could you, would you, will you, i want you to, i want to, i'd like you to, i'd like to, i \
    would like you to, i would like to, i need you to, i need to, we need to, you should, you must, we \
    should, let's, lets, let us, help me to, help me, go ahead, just, now, first, next, finally, try to, \
    kindly, quickly, carefully, thoroughly, automatically, immediately, and, then, also, so, hi, hello, \
    hey, ok, okay, to, if possible, be so kind, second, third, lastly, additionally, besides, moreover, \
    furthermore, in addition, in particular, especially, for example, again, maybe, perhaps, actually, \
    simply";

/// How a task names a language. Short names count only where nothing else can be meant.
pub(super) const NAMES: [(&str, &str); 23] = [
    ("rust", "Rust"),
    ("rs files", "Rust"),
    ("python", "Python"),
    ("py files", "Python"),
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
    ("sh files", "Shell"),
    ("bash", "Shell"),
];

/// Whether a word is one of a table.
pub(super) fn is(word: &str, table: &str) -> bool {
    table.split(' ').any(|entry| entry == word)
}
