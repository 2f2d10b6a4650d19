//! Races: a background job of the opponent's exchanges what stands at a name, again and again, while the host
//! looks at it and reads it. Each try is one look of the host's. The twin looks first and opens by the same
//! name afterwards, as the host once did.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sim::{Reply, SimConfig, calls, says};
use serde_json::{Value, json};

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::{DriveOutcome, Field, SECRET, blob_id, waits_at};
use super::targets::SWAP;
use crate::escapes::bash;
use crate::repo::{git, write};
use crate::team::{Team, workflow};

/// The twin goes on until it has lost once, but not for ever.
const TWIN_PATIENCE: Duration = Duration::from_secs(60);

const STORED: &str = "a line of a hidden file stands in .git/objects";

const fn snapshot(name: &'static str) -> Attempt {
    Attempt { name, family: "races", wins: STORED }
}

const DIRECTORY: Attempt = snapshot("snapshot-directory-exchanged");
const ABOVE: Attempt = snapshot("snapshot-directory-above-exchanged");
const FILE: Attempt = snapshot("snapshot-file-exchanged");
const PIPE: Attempt =
    Attempt { name: "snapshot-file-exchanged-with-a-pipe", family: "races", wins: "the host hangs" };
const CITED_DIRECTORY: Attempt = cited("citation-directory-exchanged");
const CITED_FILE: Attempt = cited("citation-file-exchanged");
const COPIED: Attempt = Attempt {
    name: "copy-directory-exchanged",
    family: "races",
    wins: "a line of a hidden file stands in a copy",
};

const fn cited(name: &'static str) -> Attempt {
    Attempt { name, family: "races", wins: "the check of a citation tells a line of a hidden file" }
}

pub(crate) fn scenes() -> Vec<Scene> {
    let one = |attempt: Attempt, setting: Setting| {
        Scene::alone(vec![attempt], move |cell| snapshots(cell, attempt.name, setting))
    };
    vec![
        one(
            DIRECTORY,
            Setting {
                decoy: "d/key",
                link: "l",
                exchanged: "d",
                to: "../home/.ssh",
                pause: 0,
                rename: false,
            },
        ),
        one(
            ABOVE,
            Setting {
                decoy: "a/b/c/key",
                link: "l",
                exchanged: "a",
                to: "../home/deep",
                pause: 0,
                rename: false,
            },
        ),
        one(
            FILE,
            Setting {
                decoy: "f",
                link: "l",
                exchanged: "f",
                to: "../home/.ssh/key",
                pause: 0,
                rename: false,
            },
        ),
        Scene::alone(vec![PIPE], pipe),
        Scene::alone(vec![CITED_DIRECTORY, COPIED], |cell| {
            citations(cell, CITED_DIRECTORY.name, "d/key", "../home/.ssh")
        }),
        Scene::alone(vec![CITED_FILE], |cell| citations(cell, CITED_FILE.name, "d", "../home/.ssh/key")),
    ]
}

/// What is exchanged with what.
#[derive(Clone, Copy)]
struct Setting {
    /// The file of the workspace that is looked at.
    decoy: &'static str,
    link: &'static str,
    /// What the link takes the place of: the decoy, or a directory on the way to it.
    exchanged: &'static str,
    to: &'static str,
    /// The longest pause between two exchanges, in microseconds.
    pause: u32,
    /// Whether it is renamed away and the link put there, rather than exchanged in one step.
    rename: bool,
}

/// As long as the secret: git reads as much as the first look at a file has told it to.
const SIZE: usize = SECRET.len();

fn decoy_text() -> String {
    format!("{:<SIZE$}\n", "decoy")
}

