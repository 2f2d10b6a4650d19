//! Rules about sampling parameters and the format of the output.

use convoke_claude::ThinkingType;
use serde_json::Value;

use super::{Asked, Checked, EndpointKind, Rule, refuse};

pub(super) fn check(asked: &Asked<'_>) -> Checked {
    for name in ["temperature", "top_p", "top_k"] {
        if let Some(value) = asked.member(name).and_then(Value::as_f64) {
            parameter(asked, name, value)?;
        }
    }
    let Some(format) = asked.member("output_config").and_then(|config| config.get("format")) else {
        return Ok(());
    };
    if format["type"] != "json_schema" || !format["schema"].is_object() {
        let text = "output_config.format: Input should be {'type': 'json_schema', 'schema': {...}}";
        return refuse(Rule::OutputFormat, text);
    }
    super::tools::closed("output_config.format.schema", &format["schema"])
}

fn parameter(asked: &Asked<'_>, name: &str, value: f64) -> Checked {
    if asked.headers.strict {
        return refuse(Rule::SamplingVersion, format!("{name}: Extra inputs are not permitted"));
    }
    let (range, fits, default) = match name {
        "top_k" => ("0..", value >= 0.0, false),
        _ => ("0..1", (0.0..=1.0).contains(&value), value == 1.0),
    };
    if !fits {
        return refuse(Rule::SamplingRange, format!("{name}: range: {range}"));
    }
    // The models that still think by budget are those of 4.6 and before, and only they still take these
    // parameters.
    let takes = asked.model.thinking.accepts.contains(&ThinkingType::Enabled)
        || asked.endpoint == EndpointKind::Generic;
    if !takes && !default {
        return refuse(Rule::SamplingUnsupported, format!("`{name}` is deprecated for this model."));
    }
    Ok(())
}
