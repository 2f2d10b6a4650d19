//! Rules held against calls: what is allowed, refused and asked about.

use super::*;

fn rule(tool: &str, command: &str, path: &str, decision: Decision) -> Rule {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Rule { tool: some(tool), command: some(command), path: some(path), decision }
}

fn check(ask: AskWhen, rules: &[Rule], subject: Subject<'_>, expected: &str) {
    let approvals = Approvals { ask, rules: rules.to_vec(), park: false };
    let got = match approvals.rule_on(&subject) {
        Ruling::Allow => "allow",
        Ruling::Deny(_) => "deny",
        Ruling::Ask(_) => "ask",
    };
    assert_eq!(got, expected, "{ask:?} {subject:?} {rules:?}");
}

fn command(text: &str) -> Subject<'_> {
    Subject::Command(text)
}

fn write(path: &str) -> Subject<'static> {
    Subject::file("edit", path, true, "/w")
}

fn view(path: &str) -> Subject<'static> {
    Subject::file("view", path, false, "/w")
}

#[test]
fn without_rules_only_always_asks() {
    check(AskWhen::Never, &[], command("ls"), "allow");
    check(AskWhen::WhenNeeded, &[], command("ls"), "allow");
    check(AskWhen::Always, &[], command("ls"), "ask");
    check(AskWhen::Always, &[], write("a"), "ask");
    check(AskWhen::Always, &[], view("a"), "allow");
}

#[test]
fn refusing_goes_before_asking_and_asking_before_allowing() {
    let rules = [
        rule("bash", "git", "", Decision::Allow),
        rule("bash", "git push", "", Decision::Ask),
        rule("bash", "git push --force", "", Decision::Deny),
    ];
    check(AskWhen::WhenNeeded, &rules, command("git status"), "allow");
    check(AskWhen::WhenNeeded, &rules, command("git push origin"), "ask");
    check(AskWhen::WhenNeeded, &rules, command("git push --force"), "deny");
    check(AskWhen::Never, &rules, command("git push"), "deny");
    check(AskWhen::Always, &rules, command("git status"), "allow");
}

#[test]
fn a_rule_that_allows_the_very_command_goes_before_one_that_asks_about_its_kind() {
    let mut rules = vec![
        rule("bash", "git push", "", Decision::Ask),
        rule("bash", "git push origin", "", Decision::Allow),
    ];
    for ask in [AskWhen::Never, AskWhen::WhenNeeded, AskWhen::Always] {
        check(ask, &rules, command("git push  origin"), "allow");
    }
    check(AskWhen::WhenNeeded, &rules, command("git push origin main"), "ask");
    check(AskWhen::WhenNeeded, &rules, command("git push"), "ask");
    rules.push(rule("", "git push", "", Decision::Deny));
    check(AskWhen::WhenNeeded, &rules, command("git push origin"), "deny");
}

#[test]
fn a_prefix_is_whole_words_and_allows_only_simple_commands() {
    let allow = [rule("bash", "cargo test", "", Decision::Allow)];
    check(AskWhen::Always, &allow, command("cargo test -p kernel"), "allow");
    check(AskWhen::Always, &allow, command("cargo tests"), "ask");
    for tail in ["; rm x", " && rm x", " | sh", " $(rm x)", " `rm x`", "\nrm x", " > /etc/x", " &"] {
        check(AskWhen::Always, &allow, command(&format!("cargo test{tail}")), "ask");
    }
    let deny = [rule("", "rm", "", Decision::Deny)];
    for text in [
        "env rm x",
        "if true; then rm x; fi",
        "\\rm x",
        "X=1 rm x",
        "! rm x",
        ">/dev/null rm x",
        "r\\m x",
        "time rm x",
        "/bin/rm x",
        "r''m x",
        "ls | xargs -0 rm",
        "sudo -u me rm x",
        "timeout 5 rm x",
        "\\\nrm x",
        "while :; do rm x; done",
    ] {
        check(AskWhen::Never, &deny, command(text), "deny");
    }
    for text in ["rm x", "ls; rm x", "ls && rm x", "echo $(rm x)", "true\nrm x", "  rm x", "bash -c 'rm x'"] {
        check(AskWhen::Never, &deny, command(text), "deny");
    }
    check(AskWhen::Never, &deny, command("echo rm"), "allow");
    check(AskWhen::Never, &deny, command("rmdir x"), "allow");
}

#[test]
fn a_forbidden_program_is_found_behind_every_program_that_runs_another_one() {
    let deny = [rule("", "rm", "", Decision::Deny)];
    for text in [
        "coproc rm x",
        "coproc X { rm x; }",
        "flock /tmp/lock rm x",
        "flock /tmp/lock -c rm",
        "flock --command=rm /tmp/lock",
        "watch -n1 rm x",
        "find . -exec rm {} +",
        "find . -type f -execdir rm {} \\;",
        "find . -ok rm {} \\;",
        "find . -okdir /bin/rm {} \\;",
        "fd . --exec rm",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "/lib/ld-musl-x86_64.so.1 rm x",
        "ld.so --argv0 x /bin/rm y",
        "setsid -w rm x",
        "stdbuf -oL rm x",
        "chroot / rm x",
        "unshare -r rm x",
        "script -qc rm /dev/null",
        "parallel rm ::: x",
        "ionice -c 3 rm x",
        "taskset 1 rm x",
        "chrt -i 0 rm x",
        "strace -f rm x",
        "ltrace rm x",
        "gdb --args rm x",
        "busybox rm x",
        "toybox rm x",
        "trap rm\\ x EXIT",
        "2>&1 rm x",
        ">| /dev/null rm x",
        "> /dev/null rm x",
        "env --split-string=rm",
    ] {
        check(AskWhen::Never, &deny, command(text), "deny");
    }
    for text in ["find . -name rm", "find . -exec grep x {} +", "flock /tmp/lock ls", "echo coproc"] {
        check(AskWhen::Never, &deny, command(text), "allow");
    }
}

