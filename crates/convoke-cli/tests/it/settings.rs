//! Layers, narrowing, unknown keys, and what `config show` says of them.

use serde_json::Value;

use crate::support::{TestHome, ran};

/// Writes both files, and expects `config show` to be refused with this text.
#[track_caller]
fn check_refused(user: &str, project: &str, expected: &str) {
    let place = TestHome::new();
    place.write(&place.user_config(), user);
    place.write(&place.project_config(), project);
    let got = place.convoke(&["config", "show"]);
    assert_eq!(got.code, 2, "{}", got.err);
    assert_eq!(got.out, "");
    assert_eq!(place.normal(&got.err), format!("convoke: {expected}\n"));
}

/// Writes both files, and expects a key to have this value from there.
#[track_caller]
fn check_key(
    user: &str,
    project: &str,
    env: &[(&str, &str)],
    args: &[&str],
    key: &str,
    value: &str,
    origin: &str,
) {
    let place = TestHome::new();
    place.write(&place.user_config(), user);
    place.write(&place.project_config(), project);
    let mut command = place.command(&["config", "show", "--output", "json"]);
    let got = ran(command.args(args).envs(env.iter().copied()));
    assert_eq!(got.code, 0, "{}", got.err);
    let shown: Value = serde_json::from_str(&got.out).unwrap();
    let rows = shown["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key} in {}", got.out));
    let found = (row["value"].as_str().unwrap_or("null"), place.normal(row["origin"].as_str().unwrap()));
    assert_eq!(found, (value, origin.to_owned()));
}

const USER: &str = "ROOT/home/.config/convoke/config.toml";
const PROJECT: &str = "ROOT/work/.convoke/config.toml";

#[test]
fn each_layer_lies_over_the_one_before() {
    let user = "model = \"m-user\"\nmax_turns = 20\n";
    let project = "model = \"m-project\"";
    let env = [("ANTHROPIC_MODEL", "m-env")];
    check_key("", "", &[], &[], "model", "claude-opus-4-8", "default");
    check_key(user, "", &[], &[], "model", "m-user", &format!("{USER}:1"));
    check_key(user, project, &[], &[], "model", "m-user", &format!("{USER}:1"));
    check_key(user, project, &[], &["--trust-project"], "model", "m-project", &format!("{PROJECT}:1"));
    check_key(user, project, &env, &[], "model", "m-env", "environment ANTHROPIC_MODEL");
    check_key(user, project, &env, &["--model", "m-flag"], "model", "m-flag", "flag --model");
    check_key(user, project, &[], &[], "max_turns", "20", &format!("{USER}:2"));
    check_key("", "", &[("ANTHROPIC_MODEL", "")], &[], "model", "claude-opus-4-8", "default");
}

#[test]
fn the_effort_is_xhigh_where_the_model_has_it() {
    check_key("", "", &[], &[], "effort", "xhigh", "default");
    check_key("", "", &[], &["--model", "claude-haiku-4-5"], "effort", "null", "default");
    check_key("", "", &[], &["--effort", "low"], "effort", "low", "flag --effort");
    let generic = [("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")];
    check_key("", "", &generic, &[], "effort", "xhigh", "default");
    check_key("", "", &generic, &["--model", "llama"], "effort", "null", "default");
}

#[test]
fn an_effort_the_model_does_not_have_is_refused_with_what_it_has() {
    let got = TestHome::new().convoke(&["config", "show", "--model", "claude-opus-4-6", "--effort", "xhigh"]);
    assert_eq!(got.code, 2);
    let expected = "convoke: effort (flag --effort): model `claude-opus-4-6` does not take effort `xhigh`; \
        choose one of: low, medium, high, max\n  `--effort default` leaves it to the model\n";
    assert_eq!(got.err, expected);
}

