//! When what is remembered counts, and which files are believed.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::layers::Layer;

fn whole() -> Layers {
    let works = || Layer::works("");
    Layers {
        bubblewrap: works(),
        own_proc: true,
        overlay: works(),
        landlock: works(),
        landlock_abi: 6,
        seccomp: works(),
        hold: works(),
        ..Layers::default()
    }
}

fn here() -> Circumstances {
    let helper = HelperPath::new(std::env::current_exe().unwrap());
    Circumstances::look(&helper, Some(OsStr::new("/usr/bin:/bin")), Path::new("/nowhere"))
}

fn remembered(layers: Layers) -> Remembered {
    Remembered { circumstances: here(), layers, at: 1_000 }
}

#[test]
fn what_is_remembered_counts_for_what_it_was_true_for_and_for_nothing_else() {
    let memory = remembered(whole());
    assert!(applies(&memory, &here(), 1_000) && applies(&memory, &here(), 10_000_000));
    assert!(!applies(&memory, &here(), 999), "from before this boot");
    // Each member by itself, also any that is added later.
    let text = serde_json::to_value(here()).unwrap();
    for (name, value) in text.as_object().unwrap() {
        let mut other = text.clone();
        other[name] = match value {
            serde_json::Value::Number(number) => (number.as_u64().unwrap() + 1).into(),
            serde_json::Value::String(text) => format!("{text}x").into(),
            serde_json::Value::Null => "/usr/bin".into(),
            serde_json::Value::Array(_) => serde_json::json!([null]),
            _ if name == "switches" => serde_json::json!({"user/max_user_namespaces": "0"}),
            _ => serde_json::Value::Null,
        };
        let Ok(other) = serde_json::from_value::<Circumstances>(other) else {
            assert!(value.is_null(), "{name} of another kind");
            continue;
        };
        assert!(!applies(&memory, &other, 1_000), "another {name}");
    }
}

#[test]
fn a_layer_that_was_missing_is_tried_again_after_an_hour() {
    let nested = remembered(Layers { own_proc: false, ..whole() });
    let bare = remembered(Layers { bubblewrap: Layer::missing("not installed"), ..whole() });
    for memory in [nested, bare] {
        assert!(applies(&memory, &here(), 1_000 + 60 * 60 - 1));
        assert!(!applies(&memory, &here(), 1_000 + 60 * 60));
    }
}

#[test]
fn that_nothing_can_be_held_is_never_taken_from_memory() {
    let bad = [
        Layers { landlock: Layer::missing("ENOSYS"), ..whole() },
        Layers { seccomp: Layer::missing("refused"), ..whole() },
        Layers { bash_in_namespaces: Some("Permission denied".to_owned()), ..whole() },
    ];
    bad.into_iter().for_each(|layers| assert!(!applies(&remembered(layers), &here(), 1_000)));
}

#[test]
fn a_file_that_is_damaged_or_not_this_users_alone_is_not_read() {
    let state = tempfile::tempdir().unwrap();
    let memory = ProbeMemory::below(&state.path().join("made/when/needed"));
    assert_eq!(memory.read(), None, "there is none");
    memory.write(&remembered(whole())).unwrap();
    assert_eq!(memory.read(), Some(remembered(whole())));
    let about = fs::metadata(&memory.file).unwrap();
    assert_eq!(about.mode() & 0o7777, 0o600);
    for mode in [0o660, 0o620, 0o606, 0o644] {
        fs::set_permissions(&memory.file, PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(memory.read(), None, "{mode:o}");
    }
    fs::set_permissions(&memory.file, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(memory.read().is_some());
    if about.uid() == 0 {
        std::os::unix::fs::chown(&memory.file, Some(1), None).unwrap();
        assert_eq!(memory.read(), None, "another user's");
        std::os::unix::fs::chown(&memory.file, Some(0), None).unwrap();
    }
    let kept = memory.file.with_extension("kept");
    fs::rename(&memory.file, &kept).unwrap();
    symlink(&kept, &memory.file).unwrap();
    assert_eq!(memory.read(), None, "a link");
    memory.write(&remembered(whole())).unwrap();
    assert!(memory.read().is_some() && kept.exists(), "the link was replaced, and not what it led to");
    let text = fs::read(&memory.file).unwrap();
    for cut in [0, 1, text.len() / 2, text.len() - 1] {
        fs::write(&memory.file, &text[..cut]).unwrap();
        assert_eq!(memory.read(), None, "cut off after {cut} bytes");
    }
    let left = fs::read_dir(memory.file.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "nothing lies beside it but what was put there");
}

#[test]
fn a_promise_that_is_not_kept_is_an_error_and_is_forgotten() {
    let state = tempfile::tempdir().unwrap();
    let memory = ProbeMemory::below(state.path());
    let without = || ProcessHold::Subreaper { why: "namespaces are forbidden".to_owned() };
    // How the helper began, what comes of it, and whether it is remembered afterwards.
    let check = |own_processes: bool, begun: Result<ProcessHold, Error>, told: Option<&str>, kept: bool| {
        memory.write(&remembered(whole())).unwrap();
        let promise = Promise { own_processes, memory: Some(memory.clone()) };
        let checked = promise.check(begun, |hold| hold);
        let said = checked.as_ref().err().map(ToString::to_string);
        assert_eq!(said.is_some(), told.is_some(), "{checked:?}");
        assert!(told.is_none_or(|told| said.is_some_and(|said| said.contains(told))), "{checked:?}");
        assert_eq!(memory.read().is_some(), kept, "{checked:?}");
    };
    check(true, Ok(ProcessHold::PidNamespace), None, true);
    check(false, Ok(without()), None, true);
    check(true, Ok(without()), Some("namespaces are forbidden"), false);
    check(true, Ok(without()), Some("start again"), false);
    let refused = || Err(Error::HelperRefused { message: "no permission".to_owned() });
    check(true, refused(), Some("no permission"), false);
    check(false, refused(), Some("no permission"), false);
}
