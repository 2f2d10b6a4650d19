//! From layers to [`Settings`]: what the values mean together. The only function that reads files is called
//! here.

use std::path::{Path, PathBuf};

use convoke_claude::{
    DEFAULT_BASE_URL, Endpoint, EndpointPatch, Endpoints, Model, ModelPatch, Models, OFFLINE_MODEL, Proxy,
    Secret, Server, TableError, Timeouts,
};
use convoke_journal::Location;
use serde::Deserialize;

use super::confine;
use super::endpoint;
use super::fan_out;
use super::file::{self, Owner};
use super::keys::{self, KEYS, Kind};
use super::layers::Layers;
use super::origin::{ConfigFile, Origin, Row};
use super::value::{self, Value};
use super::{
    DOC_TEST_MODE, Editor, Environment, ModelSource, ProjectKeys, Saved, Settings, paths, plain, rules,
    saved, stated, stated::Stated, team,
};
use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::open::DRAIN;
use crate::render::TerminalLock;

/// The effort that is asked for unless a layer says otherwise, from models that have it.
pub(super) const EFFORT: &str = "xhigh";

/// The word that leaves the effort to the model.
pub(super) const MODELS_OWN_EFFORT: &str = "default";

impl Settings {
    /// Settles every value from the flags, the environment and the configuration files. `here` is the
    /// directory in which the process was started.
    pub(crate) fn resolve(args: &GlobalArgs, env: &Environment, here: &Path) -> Result<Settings, Failure> {
        let dir = directory(args, here)?;
        let (mut layers, files, saved, mut project) = read_files(args, env, &dir)?;
        put_environment(&mut layers, env)?;
        put_flags(&mut layers, args);
        fan_out::put_flags(&mut layers, &args.settings.budget, &args.settings.fan_out_args);
        team::put_flags(&mut layers, &args.settings.team);
        rules::put_flags(&mut layers, &args.settings.approval);
        confine::put_flags(&mut layers, &args.settings.confine);
        plain::put_flag(&mut layers, args.place.plain);
        stated::put_flag(&mut layers, args.settings.agent.lean);
        if let Some(when) = args.place.ci_safe {
            layers.put("ci_safe", Value::Text(when.word().to_owned()), Origin::Flag("--ci-safe"));
        }

        // What a variable or a flag says instead is not the project's any more.
        project.keys.retain(|(name, origin)| !project.trusted || layers.origin(name) == *origin);

        let mut models = models(&layers)?;
        let endpoints = endpoints(&layers)?;
        let offline = args.settings.agent.offline || layers.text("model") == Some(OFFLINE_MODEL);
        if args.settings.agent.offline {
            layers.put("model", Value::Text(OFFLINE_MODEL.to_owned()), Origin::Flag("--offline"));
        }
        let source = source(&layers, offline)?;
        let server = match &source {
            ModelSource::Offline => Server::anthropic(),
            ModelSource::Api { base_url, .. } => Server::new(base_url, endpoints),
            ModelSource::Nothing => Server::new(DEFAULT_BASE_URL, endpoints),
        };
        let stated = Stated::of(&args.settings.agent);
        stated.put(&mut models, layers.text("model").unwrap_or_default())?;
        let row = models.get(layers.text("model").unwrap_or_default());
        put_first_deadline(&mut layers, &source);
        let mut warnings: Vec<String> = project.warning().into_iter().collect();
        warnings.extend(endpoint::remarks(&row));
        endpoint::put_version(&mut layers, &server.row(&row.id));
        let effort = effort(&mut layers, &row, &server, &mut warnings)?;
        let lead = (&row, effort.as_deref());
        let fan_out =
            fan_out::fan_out(&layers, &args.settings.fan_out_args, lead, &models, &server, &mut warnings)?;
        let command_env = env.for_commands(&layers.list("env.pass")).map_err(|failure| {
            match layers.origin("env.pass") {
                Origin::Default => failure,
                origin => Failure { message: format!("{origin}: {}", failure.message), ..failure },
            }
        })?;
        let state_dir = paths::state_dir(env)?;
        let journal = journal(&layers, env, here, &state_dir)?;
        layers.put("journal", Value::Text(journal.to_string()), layers.origin("journal"));
        let mut settings = Settings {
            dir,
            model: row.id.clone(),
            effort,
            system: layers.text("system").map(str::to_owned),
            lean: None,
            stated,
            journal,
            postgres: (layers.count("postgres.connections"), layers.time("postgres.outage")),
            state_dir,
            source,
            max_turns: layers.count("max_turns"),
            bash_timeout: layers.time("bash_timeout"),
            max_attempts: layers.count("max_attempts"),
            caps: layers.caps(),
            fan_out,
            drain: DRAIN,
            team: team::team(&layers),
            asking: rules::asking(&layers, &args.settings.approval)?,
            confine: confine::wanted(&layers, &args.settings.confine)?,
            saved,
            surroundings: env.only(convoke_runtime::SURROUNDING_VARIABLES),
            doc_test: env.get(DOC_TEST_MODE).is_some(),
            throwaway: Vec::new(),
            command_env,
            headers: layers.headers(),
            betas: layers.list("betas"),
            version: layers.text("version").unwrap_or_default().to_owned(),
            proxy: proxy(&layers),
            timeouts: Timeouts {
                connect: layers.time("timeouts.connect"),
                first: layers.time("timeouts.first"),
                idle: layers.time("timeouts.idle"),
                total: layers.time("timeouts.total"),
            },
            insecure_http: layers.is_on("insecure_http"),
            models,
            output: args.place.output.unwrap_or_default(),
            quiet: args.place.quiet,
            verbose: args.place.verbose,
            plain: plain::is_plain(&layers, env),
            ci_safe: match layers.text("ci_safe") {
                Some("on") => Some(true),
                Some("off") => Some(false),
                _ => None,
            },
            editor: Editor::named(env.editor()),
            terminal: TerminalLock::default(),
            warnings,
            rows: rows(&layers, &project, &server.row(&row.id), &server),
            server,
            project,
            files,
        };
        settings.settle_lean();
        Ok(settings)
    }
}