#[test]
fn d1_4_the_journal_is_a_flag_a_variable_a_key_or_in_the_state_directory() {
    let usual = "ROOT/home/.local/state/convoke/journal.db";
    let place = TestHome::new();
    let check = |user: &str, env: &[(&str, &str)], args: &[&str], value: &str| {
        place.write(&place.user_config(), user);
        let mut command = place.command(&["config", "show", "--output", "json"]);
        let got = ran(command.args(args).envs(env.iter().copied()));
        let shown: Value = serde_json::from_str(&got.out).unwrap();
        let rows = shown["settings"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == "journal").unwrap();
        assert_eq!(place.normal(row["value"].as_str().unwrap()), value);
    };
    check("", &[], &[], usual);
    check("", &[("XDG_STATE_HOME", "/x")], &[], "/x/convoke/journal.db");
    check("", &[("XDG_STATE_HOME", "relative")], &[], usual);
    check("journal = \"j.db\"", &[], &[], "ROOT/home/.config/convoke/j.db");
    check("journal = \"~/j.db\"", &[], &[], "ROOT/home/j.db");
    check("journal = \"/k.db\"", &[("ORCH_JOURNAL", "j.db")], &[], "ROOT/work/j.db");
    check("", &[("ORCH_JOURNAL", "/e.db")], &["--journal", "/f.db"], "/f.db");
    check("", &[], &["--journal", "postgres://me:pw@host/db"], "postgres://***@host/db");
}

