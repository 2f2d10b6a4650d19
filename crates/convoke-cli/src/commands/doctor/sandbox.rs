//! What confines commands on this machine: every layer with what to do about a missing one, which policies
//! hold, and what these layers do not hold. It tries each layer once, whatever is remembered, and leaves
//! nothing behind but the memory of what it found.

use convoke_kernel::{Confinement, Sandbox};
use convoke_runtime::{access, network};
use convoke_sandbox::{CannotHold, Enforcement, Layers};

use super::{Check, Level, fail, ok, warn};
use crate::confine::{self, Probing, check_places, network_words, weaker_names};
use crate::settings::Settings;

/// What the probe says of bubblewrap where there is none.
const NOT_INSTALLED: &str = "not installed";

/// Everything about confinement.
pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    let layers = match confine::layers(settings, &settings.dir, Probing::Anew).await {
        Ok((layers, _)) => layers,
        Err(failure) => return vec![fail("sandbox", failure.message, failure.hints.join("; "))],
    };
    let wanted = &settings.confine;
    let mut checks = each(&layers);
    for sandbox in [Sandbox::ReadOnly, Sandbox::Workspace] {
        let held = convoke_sandbox::hold(&layers, access(sandbox), &network(&wanted.network), wanted.at_most);
        checks.extend(policy(sandbox, wanted.sandbox, &wanted.network, held));
    }
    if wanted.sandbox == Sandbox::Off {
        let todo = "leave --sandbox off out to have commands confined";
        checks.push(warn("sandbox", "off is chosen: commands run with all your rights, UNCONFINED", todo));
    }
    if let Err(failure) = check_places(settings, &settings.dir) {
        checks.push(fail("places", failure.message, failure.hints.join("; ")));
    }
    checks
}

/// One check for each layer.
fn each(layers: &Layers) -> Vec<Check> {
    const NAMES: [&str; 6] = ["bubblewrap", "overlay", "landlock", "seccomp", "cgroup", "hold"];
    let known = |name: &str| NAMES.into_iter().find(|known| *known == name);
    let lines =
        layers.lines().into_iter().filter_map(|(name, works, detail)| Some((known(&name)?, works, detail)));
    let first = [("Landlock", &layers.landlock), ("seccomp", &layers.seccomp)]
        .into_iter()
        .find(|(_, layer)| !layer.works);
    lines
        .map(|(name, works, detail)| match (works, name) {
            (true, _) => ok(name, detail),
            // Without these two nothing is confined at all.
            (false, "landlock" | "seccomp") => {
                fail(name, format!("missing: {detail}"), remedy(name, &detail))
            }
            // It is tried together with these two, so what it says then need not be its own fault.
            (false, "bubblewrap") if first.is_some() && !detail.contains(NOT_INSTALLED) => {
                let needed = first.map(|(needed, _)| needed).unwrap_or_default();
                let todo = format!("see to {needed} first: bubblewrap is used only together with it");
                warn(name, format!("cannot be told without {needed}: {detail}"), todo)
            }
            (false, _) => warn(name, format!("missing: {detail}"), remedy(name, &detail)),
        })
        .collect()
}

/// What to do about a layer that is missing.
fn remedy(layer: &str, detail: &str) -> &'static str {
    match layer {
        "bubblewrap" if detail.contains(NOT_INSTALLED) => {
            "`apt-get install bubblewrap` (or your system's package of that name); until then Landlock and \
                seccomp hold"
        }
        "bubblewrap" => {
            "allow unprivileged user namespaces: `sysctl kernel.unprivileged_userns_clone=1`, and on Ubuntu \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; for containers see docs/ci.md; until \
             then Landlock and seccomp hold"
        }
        "overlay" => {
            "copies are made file by file and caches cannot be written until bubblewrap and overlay mounts \
                work"
        }
        "landlock" => {
            "use a kernel from 5.13 on with Landlock among its security modules (`lsm=landlock,…` on its \
             command line); in a container, a seccomp profile that lets landlock_create_ruleset through"
        }
        "seccomp" => "use a kernel with CONFIG_SECCOMP_FILTER",
        "cgroup" => {
            "limits are watched ten times a second instead; a control group that is yours holds them \
             exactly (`systemd-run --user --scope -p Delegate=yes convoke …`)"
        }
        _ => "allow user and pid namespaces to be certain that nothing a command started survives",
    }
}

