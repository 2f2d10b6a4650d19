//! Every row of the table is complete, and no name means two things.

use std::collections::BTreeSet;

use super::*;
use crate::consent::Consent;
use crate::segment::Segment;
use crate::tools::{AfterCrash, ToolRequest, parts, shown};

/// An agent of a row's audience to which everything is offered that depends on more than the audience.
fn offer<'a>(tool: &Tool, hands: &'a Tools, output: &'a Output) -> Offer<'a> {
    let role = match tool.audience {
        Audience::All | Audience::Lead | Audience::TeamLead | Audience::Team => Role::Lead,
        Audience::Worker => Role::Worker,
        Audience::Verifier => Role::Verifier,
        Audience::Output => Role::Callee,
        Audience::Teammate => Role::Teammate,
    };
    Offer {
        max_subtasks: Some(9),
        output: Some(output),
        in_team: true,
        requires_plan: true,
        ..Offer::to(role, false, hands)
    }
}

fn caller(role: Role, given: &[GivenTool]) -> Caller<'_> {
    let consent = Consent::Missing;
    Caller { role, findings: 0, hands: None, output: None, consent, in_team: false, given }
}

#[test]
fn every_row_is_declared_read_and_shown() {
    let hands = Tools::all();
    let output = Output { schema: Segment::from_json(r#"{"type":"object"}"#.to_owned()).unwrap() };
    for tool in TABLE {
        let name = tool.name;
        let offer = offer(tool, &hands, &output);
        assert!(tool.audience.includes(offer.who()), "{name}");
        let declared = (tool.declare)(&offer).unwrap_or_else(|| panic!("{name} is not declared"));
        assert_eq!(declared["name"], name);
        assert!(declared["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        assert_eq!(declared["input_schema"]["type"], "object", "{name}");
        // Whatever it makes of a call without anything in it: it neither panics nor calls it unknown.
        let _ = tool.read(&json!({}), &caller(offer.role, &[]));
        let shown = shown(name, r#"{"command":"view","path":"a"}"#);
        for text in [shown.line(), shown.title(), shown.progress(), shown.body(), shown.record()] {
            assert!(!text.trim().is_empty(), "{name}");
        }
        for part in tool.parts {
            assert!(!part.cannot.is_empty() && !part.name.is_empty(), "{name}");
            assert!(part.aliases.iter().all(|alias| *alias == alias.to_ascii_lowercase()), "{name}");
        }
        // `tools:` can name what an agent does itself; such a tool is offered to every role.
        assert_eq!(tool.audience == Audience::All, !tool.parts.is_empty(), "{name}");
    }
}

#[test]
fn names_of_tools_and_of_their_parts_are_unique() {
    let names: BTreeSet<&str> = TABLE.iter().map(|tool| tool.name).collect();
    assert_eq!(names.len(), TABLE.len());
    let mut known = BTreeSet::new();
    for name in parts().flat_map(|part| part.aliases.iter().copied().chain([part.name])) {
        assert!(known.insert(name), "{name} means two parts");
        let taken = TABLE.iter().find(|tool| tool.name.eq_ignore_ascii_case(name));
        assert!(taken.is_none_or(|tool| tool.parts.iter().any(|part| part.name == name)), "{name}");
    }
}

#[test]
fn a_given_tool_is_found_declared_and_read_by_the_same_door() {
    let ticket = GivenTool {
        name: "ticket".into(),
        description: "Looks a ticket up.".into(),
        input_schema: Segment::from_json(r#"{"type":"object"}"#.to_owned()).unwrap(),
        writes: false,
        after_crash: AfterCrash::Repeat,
        roles: vec![Role::Lead],
    };
    let given = [ticket];
    let who = |role| Who { role, in_team: false, has_output: false };
    let found = AnyTool::of("ticket", who(Role::Lead), &given).unwrap();
    let read = found.read(&json!({}), &caller(Role::Lead, &given));
    assert!(matches!(read, Ok(Wanted::Run(ToolRequest::Given { writes: false, .. }))), "{read:?}");
    assert!(AnyTool::of("ticket", who(Role::Worker), &given).is_none());
    let hands = Tools::all();
    let declared = declare(&Offer { given: &given, ..Offer::to(Role::Lead, false, &hands) });
    assert_eq!(declared.last().unwrap()["name"], "ticket");
    assert_eq!(shown("ticket", r#"{"id":7}"#).line(), r#"ticket {"id":7}"#);
}