/// A server next to us may take its time to read a prompt. Where the person said how long a silence may be,
/// that holds for the first one too.
fn put_first_deadline(layers: &mut Layers, source: &ModelSource) {
    if layers.origin("timeouts.first") != Origin::Default {
        return;
    }
    let first = match source {
        _ if layers.origin("timeouts.idle") != Origin::Default => layers.time("timeouts.idle"),
        ModelSource::Api { base_url, .. } => Timeouts::usual_first(base_url),
        ModelSource::Offline | ModelSource::Nothing => return,
    };
    layers.put("timeouts.first", Value::Time(first), Origin::Default);
}

fn directory(args: &GlobalArgs, here: &Path) -> Result<PathBuf, Failure> {
    let dir = args.place.cwd.as_ref().map_or_else(|| here.to_owned(), |dir| here.join(dir));
    let cannot = |why: String| Failure::usage(format!("cannot work in {}: {why}", dir.display()));
    let canonical = dir.canonicalize().map_err(|error| cannot(error.to_string()))?;
    if canonical.is_dir() { Ok(canonical) } else { Err(cannot("it is not a directory".to_owned())) }
}

fn read_files(
    args: &GlobalArgs,
    env: &Environment,
    dir: &Path,
) -> Result<(Layers, Vec<ConfigFile>, Saved, ProjectKeys), Failure> {
    let mut layers = Layers::builtin();
    let user_file = paths::user_config(env)?;
    let user = file::read(&user_file, &Owner::User)?;
    let project_file = paths::project_config(dir);
    let project = file::read(&project_file, &Owner::Project { user_file: user_file.clone() })?;
    let files = vec![
        ConfigFile { layer: "user", path: user_file.clone(), found: user.is_some() },
        ConfigFile { layer: "project", path: project_file, found: project.is_some() },
    ];
    layers.put_user(user.unwrap_or_default())?;
    // Which projects the person trusts is settled before the project says anything.
    let saved = saved::saved(&layers, &args.settings.trust, env)?;
    let trusted = saved.trusts(dir);
    let keys = layers.put_project(project.unwrap_or_default(), trusted)?;
    let root = paths::project_root(dir).to_owned();
    Ok((layers, files, saved, ProjectKeys { keys, trusted, root, user_file }))
}

