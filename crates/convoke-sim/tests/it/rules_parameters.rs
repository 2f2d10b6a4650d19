//! Cases about tools, thinking, effort, sampling and sizes.

use convoke_sim::Rule;
use serde_json::{Value, json};

use crate::client::RawRequest;
use crate::rules::{Case, case, member};

pub(crate) fn cases() -> Vec<Case> {
    [tools(), choice(), effort(), thinking(), sampling(), limits()].into_iter().flatten().collect()
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object"}})
}

fn bash() -> Value {
    json!({"type": "bash_20250124", "name": "bash"})
}

fn tools() -> Vec<Case> {
    let with = |mut tool: Value, name: &str, value: Value| {
        tool[name] = value;
        json!([tool])
    };
    let schema = |schema: Value| with(tool("look"), "input_schema", schema);
    let strict = |more: Value| json!({"name": "look", "strict": true, "input_schema": more});
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let open =
        json!({"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": false});
    let many = |count: usize| {
        let one = |number| json!({"name": format!("t{number}"), "strict": true, "input_schema": closed});
        json!((0..count).map(one).collect::<Vec<Value>>())
    };
    let deferred = |mark: Value| json!([{"name": "look", "defer_loading": true, "cache_control": mark, "input_schema": {"type": "object"}}]);
    let tools = |rule, text: &str, refused, passes| member(rule, text, "tools", refused, passes);
    vec![
        tools(
            Rule::ToolType,
            "tools.0: Input tag 'bash_20240101' found using 'type' does not match any of the expected tags",
            json!([{"type": "bash_20240101", "name": "bash"}]),
            json!([bash()]),
        ),
        tools(
            Rule::ToolName,
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            json!([tool(&"x".repeat(129))]),
            json!([tool(&"x".repeat(128))]),
        ),
        tools(
            Rule::ToolName,
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            json!([tool("look.up")]),
            json!([tool("look-up")]),
        ),
        tools(
            Rule::TypedToolName,
            "tools.0.bash_20250124.name: Input should be 'bash'",
            json!([{"type": "bash_20250124", "name": "shell"}]),
            json!([bash()]),
        ),
        tools(
            Rule::ToolNamesUnique,
            "tools: Tool names must be unique.",
            json!([bash(), tool("bash")]),
            json!([bash(), tool("bash2")]),
        ),
        tools(
            Rule::ExtraToolField,
            "tools.0.bash_20250124.input_schema: Extra inputs are not permitted",
            with(bash(), "input_schema", json!({"type": "object"})),
            json!([bash()]),
        ),
        tools(
            Rule::ExtraToolField,
            "tools.0.custom.parameters: Extra inputs are not permitted",
            with(tool("look"), "parameters", json!({})),
            with(tool("look"), "description", json!("Looks.")),
        ),
        tools(
            Rule::FieldRequired,
            "tools.0.custom.input_schema: Field required",
            json!([{"name": "look"}]),
            json!([tool("look")]),
        ),
        tools(
            Rule::SchemaRoot,
            "tools.0.custom.input_schema.type: Input should be 'object'",
            schema(json!({"type": "string"})),
            schema(json!({"type": "object"})),
        ),
        tools(
            Rule::SchemaRoot,
            "tools.0.custom.input_schema.type: Field required",
            schema(json!({})),
            schema(json!({"type": "object"})),
        ),
        tools(
            Rule::SchemaUnion,
            "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top \
                level",
            schema(json!({"type": "object", "anyOf": []})),
            schema(json!({"type": "object", "properties": {"a": {"anyOf": []}}})),
        ),
        tools(
            Rule::StrictSchema,
            "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
            json!([strict(open)]),
            json!([strict(closed.clone())]),
        ),
        tools(
            Rule::StrictCount,
            "Schema is too complex for compilation. Found 21 strict tools, at most 20 are allowed.",
            many(21),
            many(20),
        ),
        tools(
            Rule::DeferredMark,
            "Tool 'look' cannot have both defer_loading=true and cache_control set.",
            deferred(json!({"type": "ephemeral"})),
            deferred(Value::Null),
        ),
    ]
}