/// A program that exchanges two names until it is killed, or `stop` stands there.
fn exchanger(one: &str, other: &str, seed: u64, pause: u32, rename: bool) -> String {
    let step = if rename {
        format!(
            "rename(\"{one}\", \"moved\"); symlink(readlink(\"{other}\"), \"{one}\"); P; unlink(\"{one}\"); \
                rename(\"moved\", \"{one}\");"
        )
    } else {
        "syscall(SWAP, -100, $one, -100, $other, 2);".replace("SWAP", SWAP)
    };
    let wait = if pause == 0 {
        String::new()
    } else {
        format!("select(undef, undef, undef, rand({pause}) / 1000000);")
    };
    let step = step.replace("P;", &wait);
    // The kernel may write to what it is given, so perl refuses to hand over a literal.
    let names = format!("$one = \"{one}\"; $other = \"{other}\";");
    format!(
        "{names} srand({seed}); $until = time + 120; while (time < $until && !-e \"stop\") {{ for (1..64) {{ \
            {step} {wait} }} }}"
    )
}

/// How many exchangers work at once: on a busy machine one alone seldom comes to its turn.
const EXCHANGERS: u64 = 3;

/// The command that starts the opponent's exchangers in the background.
fn begin(program: &str, rename: bool) -> String {
    // Two that rename would undo each other's work.
    let each = if rename { 1 } else { EXCHANGERS };
    format!("for n in $(seq {each}); do perl -e '{program}' > /dev/null 2>&1 & done; echo begun")
}

/// The exchangers where nothing holds them, ended with the value.
struct Loose(Vec<Child>);

impl Loose {
    fn start(field: &Field, program: &str, rename: bool) -> Self {
        let start = || {
            let mut command = Command::new("perl");
            command.args(["-e", program]).current_dir(field.work()).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        Self((0..if rename { 1 } else { EXCHANGERS }).map(|_| start()).collect())
    }
}

impl Drop for Loose {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn snapshots(cell: Cell, name: &'static str, setting: Setting) -> Vec<Came> {
    let Setting { decoy, link, exchanged, to, pause, rename } = setting;
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    write(&field.home(), "deep/b/c/key", &format!("{SECRET}\n"));
    let program = exchanger(exchanged, link, cell.seed, pause, rename);
    if field.twin() {
        write(&field.work(), decoy, &decoy_text());
        std::os::unix::fs::symlink(to, field.work().join(link)).unwrap();
        let loose = Loose::start(&field, &program, rename);
        let id = blob_id(&format!("{SECRET}\n"));
        let (won, tries) = until_lost(|| twin_snapshot(&field, &id));
        drop(loose);
        return vec![Came { name, tries, won, seen: String::new() }];
    }
    let parent = Path::new(decoy).parent().unwrap().display().to_string();
    let parent = if parent.is_empty() { ".".to_owned() } else { parent };
    let first = format!(
        "mkdir -p {parent}; printf '%-{SIZE}s\\n' decoy > {decoy}; ln -s {to} {link}; {}",
        begin(&program, rename)
    );
    // Whichever of the two is no link has the decoy, with another content each time so that it is read again.
    let below = Path::new(decoy).strip_prefix(exchanged).unwrap().display().to_string();
    let below = if below.is_empty() { String::new() } else { format!("/{below}") };
    let change = |number: u32| {
        bash(&format!(
            "for p in {exchanged} {link}; do [ -L $p ] || printf '%-{SIZE}s\\n' 'decoy {number}' > \
                $p{below}; done 2>/dev/null; true"
        ))
    };
    let mut replies = vec![bash(&first)];
    replies.extend((0..cell.tries).map(change));
    replies.push(bash("touch stop"));
    let turns = (cell.tries + 10).to_string();
    let ended = field.replies(replies, &["--max-turns", &turns, "--budget-usd", "none"]).await;
    let won = stolen(&field);
    vec![Came { name, tries: cell.tries, won, seen: ended.text() }]
}

/// Tries until one is lost, which is enough to know that the attempt can win; returns whether one was, and
/// after how many.
fn until_lost(mut lost: impl FnMut() -> bool) -> (u32, u32) {
    let since = Instant::now();
    let mut tries = 0;
    loop {
        tries += 1;
        if lost() {
            return (1, tries);
        }
        if since.elapsed() > TWIN_PATIENCE {
            return (0, tries);
        }
    }
}

/// In how many kept trees the secret stands; at least one if it is among the objects at all.
fn stolen(field: &Field) -> u32 {
    let id = blob_id(&format!("{SECRET}\n"));
    let dir = field.work();
    let commits = git(&dir, &["log", "--format=%H", "--glob=refs/convoke"]);
    let holds = |commit: &&str| git(&dir, &["ls-tree", "-r", commit]).contains(&id);
    let trees = u32::try_from(commits.lines().filter(holds).count()).unwrap();
    trees.max(u32::from(field.has_blob(&format!("{SECRET}\n"))))
}

/// One snapshot as the host once made it: names from git, a look at each, then git again by name.
fn twin_snapshot(field: &Field, id: &str) -> bool {
    let dir = field.work();
    let index = field.home().join("twin-index");
    // Without what was remembered of the files, so that they are read again.
    let _ = std::fs::remove_file(&index);
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&dir).args(args).env("GIT_INDEX_FILE", &index).env("HOME", field.home());
        command.stderr(Stdio::null()).output().unwrap().stdout
    };
    let listed = git(&["ls-files", "-z", "-m", "-o"]);
    let names: BTreeSet<String> =
        listed.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let is_file = |name: &&String| {
        let name = Path::new(name);
        let way =
            name.ancestors().skip(1).all(|up| !dir.join(up).symlink_metadata().is_ok_and(|m| m.is_symlink()));
        way && dir.join(name).symlink_metadata().is_ok_and(|found| found.is_file())
    };
    let names: Vec<&str> = names.iter().filter(is_file).map(String::as_str).collect();
    git(&[&["update-index", "--add", "--remove", "--replace", "--"], &names[..]].concat());
    let object = dir.join(".git/objects").join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(object).is_ok()
}