/// What `DOC_TEST_MODE` makes small.
const DOC_TEST: &[(&str, u32)] = &[("max_subtasks", 2), ("worker.turns", 1), ("max_turns", 1)];

/// Settings that a caller such as CI states by variable.
const VARIABLES: &[(&str, &str)] = &[
    ("CONVOKE_BUDGET_AGENTS", "budget.agents"),
    ("CONVOKE_BUDGET_TOKENS", "budget.tokens"),
    ("CONVOKE_BUDGET_USD", "budget.usd"),
    ("CONVOKE_BUDGET_MINUTES", "budget.minutes"),
    ("CONVOKE_MODE", "mode"),
    ("CONVOKE_VERIFY", "verify"),
    ("CONVOKE_MAX_CONCURRENT", "max_concurrent"),
    ("CONVOKE_SANDBOX", "sandbox"),
    ("CONVOKE_NETWORK", "network"),
    ("CONVOKE_NETWORK_ALLOW", "network_allow"),
    ("CONVOKE_ASK", "ask"),
    ("CONVOKE_INSECURE_HTTP", "insecure_http"),
    ("CONVOKE_CI_SAFE", "ci_safe"),
];

fn put_environment(layers: &mut Layers, env: &Environment) -> Result<(), Failure> {
    if env.get(DOC_TEST_MODE).is_some() {
        for (key, count) in DOC_TEST {
            layers.put(key, Value::Count(*count), Origin::Variable(DOC_TEST_MODE));
        }
    }
    confine::check_environment(env)?;
    plain::put_environment(layers, env)?;
    for (variable, name) in VARIABLES {
        if let (Some(text), Some(key)) = (env.get(variable), keys::find(name)) {
            let read = value::read(key.kind, text)
                .map_err(|problem| Failure::usage(format!("{variable}: {problem}")));
            layers.put(name, read?, Origin::Variable(variable));
        }
    }
    let variables: [(&'static str, &'static str); 5] = [
        ("ANTHROPIC_API_KEY", "auth.key"),
        ("ANTHROPIC_AUTH_TOKEN", "auth.bearer"),
        ("ANTHROPIC_BASE_URL", "base_url"),
        ("ANTHROPIC_MODEL", "model"),
        ("ORCH_JOURNAL", "journal"),
    ];
    if env.get("ANTHROPIC_API_KEY").is_some() || env.get("ANTHROPIC_AUTH_TOKEN").is_some() {
        layers.forget_credentials();
    }
    for (variable, key) in variables {
        if let Some(value) = env.get(variable) {
            layers.put(key, Value::Text(value.to_owned()), Origin::Variable(variable));
        }
    }
    Ok(())
}

fn put_flags(layers: &mut Layers, args: &GlobalArgs) {
    let texts = [
        ("model", "--model", &args.settings.agent.model),
        ("effort", "--effort", &args.settings.agent.effort),
        ("system", "--system", &args.settings.agent.system),
        ("journal", "--journal", &args.place.journal),
    ];
    for (key, flag, value) in texts {
        if let Some(value) = value {
            layers.put(key, Value::Text(value.clone()), Origin::Flag(flag));
        }
    }
    if let Some(turns) = args.settings.agent.max_turns {
        layers.put("max_turns", Value::Count(turns), Origin::Flag("--max-turns"));
    }
    if let Some(time) = args.settings.agent.bash_timeout {
        layers.put("bash_timeout", Value::Time(time), Origin::Flag("--bash-timeout"));
    }
}

