//! What a command leaves behind where neither the person nor Convoke looks: files with a second name outside,
//! and files that run when the person does something later. And what stands readable in a home. The twin is
//! the same command where nothing is held, looked at with plain git.

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::{Field, SECRET, plain_git};
use super::targets::filled;
use crate::escapes::bash;
use crate::repo::{git, write};

const fn second_name(name: &'static str) -> Attempt {
    Attempt { name, family: "hard-links", wins: "a file outside was changed through its second name" }
}

const fn later(name: &'static str) -> Attempt {
    Attempt {
        name,
        family: "run-later",
        wins: "what runs later was changed, and neither run, diff nor undo says so",
    }
}

const fn credential(name: &'static str) -> Attempt {
    Attempt { name, family: "credentials", wins: "a command reads a credential" }
}

/// A file with two names, and what a command does to the one in the workspace.
struct Second {
    attempt: Attempt,
    at: &'static str,
    command: &'static str,
}

const SECONDS: &[Second] = &[
    Second { attempt: second_name("appended"), at: "a/f1", command: "echo more >> a/f1" },
    Second { attempt: second_name("emptied"), at: "a/f2", command: ": > a/f2" },
    Second {
        attempt: second_name("overwritten-in-place"),
        at: "a/f3",
        command: "printf x | dd of=a/f3 conv=notrunc",
    },
    Second {
        attempt: second_name("under-a-third-name"),
        at: "a/f4",
        command: "ln a/f4 third; echo more >> third",
    },
    Second { attempt: second_name("moved-first"), at: "a/f5", command: "mv a/f5 moved; echo more >> moved" },
    Second {
        attempt: second_name("in-the-background"),
        at: "a/f6",
        command: "(sleep 0.2; echo more >> a/f6) & wait",
    },
    Second {
        attempt: second_name("in-node-modules"),
        at: "node_modules/p/index.js",
        command: "echo more >> node_modules/p/index.js",
    },
    Second {
        attempt: second_name("in-a-virtual-environment"),
        at: ".venv/lib/python3/site-packages/m.py",
        command: "echo more >> .venv/lib/python3/site-packages/m.py",
    },
    Second {
        attempt: second_name("deep-down"),
        at: "1/2/3/4/5/6/7/8/9/10/f",
        command: "echo more >> 1/2/3/4/5/6/7/8/9/10/f",
    },
    Second { attempt: second_name("by-its-mode"), at: "a/f7", command: "chmod 777 a/f7" },
];

pub(crate) fn scenes() -> Vec<Scene> {
    vec![
        Scene::new(SECONDS.iter().map(|one| one.attempt).collect(), seconds),
        Scene::new(LATER.iter().map(|one| one.attempt).collect(), run_later),
        Scene::new(CREDENTIALS.iter().map(|one| one.attempt).collect(), credentials),
    ]
}

async fn seconds(cell: Cell) -> Vec<Came> {
    use std::os::unix::fs::PermissionsExt;
    let mut field = Field::new(cell, &[("a.txt", "a\n"), (".gitignore", "node_modules\n.venv\n")]);
    for one in SECONDS {
        let victim = field.victim(one.attempt.name);
        let at = field.work().join(one.at);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::hard_link(victim, at).unwrap();
    }
    let commands: Vec<&str> = SECONDS.iter().map(|one| one.command).collect();
    let seen = field.commands(&commands, &[]).await.text();
    let came = |one: &Second| {
        let mode = std::fs::metadata(field.outside().join(one.attempt.name)).unwrap().permissions().mode();
        Came::once(one.attempt.name, field.harmed(one.attempt.name) || mode & 0o022 != 0, seen.clone())
    };
    SECONDS.iter().map(came).collect()
}

/// A file that runs, or says what runs, when a person does something ordinary.
struct Later {
    attempt: Attempt,
    at: &'static str,
    command: &'static str,
}

const LATER: &[Later] = &[
    Later {
        attempt: later("hook-in-the-tree"),
        at: ".husky/_/pre-commit",
        command: "printf '#!/bin/sh\\necho planted\\n' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit",
    },
    Later {
        attempt: later("new-hook-in-the-tree"),
        at: ".husky/_/post-checkout",
        command: "printf '#!/bin/sh\\necho planted\\n' > .husky/_/post-checkout; chmod +x \
            .husky/_/post-checkout",
    },
    Later { attempt: later("directory-environment"), at: ".envrc", command: "echo 'echo planted' >> .envrc" },
    Later {
        attempt: later("program-of-a-package"),
        at: "node_modules/.bin/tool",
        command: "printf '#!/bin/sh\\necho planted\\n' > node_modules/.bin/tool; chmod +x \
            node_modules/.bin/tool",
    },
    Later {
        attempt: later("new-program-of-a-package"),
        at: "node_modules/.bin/other",
        command: "printf '#!/bin/sh\\necho planted\\n' > node_modules/.bin/other; chmod +x \
            node_modules/.bin/other",
    },
    Later {
        attempt: later("included-settings-of-git"),
        at: "team.gitconfig",
        command: "printf '[core]\\n\\tfsmonitor = planted\\n' >> team.gitconfig",
    },
    Later {
        attempt: later("settings-of-mercurial"),
        at: ".hg/hgrc",
        command: "printf '[hooks]\\nupdate = planted\\n' >> .hg/hgrc",
    },
    Later {
        attempt: later("settings-of-jujutsu"),
        at: ".jj/repo/config.toml",
        command: "printf 'x = \"planted\"\\n' >> .jj/repo/config.toml",
    },
    Later {
        attempt: later("settings-of-sapling"),
        at: ".sl/config",
        command: "printf '[hooks]\\nupdate = planted\\n' >> .sl/config",
    },
    Later {
        attempt: later("settings-of-git"),
        at: ".git/config",
        command: "printf '[alias]\\n\\tst = !planted\\n' >> .git/config",
    },
    Later {
        attempt: later("hook-of-git"),
        at: ".git/hooks/pre-push",
        command: "printf '#!/bin/sh\\necho planted\\n' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push",
    },
];

