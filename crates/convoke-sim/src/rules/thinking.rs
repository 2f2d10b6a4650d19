//! Rules about thinking and effort, model by model.

use convoke_claude::ThinkingType as Kind;

use super::shape::{self, members};
use super::{Asked, Checked, EndpointKind, Rule, refuse};

const LEVELS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

const MIN_BUDGET: i64 = 1_024;

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    // A generic server has already refused both parameters.
    if asked.endpoint == EndpointKind::Generic {
        return Ok(());
    }
    effort(asked)?;
    thinking(asked)
}

fn effort(asked: &Asked<'_>) -> Checked {
    let Some(effort) = asked.effort() else { return Ok(()) };
    if !LEVELS.contains(&effort) {
        let text = "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'";
        return refuse(Rule::EffortValue, text);
    }
    let levels = &asked.model.effort_levels;
    if levels.is_empty() {
        return refuse(Rule::EffortUnsupported, "This model does not support the effort parameter.");
    }
    if !levels.iter().any(|level| level == effort) {
        let mut known: Vec<&str> = levels.iter().map(String::as_str).collect();
        known.sort_unstable();
        let known = known.join(", ");
        let text = format!("This model does not support effort level '{effort}'. Supported levels: {known}.");
        return refuse(Rule::EffortLevel, text);
    }
    Ok(())
}

fn thinking(asked: &Asked<'_>) -> Checked {
    let Some(thinking) = asked.member("thinking") else { return Ok(()) };
    let kind = match thinking["type"].as_str() {
        Some("adaptive") => Kind::Adaptive,
        Some("enabled") => Kind::Enabled,
        Some("disabled") => Kind::Disabled,
        Some("between_tools") => Kind::BetweenTools,
        other => {
            let text = format!(
                "thinking: Input tag '{}' found using 'type' does not match any of the expected tags: \
                 'adaptive', 'between_tools', 'disabled', 'enabled'",
                other.unwrap_or_default()
            );
            return refuse(Rule::ThinkingType, text);
        }
    };
    let mut known = vec![("type", shape::Kind::String, true), ("display", shape::Kind::String, false)];
    if kind == Kind::Enabled {
        known.push(("budget_tokens", shape::Kind::Integer, true));
    }
    if asked.headers.beta("thinking-binding-controls-") {
        known.push(("block_binding", shape::Kind::Object, false));
    }
    if let Some(object) = thinking.as_object() {
        members(&format!("thinking.{kind}"), object, &known, Rule::ExtraField)?;
    }
    supported(asked, kind)?;
    if let Some(budget) = thinking["budget_tokens"].as_i64() {
        if budget < MIN_BUDGET {
            let text = format!(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_BUDGET}"
            );
            return refuse(Rule::ThinkingBudget, text);
        }
        if asked.body["max_tokens"].as_i64().is_some_and(|max_tokens| budget >= max_tokens) {
            return refuse(
                Rule::ThinkingBudget,
                "`max_tokens` must be greater than `thinking.budget_tokens`.",
            );
        }
    }
    display(asked, kind, thinking["display"].as_str())
}

fn supported(asked: &Asked<'_>, kind: Kind) -> Checked {
    let rules = &asked.model.thinking;
    if rules.allows(kind, asked.effort()) {
        return Ok(());
    }
    if rules.accepts.contains(&kind) {
        let effort = asked.effort().unwrap_or_default();
        let state = if kind == Kind::Disabled { "disabled" } else { "limited to between tools" };
        let text = format!(
            "output_config.effort '{effort}' is not supported when thinking is {state} on this model. \
             Use effort 'high' or lower, or adaptive thinking."
        );
        return refuse(Rule::ThinkingEffort, text);
    }
    let other = if rules.accepts.contains(&Kind::Adaptive) { "adaptive" } else { "enabled" };
    let named =
        format!("\"thinking.type.{kind}\" is not supported for this model. Use \"thinking.type.{other}\".");
    match kind {
        Kind::Adaptive => refuse(Rule::ThinkingAdaptive, "adaptive thinking is not supported on this model"),
        Kind::Enabled => refuse(Rule::ThinkingEnabled, named),
        Kind::Disabled => refuse(Rule::ThinkingDisabled, named),
        Kind::BetweenTools => refuse(Rule::ThinkingBetweenTools, named),
    }
}

fn display(asked: &Asked<'_>, kind: Kind, display: Option<&str>) -> Checked {
    match display {
        None => Ok(()),
        Some(_) if kind == Kind::Disabled => {
            refuse(Rule::ThinkingDisplay, "thinking.disabled.display: Extra inputs are not permitted")
        }
        Some("summarized" | "omitted") => Ok(()),
        Some("updates") if asked.headers.beta("thinking-display-updates-") => Ok(()),
        Some(_) => {
            let text = format!("thinking.{kind}.display: Input should be 'summarized' or 'omitted'");
            refuse(Rule::ThinkingDisplay, text)
        }
    }
}
