//! The examples below the help of the commands that have no file of their own.

pub(super) const EXAMPLES: &str = "\
Examples:
  convoke                       a session, in a terminal
  convoke --offline             the same, without a key
  convoke review the error handling in src
  convoke run @task.md          the task is in a file
  git diff | convoke run -      the task comes from stdin
  convoke --budget-usd 2.50 find dead code
  convoke --sandbox read-only explain src
  convoke resume                go on after a crash or stop
  convoke sessions show s_k3    who did what, in full
  convoke approvals list s_k3   what it waits for
  convoke sessions diff s_k3    what it changed
  convoke sessions undo s_k3    takes that back
  convoke workflow run review   a program that starts agents
  convoke team list             who is in the team
  convoke tasks list            and what there is to do

Exit codes:
  0 done                 4 stopped by a budget
  1 failed               5 waits for a person, was
                           paused or stopped
  2 wrong usage          6 a finding the caller
  3 finished in part       asked to fail on
  130, 143, 129: stopped by SIGINT, SIGTERM, SIGHUP;
  `convoke resume` goes on.

The answer is on stdout, everything else on stderr.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  convoke run                   reviews this directory
  convoke run --offline         the same, without a key
  convoke run explain src/main.rs
  convoke run @task.md
  convoke run --output json -   reads the task from stdin
  convoke run review src --report r.sarif --fail-on high
  convoke run review src --verify 3 --budget-usd none
  convoke run review src --continue
  convoke run tidy up src --isolation worktree
  convoke run fetch the crates --network-allow crates.io
  convoke run review src --follow-up \"Summarise it.\" \\
    --follow-up-mode off";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  convoke resume                the newest unfinished
                                session of this directory
  convoke resume s_k3           any unique prefix of an id
  convoke resume s_k3 --budget-usd 20
                                grants a new total
  convoke resume s_k3 --allow q_7f3k2m4x --deny q_b6
                                answers what it asked
  convoke resume s_k3 --answer 4=yes --skip 7
                                to calls of its workflow
  convoke resume s_k3 --script flow.js
                                its workflow, edited
  convoke resume s_k3 --sandbox off
                                a session that was begun so";

pub(super) const APPROVALS_EXAMPLES: &str = "\
Examples:
  convoke approvals list s_k3
  convoke resume s_k3 --allow q_7f3k2m4x
  convoke resume s_k3 --deny all";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  convoke completions bash > \\
    ~/.local/share/bash-completion/completions/convoke
  convoke completions zsh > ~/.zfunc/_convoke
                                with ~/.zfunc in fpath,
                                before compinit
  convoke completions fish > \\
    ~/.config/fish/completions/convoke.fish";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  convoke man | man -l -
  convoke man sessions undo | man -l -
  convoke man --dir ~/.local/share/man/man1
                                then: man convoke-run";

pub(super) const SIM_EXAMPLES: &str = "\
Examples:
  convoke sim                   prints its address
  convoke sim --listen 127.0.0.1:8080
  ANTHROPIC_BASE_URL=http://127.0.0.1:8080 \\
    convoke run look around";