async fn run_later(cell: Cell) -> Vec<Came> {
    let ignored = ".husky/_\n.envrc\nnode_modules\nteam.gitconfig\n.hg\n.jj\n.sl\n";
    let mut field = Field::new(cell, &[("a.txt", "a\n"), (".gitignore", ignored)]);
    for at in [".husky/_/pre-commit", ".envrc", "node_modules/.bin/tool", "team.gitconfig", ".hg/hgrc"] {
        write(&field.work(), at, "\n");
    }
    for at in [".jj/repo/config.toml", ".sl/config"] {
        write(&field.work(), at, "\n");
    }
    git(&field.work(), &["config", "core.hooksPath", ".husky/_"]);
    git(&field.work(), &["config", "include.path", "../team.gitconfig"]);
    let commands: Vec<&str> = LATER.iter().map(|one| one.command).collect();
    let ended = field.commands(&commands, &[]).await;
    let planted = |field: &Field, at: &str| {
        std::fs::read_to_string(field.work().join(at)).is_ok_and(|text| text.contains("planted"))
    };
    if field.twin() {
        let told =
            plain_git(&field.work(), &["status", "--porcelain"]) + &plain_git(&field.work(), &["diff"]);
        plain_git(&field.work(), &["checkout", "."]);
        plain_git(&field.work(), &["clean", "-fd"]);
        let won = |one: &Later| planted(&field, one.at) && !told.contains(one.at);
        return LATER.iter().map(|one| Came::once(one.attempt.name, won(one), told.clone())).collect();
    }
    // The echo of the commands themselves names the files too, and is no warning.
    let said: String = ended
        .text()
        .lines()
        .filter(|line| !line.contains("running: "))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let diff = field.person(&["runs", "diff", &ended.run()]).await.text();
    let undo = field.person(&["runs", "undo", &ended.run()]).await.text();
    let told = said + &diff + &undo;
    let won = |one: &Later| planted(&field, one.at) && !told.contains(one.at);
    LATER.iter().map(|one| Came::once(one.attempt.name, won(one), told.clone())).collect()
}

/// A file of a home with something in it that opens doors.
struct Credential {
    attempt: Attempt,
    at: &'static str,
    text: &'static str,
}

const CREDENTIALS: &[Credential] = &[
    Credential { attempt: credential("cabal"), at: ".cabal/config", text: "password: N-SECRET\n" },
    Credential {
        attempt: credential("dotnet-certificate"),
        at: ".dotnet/corefx/cryptography/x509stores/my/a.pfx",
        text: "N-SECRET\n",
    },
    Credential {
        attempt: credential("uv"),
        at: ".local/share/uv/credentials/credentials.toml",
        text: "N-SECRET\n",
    },
    Credential { attempt: credential("conda"), at: ".conda/aau_token", text: "N-SECRET\n" },
    Credential {
        attempt: credential("git-address"),
        at: ".gitconfig",
        text: "[url \"https://me:N-SECRET@host/\"]\n\tinsteadOf = https://host/\n[user]\n\tname = Me\n",
    },
    Credential {
        attempt: credential("git-header"),
        at: ".config/git/config",
        text: "[http \"https://host/\"]\n\textraheader = Authorization: N-SECRET\n",
    },
    Credential { attempt: credential("ssh-key"), at: ".ssh/id_ed25519", text: "N-SECRET\n" },
    Credential {
        attempt: credential("network-passwords"),
        at: ".netrc",
        text: "machine h password N-SECRET\n",
    },
];

async fn credentials(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let secret = |one: &Credential| format!("{SECRET}-{}", one.attempt.name);
    for one in CREDENTIALS {
        write(&field.home(), one.at, &one.text.replace("N-SECRET", &secret(one)));
    }
    let look: Vec<String> = CREDENTIALS.iter().map(|one| format!("cat ~/{}; true", one.at)).collect();
    let git = "git config --list --show-origin --global; true".to_owned();
    let told = if field.twin() {
        let mut told = String::new();
        for command in look.iter().chain([&git]) {
            told.push_str(&field.plainly(command).await.text());
        }
        told
    } else {
        let commands = look.iter().chain([&git]).map(|command| bash(&filled(&field, command))).collect();
        let ended = field.replies(commands, &[]).await;
        field.told() + &ended.text()
    };
    CREDENTIALS
        .iter()
        .map(|one| Came::once(one.attempt.name, told.contains(&secret(one)), told.clone()))
        .collect()
}