#[test]
fn a_program_whose_name_cannot_be_told_counts_as_the_forbidden_one() {
    let rules = |decision| [rule("", "rm", "", decision), rule("", "git push", "", decision)];
    for text in [
        "{rm,-rf,x}",
        "{r,}m x",
        "/bin/r? x",
        "/bin/r[m] x",
        "/???/r* x",
        "/usr/bin/en? rm x",
        "$x y",
        "${x} y",
        "x=rm; $x y",
        "\"$x\" y",
        "\"${all[@]}\" y",
        "$(echo rm) x",
        "`echo rm` x",
        "$'\\x72m' x",
        "ls; if $x; then ls; fi",
        "echo $($x)",
        "echo \"$(r? y)\"",
        "env -i $x",
        "timeout 5 $x",
        "eval \"$x\"",
        "find . -exec $x {} +",
        "$x/y z",
        "git pus? origin",
        "git $x",
        "git {push,origin}",
        "git $nothing push",
    ] {
        check(AskWhen::Never, &rules(Decision::Deny), command(text), "deny");
        check(AskWhen::WhenNeeded, &rules(Decision::Ask), command(text), "ask");
    }
    // What is no program, and what cannot be one of these, is not in the way.
    for text in [
        "echo $x",
        "echo \"$x\" {a,b} *",
        "x=$y",
        "x=$(date) make",
        "make *.o",
        "/usr/bin/python3.? x.py",
        "\"$HOME\"/bin/tool x",
        "\"$HOME/bin/tool\" x",
        "sudo cp $a $b",
        "timeout \"$t\" make $target",
        "xargs -I {} cp {} $dest",
        "cat > x <<'EOF'\n$x y\n/bin/r? z\nEOF\nls",
        "cat <<-EOF | sort\n\t$x y\n\tEOF",
        "awk '$1 > 5 {print $2}' file",
        "for f in *; do echo \"$f\"; done",
        "case $x in a) ls;; *) echo;; esac",
        "[ $x = y ] && [[ $x ]] && (( $i < 3 )) && ls",
        "echo $((1 + $x))",
        "ls # $x",
        "'$x' y",
        "git commit -m \"$message\"",
        "git add $files",
    ] {
        check(AskWhen::Never, &rules(Decision::Deny), command(text), "allow");
    }
    let deny = Approvals { rules: rules(Decision::Deny).to_vec(), ..Approvals::default() };
    let Ruling::Deny(why) = deny.rule_on(&command("$x y")) else { panic!("it is refused") };
    assert!(why.contains("cannot be told") && why.contains("command = \"rm\""), "{why}");
}

#[test]
fn a_long_chain_of_programs_that_run_others_is_decided_at_once() {
    let deny = [rule("", "rm", "", Decision::Deny)];
    let chain = "env ".repeat(2_000);
    check(AskWhen::Never, &deny, command(&format!("{chain}ls")), "allow");
    check(AskWhen::Never, &deny, command(&format!("{chain}rm")), "deny");
}

#[test]
fn paths_are_globs_and_say_nothing_about_commands() {
    let rules = [rule("edit", "", "src/**/*.rs", Decision::Deny), rule("", "", ".env", Decision::Deny)];
    check(AskWhen::Never, &rules, write("src/a.rs"), "deny");
    check(AskWhen::Never, &rules, write("src/a/b/c.rs"), "deny");
    check(AskWhen::Never, &rules, write("./src/a.rs"), "deny");
    check(AskWhen::Never, &rules, write("src/a.txt"), "allow");
    check(AskWhen::Never, &rules, write("deep/er/.env"), "deny");
    check(AskWhen::Never, &rules, write("x.env"), "allow");
    check(AskWhen::Never, &rules, view(".env"), "deny");
    check(AskWhen::Never, &rules, view("src/a.rs"), "allow");
    check(AskWhen::Never, &rules, command("cat .env"), "allow");
}

#[test]
fn a_path_is_what_it_is_below_the_directory_however_it_is_spelt() {
    let rules = [rule("edit", "", "src/**", Decision::Deny), rule("edit", "", "docs/**", Decision::Allow)];
    for path in ["src/a", "./src/a", "/w/src/a", "/w/./src//a", "docs/../src/a", "/w/docs/../src/a"] {
        check(AskWhen::Always, &rules, write(path), "deny");
    }
    check(AskWhen::Always, &rules, write("docs/a"), "allow");
    check(AskWhen::Always, &rules, write("/w/docs/a"), "allow");
    for path in ["docs/../b", "docs/x/../a", "/elsewhere/docs/a", "/wide/docs/a"] {
        check(AskWhen::Always, &rules, write(path), "ask");
    }
}

#[test]
fn globs_stay_within_a_directory_unless_they_say_otherwise() {
    for (glob, path, expected) in [
        ("a/*.rs", "a/b.rs", true),
        ("a/*.rs", "a/b/c.rs", false),
        ("a/**", "a/b/c.rs", true),
        ("a/**", "a", true),
        ("a/**", "ab", false),
        ("**/c.rs", "c.rs", true),
        ("a?c", "abc", true),
        ("a/?", "a//", false),
        ("*", "deep/file", true),
        ("x/**/y", "x/y", true),
    ] {
        assert_eq!(glob_matches(glob, path), expected, "{glob} {path}");
    }
}