fn source(layers: &Layers, offline: bool) -> Result<ModelSource, Failure> {
    if offline {
        return Ok(ModelSource::Offline);
    }
    let secret = |name| layers.text(name).map(Secret::new);
    let key = secret("auth.key");
    let bearer = secret("auth.bearer");
    if key.is_some() && bearer.is_some() {
        let one = layers.origin("auth.key");
        let other = layers.origin("auth.bearer");
        let message = format!(
            "both an API key ({one}) and a bearer token ({other}) are set; the API refuses both at once"
        );
        return Err(Failure::usage(message).hint("unset one of the two"));
    }
    match layers.text("base_url") {
        Some(base_url) => Ok(ModelSource::Api { base_url: base_url.to_owned(), key, bearer }),
        None if key.is_some() || bearer.is_some() => {
            Ok(ModelSource::Api { base_url: DEFAULT_BASE_URL.to_owned(), key, bearer })
        }
        None => Ok(ModelSource::Nothing),
    }
}

/// The effort to ask for. A wish the model cannot fulfil is an error; one that only the server does not
/// understand is left out, with a warning if it was a person's wish.
fn effort(
    layers: &mut Layers,
    model: &Model,
    server: &Server,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let endpoint = server.row(&model.id);
    let wish = match layers.text("effort") {
        Some(MODELS_OWN_EFFORT) => None,
        Some(wish) => Some(wish.to_owned()),
        None => {
            let has_it = model.id != OFFLINE_MODEL && model.effort_levels.iter().any(|level| level == EFFORT);
            let wish = (has_it && endpoint.effort).then(|| EFFORT.to_owned());
            if let Some(wish) = &wish {
                layers.put("effort", Value::Text(wish.clone()), Origin::Default);
            }
            return Ok(wish);
        }
    };
    let capabilities = convoke_claude::capabilities(model, &endpoint, wish.as_deref()).map_err(|error| {
        let failure = Failure::usage(format!("effort ({}): {error}", layers.origin("effort")));
        failure.hint("`--effort default` leaves it to the model")
    })?;
    if let (Some(wish), None) = (&wish, &capabilities.effort) {
        warnings.push(format!(
            "effort '{wish}' is left out: {} is not known to understand it; if it does: {} effort = true",
            hide_user(server.base_url()),
            endpoint::table(server)
        ));
    }
    Ok(capabilities.effort)
}

/// A relative path means: from the directory of the file that says so, else from where the process was
/// started.
fn journal(layers: &Layers, env: &Environment, here: &Path, state_dir: &Path) -> Result<Location, Failure> {
    let Some(text) = layers.text("journal") else {
        return Ok(Location::Sqlite(state_dir.join("journal.db")));
    };
    let origin = layers.origin("journal");
    let location: Location = text.parse().map_err(|error: convoke_journal::Error| {
        let failure = Failure::from(error);
        Failure { message: format!("journal ({origin}): {}", failure.message), ..failure }
    })?;
    let base = match &origin {
        Origin::File { path, .. } => path.parent().unwrap_or(here),
        _ => here,
    };
    Ok(location.with_file(|path| match (path.strip_prefix("~"), paths::home(env)) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => base.join(path),
    }))
}

fn proxy(layers: &Layers) -> Proxy {
    match layers.text("proxy") {
        None | Some("environment") => Proxy::Environment,
        Some("off") => Proxy::Off,
        Some(url) => Proxy::Url(url.to_owned()),
    }
}

fn models(layers: &Layers) -> Result<Models, Failure> {
    let mut models = Models::builtin();
    let patches = patches::<ModelPatch>(layers, "models")?;
    models.extend(patches).map_err(|error| at(layers, "models", &error))?;
    Ok(models)
}

