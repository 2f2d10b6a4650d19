//! What holds commands, through the real binary: the policy by default and by flag, what is refused before
//! anything is spent, and how it is told. What the layers themselves hold is tried in `convoke-sandbox`.

use std::path::PathBuf;

use convoke_kernel::SessionId;
use convoke_sim::{Script, calls, says};
use serde_json::{Value, json};

use crate::stage::{Seen, Stage, to_its_end};
use crate::support::{TestHome, Writer, ran};

/// A simulator whose model runs one command and is done.
async fn running(command: &str) -> Stage {
    Stage::with(Script::new().conversation("*", [calls("bash", json!({"command": command})), says("Done.")]))
        .await
}

/// What the model read about its command.
fn read_back(stage: &Stage) -> String {
    let last = stage.sim().requests().pop().unwrap();
    last.body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

/// A place outside of every home, that root could write, and that no test writes.
fn outside() -> PathBuf {
    let unique = tempfile::tempdir().unwrap();
    PathBuf::from("/usr/local").join(unique.path().file_name().unwrap())
}

#[tokio::test]
async fn w80_a_run_is_confined_by_default_and_the_model_is_told_what_would_widen_it() {
    let target = outside();
    let stage = running(&format!("echo inside > in.txt; echo out > {}", target.display())).await;
    let seen = stage.run(&["write", "something"]).await.exits(0);
    let first = seen.stderr.lines().next().unwrap();
    assert!(first.contains(" · sandbox workspace · no network · bubblewrap+landlock+seccomp"), "{first}");
    assert_eq!(std::fs::read_to_string(stage.work().join("in.txt")).unwrap(), "inside\n");
    assert!(!target.exists(), "{} was written", target.display());
    let told = read_back(&stage);
    assert!(told.contains("Read-only file system") || told.contains("Permission denied"), "{told}");
    assert!(told.contains("sandbox") && told.contains("workspace"), "{told}");
}

#[tokio::test]
async fn read_only_leaves_the_tree_as_it_is() {
    for layers in ["best", "landlock"] {
        let stage = running("echo changed > a.txt; rm b.txt; cat a.txt; ls").await;
        for name in ["a.txt", "b.txt"] {
            std::fs::write(stage.work().join(name), "before\n").unwrap();
        }
        let seen =
            stage.run(&["--sandbox", "read-only", "--sandbox-layers", layers, "try", "it"]).await.exits(0);
        assert!(seen.stderr.contains("sandbox read-only"), "{}", seen.stderr);
        for name in ["a.txt", "b.txt"] {
            assert_eq!(std::fs::read_to_string(stage.work().join(name)).unwrap(), "before\n", "{layers}");
        }
        assert!(read_back(&stage).contains("changed"), "{layers}: {}", read_back(&stage));
    }
}

#[tokio::test]
async fn off_is_a_persons_flag_and_is_shown_and_recorded_and_said_again_by_a_resume() {
    let stage = running("echo out > ~/out.txt").await;
    let seen = stage.run(&["--sandbox", "off", "--output", "json", "write", "it"]).await.exits(0);
    assert_eq!(std::fs::read_to_string(stage.home().join("out.txt")).unwrap(), "out\n");
    assert!(seen.stderr.contains("commands UNCONFINED (--sandbox off) · network open"), "{}", seen.stderr);
    let report = seen.json();
    assert_eq!(report["confinement"]["sandbox"], "off");
    assert_eq!(report["confinement"]["held_by"], json!([]));
    let run = report["run"].as_str().unwrap().to_owned();
    assert!(
        stage
            .run(&["runs", "show", &run])
            .await
            .exits(0)
            .stdout
            .contains("\ncommands UNCONFINED (--sandbox off)\n")
    );
    let shown = stage.run(&["runs", "show", &run, "--output", "json"]).await.exits(0).json();
    assert_eq!(shown["confinement"]["sandbox"], "off");
}

#[tokio::test]
async fn the_record_says_what_held() {
    let stage = running("true").await;
    let report = stage.run(&["--output", "json", "look", "around"]).await.exits(0).json();
    let held = &report["confinement"];
    assert_eq!((&held["sandbox"], &held["network"]), (&json!("workspace"), &json!("off")));
    assert_eq!(held["held_by"][0], "bubblewrap");
    assert!(
        held["weaker"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().starts_with("disk: "))
    );
    let run = report["run"].as_str().unwrap();
    let shown = stage.run(&["runs", "show", run]).await.exits(0).stdout;
    assert!(shown.contains("\nsandbox workspace · no network · bubblewrap+landlock+seccomp"), "{shown}");
    let events = stage.run(&["runs", "export", run]).await.exits(0).lines();
    let started = events.iter().find(|event| event["type"] == "agent_started").unwrap();
    assert_eq!(started["spec"]["confinement"]["sandbox"], "workspace");
}

#[tokio::test]
async fn w82_keys_settings_and_the_journal_cannot_be_read_and_a_toolchain_can() {
    for layers in ["best", "landlock"] {
        let look = "cat ~/.ssh/id ~/.netrc ~/.cargo/credentials.toml ~/.config/convoke/config.toml \
                    ~/.local/state/convoke/journal.db ~/other.txt 2>/dev/null | tr -c 'A-Za-z' ' '; \
                    cat ~/.cargo/bin/tool ~/.gitconfig ~/.config/git/config ~/.cabal/config \
                    ~/.local/share/uv/credentials/one; git config -l; tool";
        let stage = running(look).await;
        let write = |path: &str, text: &str| {
            let path = stage.home().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for secret in [".ssh/id", ".netrc", ".cargo/credentials.toml", "other.txt"] {
            write(secret, "SECRET");
        }
        write(
            ".gitconfig",
            "[user]\nname = Somebody\n[url \"https://SECRET@host/\"]\ninsteadOf = https://host/\n",
        );
        write(".config/git/config", "[http]\nextraheader = SECRET\n");
        write(".cabal/config", "password: SECRET\n");
        write(".local/share/uv/credentials/one", "SECRET");
        write(".cargo/bin/tool", "#!/bin/sh\necho the tool ran\n");
        let tool = stage.home().join(".cargo/bin/tool");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = stage.command(&["--sandbox-layers", layers, "look", "around"]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{}", tool.parent().unwrap().display(), path.to_string_lossy()));
        to_its_end(command).await.exits(0);
        let told = read_back(&stage);
        assert!(
            !told.contains("SECRET") && !told.contains("SQLite") && !told.contains("profile"),
            "{layers}: {told}"
        );
        assert!(told.contains("Somebody") && told.contains("the tool ran"), "{layers}: {told}");
    }
}

#[tokio::test]
async fn w84_the_network_is_closed_unless_a_flag_opens_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let knock = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo it is open");
    let check = async |args: &[&str], open: bool| {
        let stage = running(&knock).await;
        let seen = stage.run(&[args, &["knock", "on", "it"]].concat()).await.exits(0);
        assert_eq!(read_back(&stage).contains("it is open"), open, "{args:?}: {}", read_back(&stage));
        assert_eq!(seen.stderr.contains("network open"), open, "{}", seen.stderr);
    };
    check(&[], false).await;
    check(&["--sandbox-layers", "landlock"], false).await;
    check(&["--network"], true).await;
    check(&["--network", "--sandbox-layers", "landlock"], true).await;
}

#[tokio::test]
async fn hosts_that_the_weaker_set_cannot_hold_are_refused_before_anything_is_spent() {
    let stage = running("true").await;
    let args = ["--network-allow", "crates.io,*.crates.io", "--sandbox-layers", "landlock", "fetch", "it"];
    let seen = stage.run(&args).await.exits(2);
    assert!(seen.stderr.contains("a list of allowed hosts needs namespaces"), "{}", seen.stderr);
    check_nothing_begun(&stage);
    let named = stage
        .run(&["--network-allow", "crates.io", "--network-allow", "*.crates.io", "fetch", "it"])
        .await
        .exits(0);
    assert!(named.stderr.contains(" · network crates.io, *.crates.io · "), "{}", named.stderr);
    let both = stage.run(&["--network", "run", "--network-allow", "crates.io", "fetch it"]).await.exits(2);
    assert!(both.stderr.contains("cannot be used together"), "{}", both.stderr);
    let no_host = stage.run(&["--network-allow", "http://x/", "fetch", "it"]).await.exits(2);
    assert!(no_host.stderr.contains("http://x/"), "{}", no_host.stderr);
}

#[track_caller]
fn check_nothing_begun(stage: &Stage) {
    assert!(stage.sim().requests().is_empty(), "a request was sent");
    assert!(!stage.state().exists(), "something was written down");
}

/// A system call filter as the kernel reads it: this call does not exist, every other one does.
fn without_call(number: u32) -> Vec<u8> {
    const NO_SUCH_CALL: u32 = 0x0005_0000 | 38;
    const ALLOW: u32 = 0x7fff_0000;
    let program: [(u16, u8, u8, u32); 4] =
        [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, NO_SUCH_CALL), (0x06, 0, 0, ALLOW)];
    let bytes = |(code, yes, no, k): (u16, u8, u8, u32)| {
        [code.to_ne_bytes().to_vec(), vec![yes, no], k.to_ne_bytes().to_vec()].concat()
    };
    program.into_iter().flat_map(bytes).collect()
}

/// The binary on a machine whose kernel has no Landlock, as far as it can tell.
async fn without_landlock(stage: &Stage, args: &[&str]) -> Seen {
    let filter = stage.home().join("filter");
    std::fs::write(&filter, without_call(444)).unwrap();
    let script = format!("exec bwrap --dev-bind / / --seccomp 9 -- \"$0\" \"$@\" 9<{}", filter.display());
    to_its_end(stage.shell(&script, args)).await
}

#[tokio::test]
async fn w81_where_nothing_can_confine_the_run_is_refused_and_nothing_is_spent() {
    let stage = running("true").await;
    let seen = without_landlock(&stage, &["do", "it"]).await.exits(2);
    assert_eq!(seen.stdout, "");
    let parts = [
        "commands cannot be confined here: the kernel offers no Landlock",
        "--sandbox off",
        "convoke doctor",
    ];
    for part in parts {
        assert!(seen.stderr.contains(part), "{part} is missing in: {}", seen.stderr);
    }
    check_nothing_begun(&stage);
    let doctor = without_landlock(&stage, &["doctor"]).await.exits(1);
    assert!(doctor.stdout.contains("fail landlock   missing: "), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("fail sandbox    workspace cannot be held"), "{}", doctor.stdout);
    without_landlock(&stage, &["--sandbox", "off", "do", "it"]).await.exits(0);
}

#[tokio::test]
async fn w81_without_bubblewrap_landlock_holds_and_the_first_lines_say_what_is_weaker() {
    let target = outside();
    let stage = running(&format!("echo inside > in.txt; echo out > {}", target.display())).await;
    let script =
        "bwrap=$(command -v bwrap); exec bwrap --dev-bind / / --ro-bind /dev/null $bwrap -- \"$0\" \"$@\"";
    let seen = to_its_end(stage.shell(script, &["--output", "json", "write", "it"])).await.exits(0);
    let mut lines = seen.stderr.lines();
    let first = lines.next().unwrap();
    let second = lines.next().unwrap();
    assert!(first.contains(" · landlock+seccomp") && first.contains(" (weaker)"), "{first}");
    assert!(second.starts_with("weaker here, without bubblewrap: git-metadata, attributes,"), "{second}");
    assert!(!target.exists());
    assert_eq!(std::fs::read_to_string(stage.work().join("in.txt")).unwrap(), "inside\n");
    let held = seen.json()["confinement"].clone();
    assert!(held["held_by"][0].as_str().unwrap().starts_with("landlock"), "{held}");
    let doctor = to_its_end(stage.shell(script, &["doctor"])).await.exits(0);
    for part in ["warn bubblewrap missing: ", "apt-get install bubblewrap", "warn weaker     git-metadata: "]
    {
        assert!(doctor.stdout.contains(part), "{part} is missing in: {}", doctor.stdout);
    }
}

#[tokio::test]
async fn w89_a_journal_in_the_workspace_is_refused_also_through_links_and_at_home() {
    let stage = running("true").await;
    std::os::unix::fs::symlink(stage.work(), stage.home().join("link")).unwrap();
    let through = stage.home().join("link/j.db").to_string_lossy().into_owned();
    for journal in ["j.db", "deep/er/j.db", "./../work/j.db", &through] {
        let seen = stage.run(&["--journal", journal, "do", "it"]).await.exits(2);
        let parts =
            ["the journal (flag --journal) lies in the directory that is worked in", "--cwd", "--journal"];
        assert!(parts.iter().all(|part| seen.stderr.contains(part)), "{journal}: {}", seen.stderr);
    }
    let home = stage.home().to_string_lossy().into_owned();
    let seen = stage.run(&["--cwd", &home, "do", "it"]).await.exits(2);
    assert!(seen.stderr.contains("start in a project directory"), "{}", seen.stderr);
    let outside = stage.home().parent().unwrap().join("j.db").to_string_lossy().into_owned();
    let seen = stage.run(&["--cwd", &home, "--journal", &outside, "do", "it"]).await.exits(2);
    assert!(
        seen.stderr.contains("the state directory lies in") && seen.stderr.contains("XDG_STATE_HOME"),
        "{}",
        seen.stderr
    );
    check_nothing_begun(&stage);
    stage.run(&["--journal", &outside, "do", "it"]).await.exits(0);
}

#[tokio::test]
async fn a_resume_holds_the_recorded_policy_and_nobody_inherits_that_nothing_is_held() {
    let stage = Stage::with(Script::new().conversation("*", [says("Done.")])).await;
    let writer = Writer::open(&stage.state().join("journal.db")).await;
    // As runs were recorded before there was a sandbox: nothing held them.
    writer.start_unconfined(1, &stage.work(), "an old task").await.release().await;
    writer.journal.close().await.unwrap();
    let run = SessionId::from_bits([1; 10]).to_string();
    let refused = stage.run(&["resume", &run]).await.exits(2);
    assert!(refused.stderr.contains("nothing confines the commands of this session"), "{}", refused.stderr);
    assert!(refused.stderr.contains("say --sandbox off again"), "{}", refused.stderr);
    let other = stage.run(&["resume", &run, "--sandbox", "read-only"]).await.exits(2);
    assert!(other.stderr.contains("was started with --sandbox off, not read-only"), "{}", other.stderr);
    assert!(stage.sim().requests().is_empty());
    let seen = stage.run(&["resume", &run, "--sandbox", "off"]).await.exits(0);
    assert!(seen.stderr.contains("UNCONFINED"), "{}", seen.stderr);
}

#[tokio::test]
async fn a_run_that_was_begun_confined_cannot_be_let_loose_later() {
    let stage = Stage::with(Script::new().conversation("*", [says("Done.")])).await;
    let writer = Writer::open(&stage.state().join("journal.db")).await;
    writer.start(1, &stage.work(), "a task").await.release().await;
    writer.journal.close().await.unwrap();
    let run = SessionId::from_bits([1; 10]).to_string();
    for flags in [&["--sandbox", "off"][..], &["--sandbox", "read-only"], &["--network"]] {
        let seen = stage.run(&[&["resume", &run], flags].concat()).await.exits(2);
        assert!(seen.stderr.contains("a session keeps what it was started with"), "{}", seen.stderr);
    }
    let seen = stage.run(&["resume", &run]).await.exits(0);
    assert!(seen.stderr.contains("sandbox workspace · no network"), "{}", seen.stderr);
}

#[test]
fn the_doctor_lists_every_layer_and_the_policies_that_hold() {
    let place = TestHome::new();
    let shown: Value = serde_json::from_str(&place.convoke(&["doctor", "--output", "json"]).out).unwrap();
    let checks = shown["checks"].as_array().unwrap();
    let found = |name: &str| checks.iter().filter(|check| check["check"] == name).collect::<Vec<_>>();
    for layer in ["bubblewrap", "overlay", "landlock", "seccomp", "cgroup", "hold"] {
        assert_eq!(found(layer).len(), 1, "{layer}");
    }
    let policies: Vec<&str> = found("sandbox").iter().filter_map(|check| check["found"].as_str()).collect();
    assert!(policies[0].starts_with("read-only, no network: held by "), "{policies:?}");
    assert!(policies[1].starts_with("workspace (chosen), no network: held by "), "{policies:?}");
    let weak = place.convoke(&["doctor", "--sandbox-layers", "landlock", "--sandbox", "read-only"]);
    assert!(weak.out.contains("warn weaker     copy: "), "{}", weak.out);
    let off = place.convoke(&["doctor", "--sandbox", "off"]);
    assert!(off.code == 0 && off.out.contains("UNCONFINED"), "{}", off.out);
    let home = place.path("home");
    let inside = ran(place.command(&["doctor", "--cwd"]).arg(home));
    assert!(inside.code == 1 && inside.out.contains("fail places "), "{}", inside.out);
}

/// Changes what is remembered of the sandbox as if this machine had no bubblewrap.
fn forget_bubblewrap(stage: &Stage) {
    let file = stage.state().join("sandbox.json");
    let mut memory: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    memory["layers"]["bubblewrap"] = json!({"works": false, "detail": "told so by a test"});
    std::fs::write(&file, memory.to_string()).unwrap();
}

#[tokio::test]
async fn what_the_sandbox_can_hold_is_remembered_and_the_doctor_tries_it_anew() {
    let stage = Stage::with(Script::new().conversation("*", [says("Done.")])).await;
    let held = async |args: &[&str]| {
        let seen = stage.run(args).await.exits(0);
        seen.stderr.lines().next().unwrap().contains("bubblewrap+landlock+seccomp")
    };
    let run: &[&str] = &["run", "--fresh", "look around"];
    if !held(run).await {
        eprintln!("skipped: there is no bubblewrap that works here");
        return;
    }
    let file = stage.state().join("sandbox.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o7777, 0o600);
    forget_bubblewrap(&stage);
    assert!(!held(run).await, "what is remembered decides");
    // One that others could have written is not believed.
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o620)).unwrap();
    assert!(held(run).await, "and it is tried anew");
    forget_bubblewrap(&stage);
    let seen = stage.run(&["doctor"]).await;
    assert!(seen.stdout.contains("bubblewrap+") || seen.stdout.contains("held by bubblewrap"), "{seen:?}");
    assert!(held(run).await, "the doctor's finding is remembered");
}