fn choice() -> Vec<Case> {
    let choice = |choice: Value| {
        move |ask: &mut RawRequest| {
            ask.body["tools"] = json!([bash()]);
            ask.body["tool_choice"] = choice.clone();
        }
    };
    let any = || json!({"type": "any"});
    let enabled = json!({"type": "enabled", "budget_tokens": 1_024});
    vec![
        member(
            Rule::ChoiceWithoutTools,
            "tool_choice may only be specified while providing tools.",
            "tool_choice",
            json!({"type": "auto"}),
            Value::Null,
        ),
        case(
            Rule::ChoiceType,
            "tool_choice: Input tag 'some' found using 'type' does not match any of the expected tags: \
             'auto', 'any', 'tool', 'none'",
            choice(json!({"type": "some"})),
            choice(json!({"type": "auto", "disable_parallel_tool_use": true})),
        ),
        case(
            Rule::ChoiceUnknownTool,
            "Tool 'sh' not found in provided tools",
            choice(json!({"type": "tool", "name": "sh"})),
            choice(json!({"type": "tool", "name": "bash"})),
        ),
        case(
            Rule::ForcedChoice,
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
            choice(any()),
            choice(json!({"type": "none"})),
        )
        .on("claude-opus-5-5"),
        case(
            Rule::ForcedThinking,
            "Thinking may not be enabled when tool_choice forces tool use.",
            choice(any()),
            choice(json!({"type": "auto"})),
        )
        .both(|ask| {
            ask.body["model"] = json!("claude-opus-4-6");
            ask.body["thinking"] = enabled.clone();
            ask.body["max_tokens"] = json!(4_096);
        }),
    ]
}

fn effort() -> Vec<Case> {
    let effort = |rule, text: &str, refused: &str, passes: Value| {
        member(rule, text, "output_config", json!({"effort": refused}), passes)
    };
    let closed = json!({"type": "object", "additionalProperties": false});
    vec![
        effort(
            Rule::EffortValue,
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
            "huge",
            json!({"effort": "max"}),
        ),
        effort(
            Rule::EffortUnsupported,
            "This model does not support the effort parameter.",
            "high",
            json!({}),
        )
        .on("claude-haiku-4-5"),
        effort(
            Rule::EffortLevel,
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
            "xhigh",
            json!({"effort": "max"}),
        )
        .on("claude-opus-4-6"),
        member(
            Rule::ExtraField,
            "output_config.verbosity: Extra inputs are not permitted",
            "output_config",
            json!({"verbosity": "low"}),
            json!({"effort": "low"}),
        ),
        member(
            Rule::OutputFormat,
            "output_config.format: Input should be {'type': 'json_schema', 'schema': {...}}",
            "output_config",
            json!({"format": {"type": "json"}}),
            json!({"format": {"type": "json_schema", "schema": closed}}),
        ),
    ]
}

