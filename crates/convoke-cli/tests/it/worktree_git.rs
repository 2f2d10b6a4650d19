//! Git in a worktree of an agent's own: commands commit there, and nothing of the person's repository is
//! written by that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use convoke_sim::{Reply, Script, calls, says};
use serde_json::json;

use crate::repo::{files, git, read, repository, standing, write};
use crate::stage::{Seen, Stage};
use crate::undo::run_id;
use crate::worktrees::killed_half_way;

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

/// Everything in the person's git dir but objects, and but what Convoke keeps for itself: refs, HEAD, index,
/// settings, hooks, logs.
fn metadata(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let git = dir.join(".git");
    let ours = ["objects", "worktrees", "refs/convoke", "refs/heads/convoke"].map(|below| git.join(below));
    let mut found = BTreeMap::new();
    let mut open = vec![git];
    while let Some(at) = open.pop() {
        for path in std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()) {
            if ours.contains(&path) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// What the last command of an agent came to, as its model was told.
fn told(stage: &Stage) -> String {
    let requests = stage.sim().requests();
    let texts = requests.iter().flat_map(|request| {
        let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
        messages.into_iter().map(|message| message["content"].to_string()).collect::<Vec<_>>()
    });
    texts.filter(|text| text.contains("tool_result")).last().unwrap_or_default()
}

const PROGRAM: &str = "export const meta = { name: 'apart', description: 'one agent in a worktree' };\n\
                       return await agent('change it', { isolation: 'worktree' });\n";

/// Such a session.
struct Apart {
    stage: Stage,
    dir: PathBuf,
    seen: Seen,
    /// The person's metadata before it.
    before: BTreeMap<PathBuf, Vec<u8>>,
}

/// A run of a program whose one agent does this in a worktree, in a repository whose own hook and settings
/// would be noticed.
async fn apart(layers: &str, command: &str) -> Apart {
    let stage = Stage::with(Script::new().conversation("*", [bash(command), says("Done.")])).await;
    let dir = repository(&stage, &[("a.txt", "first\n"), (".gitignore", "*.o\n")]);
    git(&dir, &["branch", "other"]);
    git(&dir, &["pack-refs", "--all"]);
    write(&dir, ".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    std::fs::set_permissions(
        dir.join(".git/hooks/pre-commit"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let program = stage.home().join("apart.js");
    std::fs::write(&program, PROGRAM).unwrap();
    let program = program.to_str().unwrap().to_owned();
    let before = metadata(&dir);
    let seen = stage.run(&["--sandbox-layers", layers, "workflow", "run", &program, "--yes"]).await.exits(0);
    Apart { stage, dir, seen, before }
}

async fn agents_commit_and_the_repository_stays(layers: &str) {
    let work = "set -e; echo more >> a.txt; echo new > new.txt; git add -A; git commit -qm 'my work'; git \
        log --oneline -1; git status --short; git log --format=%s -1 other; git checkout -qb feature; echo \
        third > third.txt; git stash -qu; test ! -e third.txt; git stash pop -q; git add third.txt; git \
        commit -qm 'on a branch'; git branch --list; git diff --stat other..feature | tail -1; echo loose > \
        loose.txt; mkdir t; cd t; git init -q .; cd ..; rm -rf t; echo all-done";
    let Apart { stage, dir, seen, before } = apart(layers, work).await;
    assert_eq!(metadata(&dir), before, "{layers}");
    let said = told(&stage);
    for word in ["my work", "feature", "3 files changed", "all-done"] {
        assert!(said.contains(word), "{layers}: {word}: {said}");
    }
    assert!(!said.contains("throwaway copy"), "{layers}: {said}");
    let run = run_id(&seen);
    let checkout = files(&dir);
    assert_eq!(git(&dir, &["for-each-ref", "refs/heads/feature", "refs/stash"]), "", "{layers}");
    let trees = stage.run(&["--output", "json", "worktrees", "list", &run]).await.exits(0).json();
    let tree = &trees["worktrees"][0];
    assert_eq!(tree["files"], json!(["a.txt", "loose.txt", "new.txt", "third.txt"]), "{layers}");
    let agent = tree["agent"].as_str().unwrap();
    let patch = stage.run(&["worktrees", "diff", &run, agent]).await.exits(0).stdout;
    assert!(
        ["+more", "+new", "+third", "+loose"].iter().all(|line| patch.contains(line)),
        "{layers}: {patch}"
    );
    stage.run(&["worktrees", "apply", &run, agent]).await.exits(0);
    assert_eq!(
        read(&dir, "a.txt") + &read(&dir, "third.txt") + &read(&dir, "loose.txt"),
        "first\nmore\nthird\nloose\n"
    );
    stage.run(&["runs", "undo", &run]).await.exits(0);
    assert_eq!(files(&dir), checkout, "{layers}");
    assert_eq!(metadata(&dir), before, "{layers}");
}

#[tokio::test]
async fn an_agent_in_a_worktree_commits_and_the_repository_stays_as_it_was() {
    agents_commit_and_the_repository_stays("best").await;
    agents_commit_and_the_repository_stays("landlock").await;
}

#[tokio::test]
async fn nothing_that_an_agent_plants_in_its_git_dir_is_run_or_believed_outside() {
    for layers in ["best", "landlock"] {
        // The checkout can be written from outside alone, so only the host could leave a mark there.
        let plant = "mark=$(dirname $(git rev-parse --path-format=absolute --git-path \
            objects/info/alternates | xargs head -1))/../../ran; own=$(git rev-parse --absolute-git-dir); \
            mkdir -p $own/hooks; printf '#!/bin/sh\\ntouch %s\\n' $mark > $own/plant; chmod +x $own/plant; \
            for hook in post-commit post-checkout reference-transaction post-index-change; do cp $own/plant \
            $own/hooks/$hook; done; echo one >> a.txt; git add -A; git commit -qm one; for key in \
            core.fsmonitor core.hooksPath diff.external filter.x.clean filter.x.smudge; do git config $key \
            $own/plant; done; git config core.hooksPath $own/hooks; echo '* filter=x diff=x' > \
            .gitattributes; echo $own > where.txt; rm -f $own/HEAD.lock; echo /etc > $own/commondir; echo \
            planted";
        let Apart { stage, dir, seen, before } = apart(layers, plant).await;
        assert!(told(&stage).contains("planted"), "{layers}: {}", told(&stage));
        let run = run_id(&seen);
        let trees = stage.run(&["--output", "json", "worktrees", "list", &run]).await.exits(0).json();
        let agent = trees["worktrees"][0]["agent"].as_str().unwrap().to_owned();
        let patch = stage.run(&["worktrees", "diff", &run, &agent]).await.exits(0).stdout;
        assert!(patch.contains("+one") && patch.contains("filter=x"), "{layers}: {patch}");
        stage.run(&["worktrees", "apply", &run, &agent]).await.exits(0);
        let own = read(&dir, "where.txt");
        assert!(Path::new(own.trim()).starts_with(stage.state()), "{layers}: {own}");
        assert!(!Path::new(own.trim()).exists(), "{layers}: it goes with its agent");
        stage.run(&["runs", "undo", &run]).await.exits(0);
        assert!(!dir.join("ran").exists(), "{layers}: the host ran it");
        assert_eq!(metadata(&dir), before, "{layers}");
    }
}

#[tokio::test]
async fn a_person_s_repository_cannot_be_written_from_a_worktree() {
    for layers in ["best", "landlock"] {
        let common =
            "common=$(dirname $(head -1 $(git rev-parse --absolute-git-dir)/objects/info/alternates))";
        let escape = format!(
            "{common}; for file in HEAD config index packed-refs hooks/pre-commit info/exclude refs/heads/x \
             objects/x; do (echo x >> $common/$file) 2>/dev/null && echo wrote-$file; done; git \
             --git-dir=$common branch stolen 2>/dev/null && echo wrote-branch; git push -q $common \
             HEAD:refs/heads/pushed 2>/dev/null && echo wrote-push; test -f $common/HEAD && echo tried"
        );
        let Apart { stage, dir, before, .. } = apart(layers, &escape).await;
        let said = told(&stage);
        assert!(said.contains("tried") && !said.contains("wrote-"), "{layers}: {said}");
        assert_eq!(metadata(&dir), before, "{layers}");
    }
}

#[tokio::test]
async fn what_is_only_in_a_stash_or_on_another_branch_is_kept_until_the_run_is_pruned() {
    let work = "git checkout -qb aside; echo aside > aside.txt; git add -A; git commit -qm aside; git \
        checkout -q -; echo stashed >> a.txt; git stash -q; echo done";
    let Apart { stage, dir, seen, .. } = apart("best", work).await;
    let report = stage.run(&["--output", "json", "resume", &run_id(&seen)]).await.exits(0).stdout;
    let kept = report.split("are kept in ").nth(1).unwrap_or_else(|| panic!("{report}"));
    let kept = kept.split(" until the run is pruned").next().unwrap();
    assert!(Path::new(kept).starts_with(stage.state()), "{kept}");
    // As a person would get at it: nothing that stands in that git dir is run by a fetch.
    git(&dir, &["fetch", "-q", kept, "refs/stash:refs/heads/stashed", "refs/heads/aside:refs/heads/aside"]);
    assert_eq!(git(&dir, &["show", "stashed:a.txt"]), "first\nstashed\n");
    assert_eq!(git(&dir, &["show", "aside:aside.txt"]), "aside\n");
    stage.run(&["runs", "prune", &run_id(&seen), "--yes"]).await.exits(0);
    assert!(!Path::new(kept).exists());
}

#[tokio::test]
async fn a_lead_that_is_killed_finds_its_commits_again() {
    let replies = [
        bash("echo more >> a.txt; git add -A; git commit -qm 'before the kill'; git branch mark"),
        bash("echo half > half.txt; sleep 600"),
        bash("git log --format=%s; git branch --list; git status --short"),
        says("Done."),
    ];
    let stage = Stage::with(Script::new().conversation("*", replies)).await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    let before = standing(&dir);
    killed_half_way(&stage).await;
    let run = run_id(&stage.run(&["resume"]).await.exits(0));
    let said = told(&stage);
    assert!(["before the kill", "mark", "?? half.txt"].iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(standing(&dir), before);
    let names = stage.run(&["worktrees", "diff", &run, "lead", "--name-only"]).await.exits(0).stdout;
    assert_eq!(names, "a.txt\nhalf.txt\n", "what was committed and what was not");
}