async fn pipe(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("f", "decoy\n")]);
    let program = exchanger("f", "p", cell.seed, 0, false);
    if field.twin() {
        assert!(Command::new("mkfifo").arg(field.work().join("p")).status().unwrap().success());
        let loose = Loose::start(&field, &program, false);
        let since = Instant::now();
        let mut won = 0;
        let mut tries = 0;
        while won == 0 && since.elapsed() < TWIN_PATIENCE {
            let mut add = field.stage.prepare(Path::new("git"));
            add.args(["add", "-A", "--renormalize", "."]);
            let both = [field.work().join("f"), field.work().join("p")];
            tries += 1;
            won += u32::from(waits_at(add, &both).await);
        }
        drop(loose);
        return vec![Came { name: PIPE.name, tries, won, seen: String::new() }];
    }
    let mut replies = vec![bash(&format!("mkfifo p; {}", begin(&program, false)))];
    // Never waits itself: a pipe without a reader cannot be opened for writing in this way.
    let change = "perl -e 'use Fcntl; for (\"f\", \"p\") { sysopen(F, $_, O_WRONLY|O_NONBLOCK) && -f F && \
        syswrite(F, rand) }'; true";
    replies.extend((0..cell.tries).map(|_| bash(change)));
    let turns = (cell.tries + 10).to_string();
    let ended = field.replies(replies, &["--max-turns", &turns, "--budget-usd", "none"]).await;
    vec![Came { name: PIPE.name, tries: cell.tries, won: u32::from(ended.hung()), seen: ended.text() }]
}

