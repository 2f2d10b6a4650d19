//! What lies in a home directory, as far as commands are concerned: toolchains they need, credentials they
//! must not see. Data only, one line and one reason each. A home directory is hidden as a whole, so what is
//! not here is not seen.

/// What commands get of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Readable, with a private writable layer where the machine has overlays.
    Cache,
    /// Readable.
    Read,
    /// Never, not even where the directory around it is readable.
    Mask,
}

use Use::{Cache, Mask, Read};

/// What lies below a home directory.
pub(super) const BELOW_HOME: &[(Use, &str)] = &[
    // Rust: programs, registry and git checkouts of crates.
    (Cache, ".cargo"),
    // Tokens for publishing crates.
    (Mask, ".cargo/credentials"),
    (Mask, ".cargo/credentials.toml"),
    // Rust: compilers and their libraries.
    (Cache, ".rustup"),
    // Node: packages that were downloaded once.
    (Cache, ".npm"),
    (Cache, ".cache/yarn"),
    (Cache, ".yarn"),
    (Cache, ".local/share/pnpm"),
    // Node, Deno and Bun themselves, where a version manager put them into the home directory.
    (Cache, ".nvm"),
    (Cache, ".volta"),
    (Cache, ".deno"),
    (Cache, ".bun"),
    // Tokens for publishing packages, and registries with passwords in their addresses.
    (Mask, ".npmrc"),
    (Mask, ".yarnrc"),
    (Mask, ".yarnrc.yml"),
    // Python: downloaded packages, interpreters, virtual environments of tools.
    (Cache, ".cache/pip"),
    (Cache, ".cache/uv"),
    (Cache, ".local/share/uv"),
    // Tokens of package indexes.
    (Mask, ".local/share/uv/credentials"),
    (Cache, ".local/share/pipx"),
    (Cache, ".local/pipx"),
    (Cache, ".pyenv"),
    (Cache, ".conda"),
    (Mask, ".conda/aau_token"),
    (Mask, ".conda/aau_token_host"),
    // Passwords of package indexes.
    (Mask, ".pypirc"),
    (Mask, ".config/pip"),
    (Mask, ".pip"),
    // Go: modules, programs, and what was compiled.
    (Cache, "go"),
    (Cache, ".cache/go-build"),
    // Java: downloaded artefacts; the settings beside them hold passwords of servers.
    (Cache, ".m2/repository"),
    (Mask, ".m2/settings.xml"),
    (Mask, ".m2/settings-security.xml"),
    (Cache, ".gradle/caches"),
    (Cache, ".gradle/wrapper"),
    (Mask, ".gradle/gradle.properties"),
    (Cache, ".sdkman"),
    // Ruby, Haskell, OCaml, .NET, Dart, and managers of many languages.
    (Cache, ".rbenv"),
    (Cache, ".gem"),
    (Mask, ".gem/credentials"),
    (Cache, ".ghcup"),
    (Cache, ".cabal"),
    // User name and password for publishing packages.
    (Mask, ".cabal/config"),
    (Cache, ".opam"),
    (Cache, ".nuget/packages"),
    (Cache, ".dotnet"),
    // Private keys of certificates.
    (Mask, ".dotnet/corefx/cryptography/x509stores"),
    (Cache, ".pub-cache"),
    (Mask, ".pub-cache/credentials.json"),
    (Cache, ".asdf"),
    (Cache, ".local/share/mise"),
    // What a compiler cache keeps.
    (Cache, ".cache/ccache"),
    (Cache, ".ccache"),
    (Cache, ".cache/sccache"),
    // Programs and libraries that the user installed for themselves.
    (Read, ".local/bin"),
    (Read, ".local/lib"),
    // What git passes over. The name for commits stands in settings in the private home, because those of a
    // person can hold tokens.
    (Read, ".config/git/ignore"),
    (Read, ".config/git/attributes"),
    (Mask, ".gitconfig"),
    (Mask, ".config/git/config"),
    (Mask, ".config/git/credentials"),
    (Mask, ".git-credentials"),
    // Keys and tokens. They are hidden with the home directory; this holds where that itself is worked in.
    (Mask, ".ssh"),
    (Mask, ".gnupg"),
    (Mask, ".netrc"),
    (Mask, ".aws"),
    (Mask, ".azure"),
    (Mask, ".kube"),
    (Mask, ".docker"),
    (Mask, ".config/gcloud"),
    (Mask, ".config/gh"),
    (Mask, ".config/hub"),
    (Mask, ".config/convoke"),
    (Mask, ".local/share/keyrings"),
    (Mask, ".password-store"),
    (Mask, ".pgpass"),
    (Mask, ".my.cnf"),
    (Mask, ".vault-token"),
    (Mask, ".terraform.d/credentials.tfrc.json"),
    (Mask, ".claude"),
    (Mask, ".claude.json"),
    (Mask, ".bash_history"),
    (Mask, ".zsh_history"),
    (Mask, ".mozilla"),
    (Mask, ".config/google-chrome"),
    (Mask, ".config/chromium"),
];

/// Variables that name toolchain directories, what commands get of those, and what in them is masked.
pub(super) const NAMED: &[(&str, Use, &[&str])] = &[
    ("CARGO_HOME", Cache, &["credentials", "credentials.toml"]),
    ("RUSTUP_HOME", Cache, &[]),
    // Compiled things are kept there, and tests must be able to write it.
    ("CARGO_TARGET_DIR", Cache, &[]),
    ("GOPATH", Cache, &[]),
    ("GOMODCACHE", Cache, &[]),
    ("GOCACHE", Cache, &[]),
    ("PYENV_ROOT", Cache, &[]),
    ("NVM_DIR", Cache, &[".npmrc"]),
    // Installations that are only used.
    ("GOROOT", Read, &[]),
    ("JAVA_HOME", Read, &[]),
    ("NODE_PATH", Read, &[]),
    ("VIRTUAL_ENV", Read, &[]),
    ("CONDA_PREFIX", Read, &[]),
    ("PYTHONPATH", Read, &[]),
];

/// Every variable that is looked at.
pub const VARIABLES: &[&str] = &[
    "HOME",
    "PATH",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "GOMODCACHE",
    "GOCACHE",
    "PYENV_ROOT",
    "NVM_DIR",
    "GOROOT",
    "JAVA_HOME",
    "NODE_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
];

/// Homes of other people, and where their programs listen.
pub(super) const OTHERS: &[&str] = &["/home", "/root", "/run/user"];

/// What must stay visible, and so must everything above it: nothing would run without these.
pub(super) const NEEDED: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", "/tmp", "/var/tmp", "/nix"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_variable_is_looked_at_and_no_place_stands_twice() {
        for (name, ..) in NAMED {
            assert!(VARIABLES.contains(name), "{name}");
        }
        let mut paths: Vec<&str> = BELOW_HOME.iter().map(|(_, path)| *path).collect();
        paths.sort_unstable();
        let all = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), all);
    }

    #[test]
    fn the_page_about_the_sandbox_names_every_place() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sandbox.md");
        let page = std::fs::read_to_string(page).unwrap();
        let below = BELOW_HOME.iter().map(|(_, path)| format!("`{path}`"));
        let named = NAMED.iter().map(|(name, ..)| format!("`{name}`"));
        let missing: Vec<String> = below.chain(named).filter(|word| !page.contains(word)).collect();
        assert!(missing.is_empty(), "docs/sandbox.md does not name {missing:?}");
    }
}
