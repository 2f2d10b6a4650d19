//! What holds commands, in the words of the first line, the record of a session and the doctor.

use convoke_kernel::{Confinement, Network, Sandbox};

/// What is said at every start is soon not read any more: these are limits of the policy itself, and the
/// documentation has them.
const STANDING: &[&str] = &["disk", "bursts", "network", "everything"];

/// Hosts that are named; more are counted.
const MOST_HOSTS: usize = 3;

/// The layers that hold, on one short line: `bubblewrap+landlock+seccomp`.
pub(crate) fn layers_words(confinement: &Confinement) -> String {
    let main = ["bubblewrap", "landlock", "seccomp", "cgroup"];
    let held = confinement.held_by.iter().filter_map(|layer| layer.split(' ').next());
    held.filter(|name| main.contains(name)).collect::<Vec<_>>().join("+")
}

/// Which hosts commands may talk to.
pub(crate) fn network_words(confinement: &Confinement) -> String {
    match (&confinement.network, confinement.sandbox) {
        (_, Sandbox::Off) | (Network::On, _) => "network open".to_owned(),
        (Network::Off, _) => "no network".to_owned(),
        (Network::Hosts(hosts), _) => {
            let more = hosts.len().saturating_sub(MOST_HOSTS);
            let named = hosts.iter().take(MOST_HOSTS).map(String::as_str).collect::<Vec<_>>().join(", ");
            if more > 0 { format!("network {named} and {more} more") } else { format!("network {named}") }
        }
    }
}

/// The names of what does not hold here although the policy promises it elsewhere.
pub(crate) fn weaker_names(confinement: &Confinement) -> Vec<&str> {
    let names = confinement.weaker.iter().filter_map(|line| line.split(':').next());
    names.filter(|name| !STANDING.contains(name)).collect()
}

/// One line about what does not hold here, if that is anything.
pub(crate) fn weaker_line(confinement: &Confinement) -> Option<String> {
    let names = weaker_names(confinement);
    if names.is_empty() {
        return None;
    }
    let without = confinement.held_by.iter().all(|layer| layer != "bubblewrap");
    let without = if without { ", without bubblewrap" } else { "" };
    Some(format!("weaker here{without}: {} (`convoke doctor` says what each means)", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn confinement(held_by: &[&str], weaker: &[&str]) -> Confinement {
        let sandbox = Sandbox::Workspace;
        let network = Network::Off;
        Confinement { sandbox, network, held_by: texts(held_by), weaker: texts(weaker) }
    }

    #[test]
    fn the_layers_are_named_without_their_versions() {
        let full = confinement(&["bubblewrap", "landlock 7", "seccomp", "rlimits", "cgroup"], &[]);
        assert_eq!(layers_words(&full), "bubblewrap+landlock+seccomp+cgroup");
        assert_eq!(
            layers_words(&confinement(&["landlock 7", "seccomp", "rlimits"], &[])),
            "landlock+seccomp"
        );
    }

    #[test]
    fn what_is_weaker_is_named_and_what_holds_nowhere_is_left_to_the_page() {
        let weak =
            confinement(&["landlock 7"], &["git-metadata: it can be written", "disk: it can be filled"]);
        let line = weaker_line(&weak).unwrap();
        assert!(
            line.starts_with("weaker here, without bubblewrap: git-metadata (`convoke doctor`"),
            "{line}"
        );
        assert_eq!(weaker_line(&confinement(&["bubblewrap"], &["disk: it can be filled"])), None);
    }

    #[test]
    fn the_page_about_the_sandbox_names_everything_that_can_be_weaker() {
        use convoke_sandbox::{Access, Layer, LayerSet, Layers};
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sandbox.md");
        let page = std::fs::read_to_string(page).unwrap();
        let works = || Layer::works("");
        let bare = Layers { bubblewrap: works(), landlock: works(), seccomp: works(), ..Layers::default() };
        for access in [Access::ReadOnly, Access::Workspace] {
            for at_most in [None, Some(LayerSet::Landlock)] {
                for network in [convoke_sandbox::Network::Off, convoke_sandbox::Network::On] {
                    for line in convoke_sandbox::hold(&bare, access, &network, at_most).unwrap().weaker {
                        let name = line.split(':').next().unwrap();
                        assert!(page.contains(&format!("`{name}`")), "docs/sandbox.md does not name {name}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_network_is_told_in_few_words() {
        let check = |network: Network, expected: &str| {
            assert_eq!(network_words(&Confinement { network, ..confinement(&[], &[]) }), expected);
        };
        check(Network::Off, "no network");
        check(Network::On, "network open");
        check(Network::Hosts(texts(&["a.b", "c.d"])), "network a.b, c.d");
        check(Network::Hosts(texts(&["a", "b", "c", "d", "e"])), "network a, b, c and 2 more");
        let off = Confinement { sandbox: Sandbox::Off, ..confinement(&[], &[]) };
        assert_eq!(network_words(&off), "network open");
    }
}