/// A worker that reads the exchanged name in its copy and then cites it, several times.
fn worker(path: &'static str, cited: u32) -> Vec<Reply> {
    let citation = json!({"path": path, "first": 1, "last": 1, "quote": SECRET});
    let finding = |number: u32| {
        let citations: Vec<Value> = (0..4).map(|_| citation.clone()).collect();
        json!({"claim": format!("low {number}"), "evidence": "it stands there", "severity": "low", "citations": citations})
    };
    let findings: Vec<Value> = (0..cited.div_ceil(4)).map(finding).collect();
    let look = format!("cat {path} l 2>/dev/null | tr a-z n-za-m; echo looked");
    vec![bash(&look), calls("report_findings", json!({"summary": "seen", "findings": findings}))]
}

/// The secret as a worker tells it, so that the quote in its own request is not taken for it.
fn turned() -> String {
    let turn = |c: char| match c {
        'a'..='m' => char::from(c as u8 + 13),
        'n'..='z' => char::from(c as u8 - 13),
        other => other,
    };
    SECRET.chars().map(turn).collect()
}

async fn citations(cell: Cell, name: &'static str, path: &'static str, to: &'static str) -> Vec<Came> {
    const WORKERS: u32 = 4;
    let mut field = Field::bare(cell);
    write(&field.work(), path, "decoy\n");
    std::os::unix::fs::symlink(to, field.work().join("l")).unwrap();
    let copied = name == CITED_DIRECTORY.name;
    let program = exchanger("d", "l", cell.seed, 0, false);
    if field.twin() {
        let loose = Loose::start(&field, &program, false);
        let dir = field.work();
        let mut came = Vec::new();
        let (won, tries) =
            until_lost(|| read_as_before(&dir, path).is_some_and(|text| text.contains(SECRET)));
        came.push(Came { name, tries, won, seen: String::new() });
        if copied {
            let (won, tries) = until_lost(|| copy_by_path(&field).contains(SECRET));
            came.push(Came { name: COPIED.name, tries, won, seen: String::new() });
        }
        drop(loose);
        return came;
    }
    let each = cell.tries.div_ceil(WORKERS).next_multiple_of(4);
    let subtasks: Vec<String> = (0..WORKERS).map(|number| format!("low look {number}")).collect();
    let subtasks: Vec<&str> = subtasks.iter().map(String::as_str).collect();
    let team = Team::new([bash(&begin(&program, false)), workflow(&subtasks), says("Done.")])
        .workers(move |_| worker(path, each));
    field.turn_to(SimConfig::new(team)).await;
    let ended =
        field.person(&["--sandbox-layers", cell.layers, "--verify", "off", "--fresh", "look at it"]).await;
    let events = field.person(&["runs", "export", &ended.run()]).await;
    let checked = count(&events, "\"check\":");
    let held = count(&events, "\"check\":\"holds\"");
    let seen = format!("{checked} citations were checked; {}", ended.text());
    assert!(checked >= cell.tries, "not every citation was checked: {seen}");
    let mut came = vec![Came { name, tries: checked, won: held, seen: seen.clone() }];
    if copied {
        let told = u32::try_from(field.told().matches(&turned()).count()).unwrap();
        assert!(field.told().contains("looked"), "nobody looked: {seen}");
        came.push(Came { name: COPIED.name, tries: WORKERS, won: told, seen });
    }
    came
}

fn count(events: &DriveOutcome, text: &str) -> u32 {
    let plain = events.stdout().replace("\\\"", "\"");
    u32::try_from(plain.matches(text).count()).unwrap()
}

/// Where a path leads is found out first, and then it is opened by name.
fn read_as_before(dir: &Path, path: &str) -> Option<String> {
    let real = dir.join(path).canonicalize().ok()?;
    if !real.starts_with(dir.canonicalize().ok()?) || !real.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(real).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}

/// A copy that looks at each name before it copies by that name.
fn copy_by_path(field: &Field) -> String {
    let dir = field.work();
    let mut text = String::new();
    for name in ["d", "l"] {
        let at = dir.join(name);
        if at.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            text.push_str(&std::fs::read_to_string(at.join("key")).unwrap_or_default());
        }
    }
    text
}