/// Whether one policy holds, and what it does not.
fn policy(
    sandbox: Sandbox,
    chosen: Sandbox,
    network: &convoke_kernel::Network,
    held: Result<Enforcement, CannotHold>,
) -> Vec<Check> {
    let is_chosen = sandbox == chosen;
    let held = match held {
        Ok(held) => held,
        Err(cannot) => {
            let found = format!("{} cannot be held: {}", sandbox.name(), cannot.why);
            let check = if is_chosen { fail } else { warn };
            return vec![check("sandbox", found, cannot.remedy)];
        }
    };
    let confinement =
        Confinement { sandbox, network: network.clone(), held_by: held.layers, weaker: held.weaker };
    let mark = if is_chosen { " (chosen)" } else { "" };
    let reach = network_words(&confinement);
    let found = format!("{}{mark}, {reach}: held by {}", sandbox.name(), confinement.held_by.join(", "));
    let mut checks = vec![ok("sandbox", found)];
    if is_chosen {
        let weak = weaker_names(&confinement);
        let is_weak = |line: &String| weak.iter().any(|name| line.starts_with(&format!("{name}:")));
        // What is weaker than elsewhere is worth a warning, what is so by the nature of the policy only a
        // word.
        checks.extend(confinement.weaker.iter().map(|line| match is_weak(line) {
            true => Check { todo: None, ..warn("weaker", line, "") },
            false => ok("limit", line),
        }));
        if let Some(last) = checks.iter_mut().rfind(|check| check.level == Level::Warn) {
            last.todo =
                Some("docs/sandbox.md says what each lets through, and what would hold it".to_owned());
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use convoke_kernel::Network;
    use convoke_sandbox::{Layer, LayerSet};

    use super::*;

    fn machine() -> Layers {
        Layers {
            bubblewrap: Layer::works("bubblewrap 0.8.0"),
            own_proc: true,
            overlay: Layer::works(""),
            landlock: Layer::works("version 7"),
            landlock_abi: 7,
            seccomp: Layer::works("filters hold"),
            cgroup: Layer::missing("no group is ours"),
            hold: Layer::works("pid namespace"),
            ..Layers::default()
        }
    }

    #[test]
    fn a_missing_layer_is_told_with_its_reason_and_its_remedy() {
        let check = |layers: &Layers, name: &str, level: Level, says: &str| {
            let checks = each(layers);
            let found = checks.iter().find(|check| check.name == name).unwrap();
            let all = format!("{} {}", found.found, found.todo.clone().unwrap_or_default());
            assert!(found.level == level && all.contains(says), "{found:?}");
        };
        check(&machine(), "landlock", Level::Ok, "version 7");
        check(&machine(), "cgroup", Level::Warn, "no group is ours");
        let bare = Layers { bubblewrap: Layer::missing("bubblewrap is not installed"), ..machine() };
        check(&bare, "bubblewrap", Level::Warn, "apt-get install bubblewrap");
        let forbidden =
            Layers { bubblewrap: Layer::missing("setting up uid map: Permission denied"), ..machine() };
        check(&forbidden, "bubblewrap", Level::Warn, "unprivileged_userns_clone");
        let old =
            Layers { landlock: Layer::missing("the kernel says: ENOSYS"), landlock_abi: 0, ..machine() };
        check(&old, "landlock", Level::Fail, "5.13");
        let failed = || Layer::missing("the kernel offers no Landlock");
        let neither = Layers { bubblewrap: failed(), ..old.clone() };
        check(&neither, "bubblewrap", Level::Warn, "see to Landlock first");
        let bare = Layers { bubblewrap: Layer::missing("bubblewrap is not installed"), ..old };
        check(&bare, "bubblewrap", Level::Warn, "apt-get install bubblewrap");
    }

    #[test]
    fn a_policy_that_cannot_be_held_fails_only_if_it_is_the_chosen_one() {
        let old = Layers { landlock: Layer::missing("ENOSYS"), landlock_abi: 0, ..machine() };
        let told = |layers: &Layers, sandbox: Sandbox, at_most: Option<LayerSet>| {
            let held = convoke_sandbox::hold(layers, access(sandbox), &network(&Network::Off), at_most);
            policy(sandbox, Sandbox::Workspace, &Network::Off, held)
        };
        assert_eq!(told(&old, Sandbox::Workspace, None)[0].level, Level::Fail);
        assert_eq!(told(&old, Sandbox::ReadOnly, None)[0].level, Level::Warn);
        let full = told(&machine(), Sandbox::Workspace, None);
        assert!(
            full[0].found.starts_with("workspace (chosen), no network: held by bubblewrap, landlock 7"),
            "{full:?}"
        );
        assert!(full.iter().all(|check| check.level == Level::Ok), "{full:?}");
        let weak = told(&machine(), Sandbox::Workspace, Some(LayerSet::Landlock));
        assert!(
            weak.iter().any(|check| check.level == Level::Warn && check.found.starts_with("git-metadata:"))
        );
    }
}
