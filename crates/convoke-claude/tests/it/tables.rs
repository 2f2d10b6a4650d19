//! The tables of models and endpoints, and what follows from them.

use std::collections::BTreeMap;

use convoke_claude::{
    Endpoint, EndpointPatch, Endpoints, Model, ModelPatch, Models, Server, TableError, ThinkingDefault,
    ThinkingType, capabilities, cost, read_listing,
};
use convoke_kernel::{Thinking, Usage};

const DOLLAR: u64 = 1_000_000_000;

fn model(id: &str) -> Model {
    Models::builtin().get(id)
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

#[test]
fn a_cost_is_counted_in_nano_dollars_at_the_rate_of_the_whole_prompt() {
    let check =
        |id: &str, usage: Usage, expected: u64| assert_eq!(cost(&model(id), &usage), Some(expected), "{id}");
    check("claude-opus-4-8", tokens(1_000_000, 1_000_000), 30 * DOLLAR);
    check("claude-fable-5-1", tokens(1_000_000, 1_000_000), 60 * DOLLAR);
    check("claude-fable-5-2", tokens(1_000_000, 1_000_000), 48 * DOLLAR);
    check("claude-haiku-5-5", tokens(100_000, 1_000), 10_500_000);
    check("claude-haiku-5-5", tokens(100_001, 1_000), 100_001 * 500 + 1_000 * 2_500);
    let read = Usage { cache_read_tokens: 100_000, ..tokens(1, 0) };
    check("claude-haiku-5-5", read, 100_000 * 50 + 500);
    let every = Usage {
        input_tokens: 1,
        cache_read_tokens: 10,
        cache_write_5m_tokens: 100,
        cache_write_1h_tokens: 1_000,
        output_tokens: 10_000,
        thinking_tokens: 5_000,
    };
    check("claude-opus-5-5", every, 4_000 + 10 * 200 + 100 * 5_000 + 1_000 * 8_000 + 10_000 * 20_000);
    check("offline", tokens(1_000_000, 1_000_000), 0);
    assert_eq!(cost(&model("somebody-elses"), &tokens(1, 1)), None);
}

#[test]
fn the_table_says_who_takes_system_messages() {
    let check = |expected: bool, ids: &[&str]| {
        for id in ids {
            assert_eq!(model(id).system_role, expected, "{id}");
            assert!(!model(id).assumed, "{id}");
        }
    };
    check(
        true,
        &[
            "claude-fable-5-2",
            "claude-fable-5-1",
            "claude-mythos-5-1",
            "claude-fable-5",
            "claude-mythos-5",
            "claude-opus-5-5",
            "claude-opus-5",
            "claude-opus-4-8",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "offline",
        ],
    );
    check(
        false,
        &[
            "claude-sonnet-5",
            "claude-opus-4-7",
            "claude-opus-4-6",
            "claude-opus-4-5",
            "claude-sonnet-4-6",
            "claude-sonnet-4-5",
            "claude-haiku-4-5",
        ],
    );
}

#[test]
fn the_table_says_how_each_model_thinks() {
    use ThinkingType::{Adaptive, BetweenTools, Disabled, Enabled};
    let check = |id: &str, kind: ThinkingType, effort: Option<&str>, expected: bool| {
        assert_eq!(model(id).thinking.allows(kind, effort), expected, "{id} {kind} {effort:?}");
    };
    check("claude-opus-5-5", Adaptive, Some("max"), true);
    check("claude-opus-5-5", Disabled, None, false);
    check("claude-opus-5", Disabled, Some("high"), true);
    check("claude-opus-5", Disabled, Some("xhigh"), false);
    check("claude-haiku-5-5", Disabled, Some("max"), false);
    check("claude-sonnet-5-5", BetweenTools, Some("high"), true);
    check("claude-sonnet-5-5", BetweenTools, Some("max"), false);
    check("claude-sonnet-5", Disabled, Some("max"), true);
    check("claude-opus-4-8", Enabled, None, false);
    check("claude-opus-4-6", Enabled, None, true);
    check("claude-haiku-4-5", Adaptive, None, false);
    check("offline", BetweenTools, Some("max"), true);
    assert_eq!(model("claude-opus-4-8").thinking.default, ThinkingDefault::Off);
    assert_eq!(model("claude-fable-5").thinking.default, ThinkingDefault::Always);
}

#[test]
fn a_model_is_found_by_its_name_its_alias_and_its_dated_name() {
    let check = |asked: &str, id: &str, window: u64| {
        let found = model(asked);
        assert_eq!((found.id.as_str(), found.window, found.assumed), (id, window, false));
    };
    check("claude-opus-4-8", "claude-opus-4-8", 1_000_000);
    check("claude-opus-4-5", "claude-opus-4-5-20251101", 200_000);
    check("opus", "claude-opus-5-5", 1_000_000);
    check("claude-opus-4-8-20260528", "claude-opus-4-8-20260528", 1_000_000);
}

#[test]
fn an_unknown_model_works_with_stated_assumptions() {
    for id in ["qwen3-coder"] {
        let found = model(id);
        assert!(
            found.assumed && found.prices.is_none() && !found.system_role && found.effort_levels.is_empty()
        );
        let said = found.assumptions().join(" ");
        for part in [id, "window", "price", "effort", "system messages", "[models."] {
            assert!(said.contains(part), "{part} is missing in: {said}");
        }
    }
    let line = model("qwen3-coder").assumed_line().unwrap();
    assert_eq!(
        line,
        "assumed of `qwen3-coder`: window 32768, replies 8192, no price (--window, --reply and --price state \
            them; `convoke doctor` says more)"
    );
    assert_eq!(model("claude-opus-4-8").assumed_line(), None);
    assert!(model("claude-next-9").window > model("qwen3-coder").window);
    assert!(model("claude-opus-4-8").assumptions().is_empty());
}

#[test]
fn every_row_is_consistent() {
    for row in Models::builtin().iter() {
        let default_is_a_level =
            row.default_effort.as_ref().is_none_or(|level| row.effort_levels.contains(level));
        assert!(
            default_is_a_level && row.effort_levels.is_empty() == row.default_effort.is_none(),
            "{}",
            row.id
        );
        assert!(u64::from(row.max_output) < row.window, "{}", row.id);
        for alias in &row.aliases {
            assert_eq!(model(alias).id, row.id);
        }
        let Some(prices) = &row.prices else { continue };
        for tier in &prices.tiers {
            let rates = tier.rates;
            assert!(rates.cache_read <= rates.input && rates.input <= rates.cache_write_5m, "{}", row.id);
            assert!(
                rates.cache_write_5m <= rates.cache_write_1h && rates.input <= rates.output,
                "{}",
                row.id
            );
        }
    }
}

#[test]
fn capabilities_are_the_meeting_of_model_and_endpoint() {
    let anthropic = Endpoint::anthropic();
    let all = capabilities(&model("claude-opus-4-8"), &anthropic, Some("xhigh")).unwrap();
    assert!(all.system_role && all.anthropic_tools && all.cache_marks);
    assert_eq!((all.thinking, all.effort.as_deref()), (Thinking::Adaptive, Some("xhigh")));
    assert_eq!((all.max_output, all.window), (128_000, 1_000_000));
    let sonnet = capabilities(&model("claude-sonnet-5"), &anthropic, None).unwrap();
    assert_eq!((sonnet.system_role, sonnet.thinking, sonnet.effort), (false, Thinking::Adaptive, None));
    let old = capabilities(&model("claude-haiku-4-5"), &anthropic, None).unwrap();
    assert_eq!(old.thinking, Thinking::Omit);
    let bare = capabilities(&model("claude-opus-4-8"), &Endpoint::generic(), Some("low")).unwrap();
    assert!(!bare.system_role && !bare.anthropic_tools && !bare.cache_marks);
    assert_eq!((bare.thinking, bare.effort), (Thinking::Omit, None));
}

#[test]
fn an_effort_the_model_does_not_have_is_refused_with_the_ones_it_has() {
    let check = |id: &str, effort: &str, said: &str| {
        let error = capabilities(&model(id), &Endpoint::anthropic(), Some(effort)).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    };
    check("claude-opus-4-6", "xhigh", "choose one of: low, medium, high, max");
    check("claude-opus-4-5", "max", "choose one of: low, medium, high");
    check("claude-opus-4-8", "extreme", "low, medium, high, xhigh, max");
    check("claude-haiku-4-5", "low", "does not take the effort parameter");
}

#[test]
fn an_endpoint_is_chosen_by_its_base_url_and_the_model_behind_it() {
    let check = |url: &str, model: &str, name: &str| {
        assert_eq!(Server::new(url, Endpoints::builtin()).row(model).name, name, "{url} {model}");
    };
    for model in ["claude-opus-4-8", "qwen3"] {
        check("https://api.anthropic.com", model, "anthropic");
        check("https://API.anthropic.com/", model, "anthropic");
        check("nonsense", model, "generic");
    }
    for url in ["https://api.anthropic.com.evil.example", "http://127.0.0.1:8080"] {
        check(url, "claude-opus-4-8", "gateway");
        check(url, "us.anthropic.claude-opus-4-8-v1:0", "gateway");
        check(url, "anthropic/Claude-Next", "gateway");
        check(url, "qwen3", "generic");
    }
}

#[test]
fn a_claude_model_behind_any_server_starts_with_everything_but_tools_without_a_schema() {
    let server = Server::new("https://gate.example/llm", Endpoints::builtin());
    for id in ["claude-opus-4-8", "claude-next-9"] {
        let all = capabilities(&model(id), &server.row(id), Some("xhigh")).unwrap();
        assert!(all.system_role && all.cache_marks && !all.anthropic_tools, "{id}");
        assert_eq!((all.thinking, all.effort.as_deref()), (Thinking::Adaptive, Some("xhigh")), "{id}");
    }
    let plain = capabilities(&model("qwen3"), &server.row("qwen3"), None).unwrap();
    assert!(!plain.system_role && !plain.cache_marks && plain.thinking == Thinking::Omit);
}

fn endpoints(toml: &str) -> Result<Endpoints, TableError> {
    let patches: BTreeMap<String, EndpointPatch> = toml::from_str(toml).unwrap();
    let mut endpoints = Endpoints::builtin();
    endpoints.extend(patches).map(|()| endpoints)
}

#[test]
fn a_configuration_can_describe_an_endpoint() {
    let toml = "[\"http://127.0.0.1:8080/\"]\nprofile = \"anthropic\"\nthinking = \
        false\n[\"http://gate\"]\ncache_marks = true";
    let stated = endpoints(toml).unwrap();
    let row_of = |url: &str| Server::new(url, stated.clone()).row("qwen3");
    let row = row_of("http://127.0.0.1:8080");
    assert!(row.system_role && !row.thinking && row.name == "anthropic");
    let row = row_of("http://gate/");
    assert!(row.cache_marks && !row.system_role && row.name == "generic");
    let claude = Server::new("http://gate", stated.clone()).row("claude-opus-4-8");
    assert!(claude.cache_marks && claude.system_role && claude.name == "gateway");
    assert!(
        endpoints("[\"http://x\"]\nprofile = \"odd\"")
            .unwrap_err()
            .to_string()
            .contains("gateway or generic")
    );
    let version = endpoints("[\"http://x\"]\nversion = \"2023-06-01\"").unwrap();
    assert_eq!(
        Server::new("http://x", version).row("claude-opus-4-8").version.as_deref(),
        Some("2023-06-01")
    );
    assert!(endpoints("[\"x\"]\neffort = true").unwrap_err().to_string().contains("not a URL"));
    assert!(toml::from_str::<BTreeMap<String, EndpointPatch>>("[x]\nsistem_role = true").is_err());
}

fn models(toml: &str) -> Result<Models, TableError> {
    let patches: BTreeMap<String, ModelPatch> = toml::from_str(toml).unwrap();
    let mut models = Models::builtin();
    models.extend(patches).map(|()| models)
}

#[test]
fn a_configuration_can_add_a_model_and_change_one() {
    let toml = r#"
        [qwen3]
        window = 131072
        max_output = 16384
        effort_levels = ["low", "high"]
        default_effort = "low"
        thinking = ["adaptive", "disabled"]
        aliases = ["local"]
        prices = [{ input = 0.1, output = 1 }, { above = 1000, input = 0.2, output = 2, cache_read = 0.025 }]
        [claude-opus-4-8]
        max_output = 32000
    "#;
    let stated = models(toml).unwrap();
    let local = stated.get("local");
    assert_eq!((local.id.as_str(), local.window, local.assumed), ("qwen3", 131_072, false));
    assert_eq!(cost(&local, &tokens(1_000, 1)), Some(1_000 * 100 + 1_000));
    let read = Usage { cache_read_tokens: 2_000, ..tokens(0, 1) };
    assert_eq!(cost(&local, &read), Some(2_000 * 25 + 2_000));
    let opus = stated.get("claude-opus-4-8");
    assert_eq!((opus.max_output, opus.window), (32_000, 1_000_000));
    assert_eq!(cost(&opus, &tokens(1, 0)), Some(5_000));
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let check = |toml: &str, said: &str| {
        let error = models(toml).unwrap_err().to_string();
        assert!(error.contains("[models.\"x\"]") && error.contains(said), "{error}");
    };
    check("[x]\nwindow = 0", "at least 1 token");
    check("[x]\neffort_levels = [\"low\"]\ndefault_effort = \"high\"", "not among effort_levels");
    check("[x]\nprices = []", "first tier");
    check("[x]\nprices = [{ above = 5, input = 1, output = 1 }]", "first tier");
    check("[x]\nprices = [{ input = 1, output = 1 }, { input = 1, output = 1 }]", "larger `above`");
    check("[x]\nprices = [{ input = -1, output = 1 }]", "not negative");
    check("[x]\nprices = [{ input = 0.00001, output = 1 }]", "steps of 0.001");
    assert!(toml::from_str::<BTreeMap<String, ModelPatch>>("[x]\nwindwo = 5").is_err());
    let mut table = Models::builtin();
    let half = [
        ("claude-opus-5".to_owned(), ModelPatch { window: Some(1), ..ModelPatch::default() }),
        ("x".to_owned(), ModelPatch { window: Some(0), ..ModelPatch::default() }),
    ];
    assert!(table.extend(half).is_err());
    assert_eq!(table, Models::builtin());
}

#[test]
fn what_a_server_says_about_its_models_goes_over_the_table() {
    let body = r#"{"data": [
        {"id": "claude-next-9", "type": "model", "max_input_tokens": 2000000, "max_tokens": 256000, "retires_at": "2028-01-02T00:00:00Z",
         "capabilities": {"effort": {"supported": true, "low": {"supported": true}, "high": {"supported": true}, "max": {"supported": false}},
                          "thinking": {"supported": true, "types": {"adaptive": {"supported": true}, "disabled": {"supported": false}}}}},
        {"id": "qwen3", "max_model_len": 40960}, {"id": "llama", "meta": {"n_ctx": 16384}}, {"no": "id"}, {"id": "silent"}
    ]}"#;
    let listing = read_listing(body);
    let mut models = Models::builtin();
    assert_eq!(listing.len(), 4);
    assert!(models.take_listed("claude-next-9", &listing) && models.take_listed("llama", &listing));
    assert!(models.take_listed("silent", &listing) && !models.take_listed("absent", &listing));
    let next = models.get("claude-next-9");
    assert_eq!((next.window, next.max_output, next.listed), (2_000_000, 256_000, true));
    assert_eq!(
        (next.effort_levels.as_slice(), next.retires.as_deref()),
        (&["low".to_owned(), "high".to_owned()][..], Some("2028-01-02"))
    );
    assert_eq!(next.thinking.accepts, [ThinkingType::Adaptive]);
    assert!(next.assumptions()[0].ends_with("are what its server says."), "{:?}", next.assumptions());
    assert_eq!((models.get("llama").window, models.get("llama").max_output), (16_384, 8_192));
    assert_eq!(models.get("silent"), Models::builtin().get("silent"));
    assert_eq!(read_listing("<html>"), []);
}

#[test]
fn a_model_whose_end_is_published_says_when() {
    assert_eq!(model("claude-sonnet-4-5").retires.as_deref(), Some("2026-11-30"));
    assert_eq!(model("claude-opus-4-8").retires, None);
    assert_eq!(model("fable").id, "claude-fable-5-2");
}