fn endpoints(layers: &Layers) -> Result<Endpoints, Failure> {
    let mut endpoints = Endpoints::builtin();
    let patches = patches::<EndpointPatch>(layers, "endpoints")?;
    endpoints.extend(patches).map_err(|error| at(layers, "endpoints", &error))?;
    Ok(endpoints)
}

fn patches<T: for<'de> Deserialize<'de>>(layers: &Layers, table: &str) -> Result<Vec<(String, T)>, Failure> {
    let read = |(name, row): (String, toml::Value)| match T::deserialize(row) {
        Ok(patch) => Ok((name, patch)),
        Err(error) => {
            let problem = error.message().trim();
            Err(Failure::usage(format!("{}: [{table}.{name:?}]: {problem}", layers.origin(table))))
        }
    };
    layers.rows(table).into_iter().map(read).collect()
}

fn at(layers: &Layers, table: &str, error: &TableError) -> Failure {
    Failure::usage(format!("{}: {error}", layers.origin(table)))
}

fn rows(layers: &Layers, project: &ProjectKeys, endpoint: &Endpoint, server: &Server) -> Vec<Row> {
    let mut rows = Vec::new();
    for key in KEYS {
        let origin = layers.origin(key.name);
        let ignored = project.ignored_at(key.name).cloned();
        let row = |name: String, value: Option<String>| Row {
            key: name,
            value,
            origin: origin.clone(),
            ignored: ignored.clone(),
        };
        let texts = |items: Vec<String>| (!items.is_empty()).then(|| items.join(", "));
        match key.kind {
            Kind::Choice(_) if key.name == "ask" && layers.text(key.name).is_none() => {
                rows.push(row(
                    key.name.to_owned(),
                    Some("when-needed in a terminal, never elsewhere".to_owned()),
                ));
            }
            Kind::Text | Kind::Choice(_) => {
                rows.push(row(key.name.to_owned(), layers.text(key.name).map(hide_user)))
            }
            Kind::Secret => {
                rows.push(row(key.name.to_owned(), layers.text(key.name).map(|_| "***".to_owned())))
            }
            Kind::Count(_) | Kind::Cap(_) | Kind::Switch | Kind::Sandbox | Kind::Voters | Kind::Time => {
                rows.push(row(key.name.to_owned(), layers.value(key.name).and_then(Value::show)));
            }
            Kind::List | Kind::Hosts => rows.push(row(key.name.to_owned(), texts(layers.list(key.name)))),
            Kind::Headers => {
                let headers = layers.headers();
                if headers.is_empty() {
                    rows.push(row(key.name.to_owned(), None));
                }
                // A header of the user's own may carry a token.
                rows.extend(
                    headers
                        .into_iter()
                        .map(|(name, _)| row(format!("headers.{name}"), Some("***".to_owned()))),
                );
            }
            Kind::Rules => {
                if layers.rules().is_empty() {
                    rows.push(row(key.name.to_owned(), None));
                }
                rows.extend(layers.rules().iter().enumerate().map(|(number, (rule, origin))| Row {
                    key: format!("{}.{}", key.name, number + 1),
                    value: Some(rules::show(rule)),
                    origin: origin.clone(),
                    ignored: None,
                }));
            }
            Kind::Rows(_) => {
                let stated = layers.rows(key.name);
                if stated.is_empty() {
                    rows.push(row(key.name.to_owned(), None));
                }
                rows.extend(stated.into_iter().map(|(name, value)| {
                    let line = value.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                    row(format!("{}.{name:?}", key.name), Some(line))
                }));
                if key.name == "endpoints" {
                    rows.extend(endpoint::members(server, endpoint, &origin));
                }
            }
        }
    }
    rows
}

/// A URL without its user and password.
pub(super) fn hide_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => text.to_owned(),
    }
}
