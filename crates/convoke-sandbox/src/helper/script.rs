//! What bash is told: under which numbers it finds its descriptors, what its script begins with, the lines
//! that hold it at the gates, and which variables it may begin with.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::gate::{self, MARK, OPENED};
use super::listing::Env;

/// Bash's private descriptors: the text of a long command, that of a short one, the output pipe, where bash
/// speaks, and the two gates. All are closed for commands. The four from `TEXT` on also spell the exit code,
/// so `TEXT` is a multiple of four.
pub(super) const LONG_TEXT: i32 = 228;
pub(super) const TEXT: i32 = 236;
pub(super) const OUT: i32 = 237;
pub(super) const REPORT: i32 = 238;
pub(super) const START: i32 = 239;
pub(super) const END: i32 = 240;

/// While a command runs, bash keeps copies here that no program inherits: it saves what the `eval` redirects
/// behind what that is redirected to.
const START_INSIDE: i32 = 242;
const REPORT_INSIDE: i32 = 243;

/// Bash would act on these at its start, or describes itself by them.
const NOT_AT_START: [&str; 6] = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "SHLVL", "_"];

/// What every bash begins with: its traps, what it must not have had at its start, and a first time at the
/// gate. Programs can be made part of bash by `enable -f`, which could then do anything in its place, so that
/// word is taken away.
pub(super) fn opening(env: &Env) -> Vec<u8> {
    let unwind = r"((${#BASH_SOURCE[@]})) && \builtin return 137";
    // Inside the double quotes it must be expanded only when the inner trap runs.
    let later = unwind.replace('\\', r"\\").replace('$', r"\$");
    let stop = format!(r#"\builtin set -T; \builtin trap "{later}" DEBUG; {unwind}"#);
    let words = |to: i32| {
        format!(
            r"if [[ -S /dev/fd/{to} ]]; then \builtin pwd -P >&{to}; \builtin printf '\0' >&{to}; \builtin declare -px >&{to}; \builtin printf '\0' >&{to}"
        )
    };
    let at_exit = format!("{}; el{}; fi", words(REPORT_INSIDE), words(REPORT));
    let mut bytes = Vec::new();
    for (trap, signal) in [(stop, "RTMAX"), (at_exit, "EXIT")] {
        bytes.extend_from_slice(b"\\builtin trap ");
        bytes.extend_from_slice(&quote(trap.as_bytes()));
        bytes.extend_from_slice(format!(" {signal}\n").as_bytes());
    }
    for (name, value) in env.iter().filter(|(name, _)| is_for_programs(name)) {
        bytes.extend_from_slice(b"\\builtin export ");
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(&quote(value.as_bytes()));
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(b"\\builtin enable -n enable\n\\builtin :\n");
    bytes.extend_from_slice(end_gate("((1))").as_bytes());
    bytes
}

/// The line that holds bash in front of a command. The last redirection fails, so no command is run here that
/// a trap or a trace would show, and the loop ends with success. Lines are counted from the next one on.
pub(super) fn start_gate() -> String {
    format!(
        r#"while {{ ((1)); }} 2>/dev/null {MARK}<&{START_INSIDE} {OPENED}</dev/fd/"$((LINENO=0,{START_INSIDE}))" {MARK}<&x; do ((1)); done"#
    )
}

/// The line that holds bash behind a command, and what it does then. Redirections of a group are made before
/// any word in it is looked up and before any trap.
pub(super) fn end_gate(body: &str) -> String {
    format!("{{ {body}; }} {} {MARK}<&{END} {OPENED}</dev/fd/{END}\n", gate::spelling(TEXT))
}

/// Whether bash itself may begin with this variable: none that puts code into it.
pub(super) fn is_for_the_start(name: &OsStr) -> bool {
    !NOT_AT_START.iter().any(|own| name == *own)
        && !is_for_programs(name)
        && !name.as_bytes().starts_with(b"BASH_FUNC_")
}

/// Whether this variable is for the programs that bash starts and not for bash.
fn is_for_programs(name: &OsStr) -> bool {
    let plain = name.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let loader = name.as_bytes().starts_with(b"LD_");
    plain
        && (loader
            || ["BASH_ENV", "ENV", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES"].iter().any(|own| name == *own))
}

/// Single quotes, in which only the quote itself is special.
pub(super) fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in text {
        if byte == b'\'' {
            quoted.extend_from_slice(b"'\\''");
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_keeps_quotes() {
        assert_eq!(quote(b"it's"), b"'it'\\''s'");
    }

    #[test]
    fn no_variable_puts_code_into_bash_at_its_start() {
        for name in ["BASH_ENV", "LD_PRELOAD", "LD_AUDIT", "BASH_FUNC_builtin%%", "SHELLOPTS", "GCONV_PATH"] {
            assert!(!is_for_the_start(OsStr::new(name)), "{name}");
        }
        assert!(is_for_the_start(OsStr::new("PATH")) && is_for_programs(OsStr::new("LD_LIBRARY_PATH")));
        assert!(!is_for_programs(OsStr::new("LD_X;id")) && !is_for_programs(OsStr::new("PATH")));
    }
}