fn thinking() -> Vec<Case> {
    let thinking = |rule, text: &str, refused, passes| member(rule, text, "thinking", refused, passes);
    let of = |kind: &str| json!({"type": kind});
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    let room = |ask: &mut RawRequest| ask.body["max_tokens"] = json!(2_000);
    let top = |ask: &mut RawRequest| ask.body["output_config"] = json!({"effort": "xhigh"});
    let no = |kind: &str| {
        format!("\"thinking.type.{kind}\" is not supported for this model. Use \"thinking.type.adaptive\".")
    };
    let restrained = |state: &str| {
        format!(
            "output_config.effort 'xhigh' is not supported when thinking is {state} on this model. \
             Use effort 'high' or lower, or adaptive thinking."
        )
    };
    vec![
        thinking(
            Rule::ThinkingType,
            "thinking: Input tag 'deep' found using 'type' does not match any of the expected tags: \
             'adaptive', 'between_tools', 'disabled', 'enabled'",
            of("deep"),
            of("adaptive"),
        ),
        thinking(Rule::ThinkingEnabled, &no("enabled"), budget(1_024), of("adaptive")).both(room),
        thinking(Rule::ThinkingDisabled, &no("disabled"), of("disabled"), of("adaptive"))
            .on("claude-opus-5-5"),
        thinking(
            Rule::ThinkingAdaptive,
            "adaptive thinking is not supported on this model",
            of("adaptive"),
            budget(1_024),
        )
        .both(room)
        .on("claude-haiku-4-5"),
        thinking(Rule::ThinkingBetweenTools, &no("between_tools"), of("between_tools"), of("disabled")),
        thinking(Rule::ThinkingEffort, &restrained("disabled"), of("disabled"), of("adaptive"))
            .both(top)
            .on("claude-opus-5"),
        thinking(
            Rule::ThinkingEffort,
            &restrained("limited to between tools"),
            of("between_tools"),
            of("between_tools"),
        )
        .both(top)
        .on("claude-sonnet-5-5")
        .passing(|ask| ask.body["output_config"] = json!({"effort": "high"})),
        thinking(
            Rule::ThinkingBudget,
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            budget(1_023),
            budget(1_024),
        )
        .both(room)
        .on("claude-sonnet-4-6"),
        thinking(
            Rule::ThinkingBudget,
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
            budget(2_000),
            budget(1_999),
        )
        .both(room)
        .on("claude-sonnet-4-6"),
        thinking(
            Rule::ThinkingDisplay,
            "thinking.adaptive.display: Input should be 'summarized' or 'omitted'",
            json!({"type": "adaptive", "display": "updates"}),
            json!({"type": "adaptive", "display": "summarized"}),
        ),
        thinking(
            Rule::ThinkingDisplay,
            "thinking.disabled.display: Extra inputs are not permitted",
            json!({"type": "disabled", "display": "omitted"}),
            of("disabled"),
        ),
    ]
}

fn sampling() -> Vec<Case> {
    let temperature = |rule, text: &str, refused, passes| member(rule, text, "temperature", refused, passes);
    vec![
        temperature(Rule::SamplingRange, "temperature: range: 0..1", json!(1.5), json!(0.5))
            .on("claude-opus-4-6"),
        temperature(
            Rule::SamplingUnsupported,
            "`temperature` is deprecated for this model.",
            json!(0.5),
            json!(1.0),
        ),
        temperature(
            Rule::SamplingVersion,
            "temperature: Extra inputs are not permitted",
            json!(1.0),
            Value::Null,
        )
        .with("anthropic-version", "2026-10-21"),
    ]
}

fn limits() -> Vec<Case> {
    let text = |bytes: usize| json!([{"role": "user", "content": "x".repeat(bytes)}]);
    vec![
        member(
            Rule::UnknownModel,
            "model: claude-opus-9",
            "model",
            json!("claude-opus-9"),
            json!("claude-opus-5"),
        ),
        // The client's own short names mean nothing to the API.
        member(Rule::UnknownModel, "model: opus", "model", json!("opus"), json!("claude-opus-4-5")),
        member(
            Rule::MaxTokensNegative,
            "max_tokens: Input should be greater than or equal to 0",
            "max_tokens",
            json!(-1),
            json!(0),
        ),
        case(
            Rule::MaxTokensZero,
            "max_tokens: 0 is not supported together with stream",
            |ask| ask.body["stream"] = json!(true),
            |ask| ask.body["stream"] = json!(false),
        )
        .both(|ask| ask.body["max_tokens"] = json!(0)),
        member(
            Rule::MaxTokensOverCap,
            "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for \
             claude-haiku-4-5-20251001",
            "max_tokens",
            json!(64_001),
            json!(64_000),
        )
        .on("claude-haiku-4-5"),
        // 200,000 tokens are between 300,000 and 900,000 bytes, whatever the conversation.
        member(Rule::PromptTooLong, "", "messages", text(900_100), text(299_000))
            .around("prompt is too long: ", " tokens > 200000 maximum")
            .on("claude-haiku-4-5"),
    ]
}
