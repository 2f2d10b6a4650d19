//! Whether everything is said in plain lines: a flag, a variable, a key, or a terminal that can do nothing
//! else. What that changes is decided where things are shown.

use super::environment::Environment;
use super::layers::Layers;
use super::origin::Origin;
use super::value::Value;
use crate::failure::Failure;

/// The variable by which a person says so.
const PLAIN: &str = "ORCH_PLAIN";
/// The variable by which a terminal does.
const TERM: &str = "TERM";

/// Puts what the environment says over what is there: a terminal that cannot move its cursor leaves no
/// choice, and a person who names the variable has the last word.
pub(super) fn put_environment(layers: &mut Layers, env: &Environment) -> Result<(), Failure> {
    if env.get(TERM) == Some("dumb") {
        layers.put("plain", Value::Switch(true), Origin::Variable(TERM));
    }
    let Some(text) = env.get(PLAIN) else { return Ok(()) };
    let on = match text {
        "1" | "on" | "true" => true,
        "0" | "off" | "false" => false,
        _ => return Err(Failure::usage(format!("{PLAIN}: '{text}' is no switch: write 1 or 0"))),
    };
    layers.put("plain", Value::Switch(on), Origin::Variable(PLAIN));
    Ok(())
}

/// Whether it is, in the end: a terminal that does not even say what it is cannot be drawn on.
pub(super) fn is_plain(layers: &Layers, env: &Environment) -> bool {
    layers.is_on("plain") || env.get(TERM).is_none()
}

/// Puts what the flag says over what is there.
pub(super) fn put_flag(layers: &mut Layers, plain: bool) {
    if plain {
        layers.put("plain", Value::Switch(true), Origin::Flag("--plain"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], flag: bool, expected: (bool, &str)) {
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut layers = Layers::builtin();
        let env = pairs.collect();
        put_environment(&mut layers, &env).unwrap();
        put_flag(&mut layers, flag);
        let origin = layers.origin("plain").to_string();
        assert_eq!((is_plain(&layers, &env), origin.as_str()), expected, "{variables:?}");
    }

    #[test]
    fn plain_is_a_flag_a_variable_or_a_terminal_that_can_do_nothing_else() {
        let good = ("TERM", "xterm-256color");
        check(&[good], false, (false, "default"));
        check(&[good], true, (true, "flag --plain"));
        check(&[good, ("ORCH_PLAIN", "1")], false, (true, "environment ORCH_PLAIN"));
        check(&[good, ("ORCH_PLAIN", "")], false, (false, "default"));
        check(&[("TERM", "dumb")], false, (true, "environment TERM"));
        check(&[], false, (true, "default"));
        check(&[("TERM", "dumb"), ("ORCH_PLAIN", "0")], false, (false, "environment ORCH_PLAIN"));
        check(&[good, ("ORCH_PLAIN", "0")], true, (true, "flag --plain"));
    }

    #[test]
    fn a_variable_that_is_no_switch_says_what_to_write() {
        let env = [("ORCH_PLAIN".to_owned(), "maybe".to_owned())].into_iter().collect();
        let failure = put_environment(&mut Layers::builtin(), &env).unwrap_err();
        assert_eq!(failure.message, "ORCH_PLAIN: 'maybe' is no switch: write 1 or 0");
    }
}