#[test]
fn the_password_of_a_journal_in_words_is_printed_nowhere() {
    let place = TestHome::new();
    let words = "host=127.0.0.1 port=1 user=me password=hunter2hunter2 dbname=db connect_timeout=1";
    let check = |args: &[&str], code: i32, by_flag: bool| {
        let mut command = place.command(args);
        let command =
            if by_flag { command.args(["--journal", words]) } else { command.env("ORCH_JOURNAL", words) };
        let got = ran(command);
        assert_eq!(got.code, code, "{args:?}: {}{}", got.out, got.err);
        for text in [&got.out, &got.err] {
            assert!(!text.contains("hunter2"), "{args:?}: {text}");
        }
        got.out + &got.err
    };
    for by_flag in [true, false] {
        for format in ["text", "json"] {
            let shown = check(&["config", "show", "--output", format], 0, by_flag);
            assert!(shown.contains("host=127.0.0.1 port=1 user=me password=*** dbname=db"), "{shown}");
            check(&["doctor", "--output", format], 1, by_flag);
        }
        check(&["runs", "list"], 2, by_flag);
        check(&["run", "--offline", "say hello"], 2, by_flag);
    }
    let names = std::fs::read_dir(place.path("work"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect::<Vec<_>>();
    assert!(names.is_empty(), "no file of that name is made: {names:?}");
}

#[test]
fn plain_is_a_flag_a_variable_a_key_or_follows_from_the_terminal() {
    let xterm = ("TERM", "xterm");
    check_key("", "", &[xterm], &[], "plain", "off", "default");
    check_key("plain = true", "", &[xterm], &[], "plain", "on", &format!("{USER}:1"));
    check_key("", "", &[xterm, ("ORCH_PLAIN", "1")], &[], "plain", "on", "environment ORCH_PLAIN");
    check_key("plain = false", "", &[("TERM", "dumb")], &[], "plain", "on", "environment TERM");
    check_key("", "", &[xterm], &["--plain"], "plain", "on", "flag --plain");
    let what = format!("{PROJECT}:1: 'plain' cannot be set by a project, which may only narrow");
    check_refused("", "plain = true", &format!("{what}\n  set it in {USER}"));
}

#[test]
fn secrets_are_masked() {
    let place = TestHome::new();
    let user = "[auth]\nbearer = \"tok-1234\"\n[headers]\nx-secret = \"tok-5678\"\n";
    place.write(&place.user_config(), &format!("base_url = \"http://u:tok-9@host/v\"\n{user}"));
    for format in ["text", "json"] {
        let got = place.convoke(&["config", "show", "--output", format]);
        assert_eq!(got.code, 0, "{}", got.err);
        assert!(!got.out.contains("tok-") && got.out.contains("***"), "{}", got.out);
    }
    check_key(
        "",
        "",
        &[("ANTHROPIC_API_KEY", "sk-1")],
        &[],
        "auth.key",
        "***",
        "environment ANTHROPIC_API_KEY",
    );
    check_key(user, "", &[("ANTHROPIC_API_KEY", "sk-1")], &[], "auth.bearer", "null", "default");
}

#[test]
fn two_credentials_of_one_layer_are_refused() {
    let place = TestHome::new();
    let mut command = place.command(&["config", "show"]);
    let got = ran(command.env("ANTHROPIC_API_KEY", "sk-1").env("ANTHROPIC_AUTH_TOKEN", "t"));
    assert_eq!(got.code, 2);
    assert!(got.err.contains("environment ANTHROPIC_API_KEY") && !got.err.contains("sk-1"), "{}", got.err);
}

#[test]
fn an_unknown_key_is_an_error_with_its_line_and_the_nearest_key() {
    let every = "`convoke config show` prints every key";
    let check = |user: &str, line: u32, key: &str, near: &str| {
        check_refused(
            user,
            "",
            &format!("{USER}:{line}: unknown key '{key}'; the nearest key is '{near}'\n  {every}"),
        );
    };
    check("modell = \"x\"", 1, "modell", "model");
    check("\n# a comment\nmax_turn = 3", 3, "max_turn", "max_turns");
    check("[timeouts]\nidel = \"3s\"", 2, "timeouts.idel", "timeouts.idle");
    check("[env]\npas = []", 2, "env.pas", "env.pass");
    check("[models.x]\nwindow = 5\nmax_outputs = 5", 3, "max_outputs", "max_output");
    check("[endpoints.\"http://x\"]\nefort = true", 2, "efort", "effort");
}

#[test]
fn an_unknown_key_in_a_project_is_an_error_too() {
    check_refused(
        "",
        "\nefort = \"low\"",
        &format!(
            "{PROJECT}:2: unknown key 'efort'; the nearest key is 'effort'\n  `convoke config show` prints \
                every key"
        ),
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_with_what_to_write() {
    let check = |user: &str, expected: &str| check_refused(user, "", &format!("{USER}:{expected}"));
    check(
        "max_turns = \"3\"",
        "1: 'max_turns' must be a whole number from 1 to 100000, not a value of type string",
    );
    check("max_turns = 0", "1: 'max_turns' must be a whole number from 1 to 100000, not 0");
    check("model = 3", "1: 'model' must be a text, not 3");
    check(
        "bash_timeout = true",
        "1: 'bash_timeout' must be a span of time such as \"90s\", not a value of type boolean",
    );
    check(
        "bash_timeout = \"soon\"",
        "1: 'bash_timeout': 'soon' is no span of time: write a number and ms, s, m, h or d, such as 90s or \
            5m",
    );
    check("betas = \"a\"", "1: 'betas' must be a list of texts, not a value of type string");
    check("auth = 1", "1: 'auth' must be a table, not 1");
}

#[test]
fn a_file_that_is_no_toml_is_an_error_with_its_line() {
    let place = TestHome::new();
    place.write(&place.user_config(), "model = \"a\"\nmodel = \"b\"\n");
    let got = place.convoke(&["config", "show"]);
    assert_eq!(got.code, 2);
    assert!(place.normal(&got.err).starts_with(&format!("convoke: {USER}:2: ")), "{}", got.err);
}

#[test]
fn a_project_cannot_set_what_decides_where_things_go() {
    let check = |project: &str, line: u32, key: &str| {
        let what = format!("{PROJECT}:{line}: '{key}' cannot be set by a project, which may only narrow");
        check_refused("", project, &format!("{what}\n  set it in {USER}"));
    };
    check("base_url = \"http://evil\"", 1, "base_url");
    check("model = \"x\"\n[auth]\nkey = \"k\"", 2, "auth");
    check("auth.key = \"k\"", 1, "auth");
    check("[headers]\nx = \"y\"", 1, "headers");
    check("proxy = \"http://evil\"", 1, "proxy");
    check("[env]\npass = [\"X\"]", 1, "env");
    check("network_allow = [\"evil\"]", 1, "network_allow");
    check("journal = \"/tmp/j\"", 1, "journal");
    check("[models.x]\nwindow = 5", 1, "models");
    check("[endpoints.\"http://x\"]\neffort = true", 1, "endpoints");
    check("betas = [\"x\"]", 1, "betas");
}

#[test]
fn a_project_may_narrow_what_commands_touch_and_not_widen_it() {
    check_key("", "sandbox = \"read-only\"", &[], &[], "sandbox", "read-only", &format!("{PROJECT}:1"));
    let flag = ["--sandbox", "workspace"];
    check_key("", "sandbox = \"read-only\"", &[], &flag, "sandbox", "workspace", "flag --sandbox");
    check_key("network = true", "network = false", &[], &[], "network", "off", &format!("{PROJECT}:1"));
    check_key("network_allow = [\"a.b\"]", "network = false", &[], &[], "network_allow", "null", "default");
    let wider =
        format!("'sandbox' is workspace, and it is read-only ({USER}:1); a project may only narrow it");
    let advice = "in your own configuration or with a flag";
    let user = "sandbox = \"read-only\"";
    check_refused(user, "sandbox = \"workspace\"", &format!("{PROJECT}:1: {wider}\n  widen it {advice}"));
    let open = "'network' is on, and it is off (default); a project may only switch it off";
    check_refused("", "\nnetwork = true", &format!("{PROJECT}:2: {open}\n  switch it on {advice}"));
}

#[test]
fn off_is_for_the_command_line_alone() {
    let expected =
        "'sandbox': 'off' is a person's choice for one session: say --sandbox off on the command line";
    for text in ["\nsandbox = \"off\"", "\nsandbox = false"] {
        check_refused(text, "", &format!("{USER}:2: {expected}"));
        check_refused("", text, &format!("{PROJECT}:2: {expected}"));
    }
    let place = TestHome::new();
    let got = ran(place.command(&["config", "show"]).env("CONVOKE_SANDBOX", "off"));
    assert_eq!(got.code, 2);
    assert!(got.err.starts_with("convoke: CONVOKE_SANDBOX: 'off' is a person's choice"), "{}", got.err);
    check_key("", "", &[], &["--sandbox", "off"], "sandbox", "off", "flag --sandbox");
}

#[test]
fn what_commands_may_reach_is_set_in_every_layer() {
    let variable = [("CONVOKE_SANDBOX", "read-only")];
    check_key("", "", &variable, &[], "sandbox", "read-only", "environment CONVOKE_SANDBOX");
    let list = "network_allow = [\"crates.io\", \"*.crates.io\"]";
    check_key(list, "", &[], &[], "network_allow", "crates.io, *.crates.io", &format!("{USER}:1"));
    let variable = [("CONVOKE_NETWORK_ALLOW", "a.b, c.d")];
    check_key(list, "", &variable, &[], "network_allow", "a.b, c.d", "environment CONVOKE_NETWORK_ALLOW");
    check_key(list, "", &[("CONVOKE_NETWORK", "off")], &[], "network_allow", "null", "default");
    check_key(list, "", &[], &["--network"], "network", "on", "flag --network");
    let twice = "'network_allow' both say whom commands may talk to\n  keep one: the switch lets them reach \
        every host or none, the list only these hosts";
    check_refused(&format!("network = true\n{list}"), "", &format!("{USER}:1: 'network' and {twice}"));
}

#[test]
fn a_project_may_lower_a_cap_and_not_raise_it() {
    check_key("", "max_turns = 5", &[], &[], "max_turns", "5", &format!("{PROJECT}:1"));
    check_key("", "bash_timeout = \"10s\"", &[], &[], "bash_timeout", "10s", &format!("{PROJECT}:1"));
    check_key("max_turns = 50", "max_turns = 40", &[], &[], "max_turns", "40", &format!("{PROJECT}:1"));
    check_key("", "max_turns = 5", &[], &["--max-turns", "99"], "max_turns", "99", "flag --max-turns");
    let check = |user: &str, project: &str, expected: &str| {
        let advice = "a project may only lower it\n  raise it in your own configuration or with a flag";
        check_refused(user, project, &format!("{PROJECT}:1: {expected}; {advice}"));
    };
    check("", "max_turns = 31", "'max_turns' is 31, which is higher than 30 (default)");
    check(
        "max_turns = 9",
        "max_turns = 10",
        &format!("'max_turns' is 10, which is higher than 9 ({USER}:1)"),
    );
    check("", "bash_timeout = \"2m\"", "'bash_timeout' is 2m, which is higher than 1m (default)");
    check("", "max_attempts = 11", "'max_attempts' is 11, which is higher than 10 (default)");
    check("", "timeouts.total = \"2h\"", "'timeouts.total' is 2h, which is higher than 1h (default)");
}

#[test]
fn a_project_cannot_choose_the_offline_model() {
    let place = TestHome::new();
    place.write(&place.project_config(), "model = \"offline\"");
    let got = place.convoke(&["config", "show", "--trust-project"]);
    let expected = format!(
        "{PROJECT}:1: a project cannot choose the offline model\n  a person chooses it with --offline"
    );
    assert_eq!((got.code, place.normal(&got.err)), (2, format!("convoke: {expected}\n")));
    // Without trust it chooses nothing.
    check_key("", "model = \"offline\"", &[], &[], "model", "claude-opus-4-8", "default");
}

#[test]
fn a_project_file_is_found_up_to_the_git_root_and_not_above() {
    let place = TestHome::new();
    std::fs::create_dir_all(place.path("work/a/b")).unwrap();
    place.write(&place.project_config(), "model = \"m-project\"");
    let model = |dir: &str| {
        let got = place.convoke(&["config", "show", "--output", "json", "--trust-project", "--cwd", dir]);
        let shown: Value = serde_json::from_str(&got.out).unwrap();
        shown["settings"][0]["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(model("a/b"), "claude-opus-4-8", "without a git root only the directory itself counts");
    std::fs::create_dir(place.path("work/.git")).unwrap();
    assert_eq!(model("a/b"), "m-project");
    std::fs::create_dir(place.path("work/a/.git")).unwrap();
    assert_eq!(model("a/b"), "claude-opus-4-8");
}

/// Everything that a project can choose, and one key that narrows.
const CHOOSES: &str = "model = \"claude-theirs\"\neffort = \"low\"\nsystem = \"Obey me.\"\nmax_turns = \
    3\n[worker]\nmodel = \"w\"\n\
                       effort = \"low\"\n";

#[test]
fn what_a_project_chooses_is_ignored_until_somebody_trusts_it_and_shown_so() {
    let keys = [("model", 1), ("effort", 2), ("system", 3), ("worker.model", 6), ("worker.effort", 7)];
    let place = TestHome::new();
    place.write(&place.project_config(), CHOOSES);
    let rows = |args: &[&str]| {
        let got = place.convoke(&[&["config", "show", "--output", "json"], args].concat());
        assert_eq!(got.code, 0, "{}", got.err);
        let shown: Value = serde_json::from_str(&got.out).unwrap();
        move |key: &str| {
            shown["settings"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap().clone()
        }
    };
    let row = rows(&[]);
    for (key, line) in keys {
        assert_ne!(row(key)["origin"], format!("{}:{line}", place.project_config().display()), "{key}");
        let ignored = &row(key)["ignored"];
        let origin = place.normal(ignored["origin"].as_str().unwrap());
        assert_eq!(
            (origin, ignored["why"].as_str()),
            (format!("{PROJECT}:{line}"), Some("project not trusted")),
            "{key}"
        );
    }
    assert_eq!((row("max_turns")["value"].as_str(), &row("max_turns")["ignored"]), (Some("3"), &Value::Null));
    let told = place.convoke(&["config", "show"]);
    let text = place.normal(&told.out);
    assert!(text.contains(&format!("default (ignored: {PROJECT}:3, project not trusted)")), "{text}");
    let warning = "warning: ignored, because ROOT/work is not trusted: model, effort, system, \
        worker.model, worker.effort";
    assert!(
        place.normal(&told.err).contains(warning) && told.err.contains("--trust-project"),
        "{}",
        told.err
    );

    let trusted = format!("trusted = [{:?}]", place.path("work"));
    place.write(
        &place.user_config(),
        &format!(
            "{trusted}\n[models.claude-theirs]\neffort_levels = [\"low\"]\n\
                 [models.w]\neffort_levels = [\"low\"]\n"
        ),
    );
    let row = rows(&[]);
    for (key, line) in keys {
        let origin = place.normal(row(key)["origin"].as_str().unwrap());
        assert_eq!((origin, &row(key)["ignored"]), (format!("{PROJECT}:{line}"), &Value::Null), "{key}");
    }
    // Another project of the same name elsewhere is another one.
    place.write(&place.user_config(), &format!("trusted = [{:?}]", place.path("elsewhere")));
    assert_eq!(rows(&[])("model")["value"], "claude-opus-4-8");
}

#[test]
fn a_secret_is_passed_on_by_its_full_name_alone() {
    let place = TestHome::new();
    place.write(&place.user_config(), "\n[env]\npass = [\"MY_*\"]");
    let got = ran(place.command(&["config", "show"]).env("MY_TOKEN", "t"));
    assert_eq!(got.code, 2);
    let expected = format!(
        "convoke: {USER}:3: env.pass 'MY_*' would show MY_TOKEN to commands, which looks like a secret\n  \
         write the pattern more narrowly, or add 'MY_TOKEN' by its full name\n"
    );
    assert_eq!(place.normal(&got.err), expected);
    place.write(&place.user_config(), "[env]\npass = [\"MY_*\", \"MY_TOKEN\"]");
    assert_eq!(ran(place.command(&["config", "show"]).env("MY_TOKEN", "t")).code, 0);
}

#[test]
fn models_and_endpoints_can_be_stated_by_the_user() {
    let user = "[models.mine]\nwindow = 64000\nmax_output = 4000\neffort_levels = [\"low\"]\nprices = \
        [{input = 1.5, output = 2}]";
    check_key(user, "", &[], &["--model", "mine", "--effort", "low"], "effort", "low", "flag --effort");
    let both = "[models.mine]\nprices = [{above = 5, input = 1, output = 2}]";
    let place = TestHome::new();
    place.write(&place.user_config(), both);
    let got = place.convoke(&["config", "show"]);
    assert_eq!(got.code, 2);
    assert!(
        place.normal(&got.err).contains("config.toml:1: [models.\"mine\"]: prices need a first tier"),
        "{}",
        got.err
    );
    place.write(&place.user_config(), "[models.mine]\nwindow = \"big\"");
    let got = place.convoke(&["config", "show"]);
    assert!(place.normal(&got.err).contains("config.toml:1: [models.\"mine\"]: invalid type"), "{}", got.err);
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let place = TestHome::new();
    let got = place.convoke(&["config", "show", "--cwd", "nowhere"]);
    assert_eq!(got.code, 2);
    assert!(place.normal(&got.err).starts_with("convoke: cannot work in ROOT/work/nowhere: "), "{}", got.err);
}

#[test]
fn without_a_home_the_error_says_what_to_set() {
    let place = TestHome::new();
    let got = ran(place.command(&["config", "show"]).env_remove("HOME"));
    assert_eq!(got.code, 2);
    let expected = "convoke: neither XDG_CONFIG_HOME nor HOME names a directory\n  set HOME, or \
        XDG_CONFIG_HOME to an absolute path\n";
    assert_eq!(got.err, expected);
}
