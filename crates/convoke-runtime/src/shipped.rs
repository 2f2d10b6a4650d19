//! The workflows that come with Convoke, as pairs of a name and a source. Data alone.

/// Every shipped workflow. A project or a person may have one of the same name, which is then nearer.
pub const WORKFLOWS: &[(&str, &str)] = &[
    ("audit", include_str!("../workflows/audit.js")),
    ("migrate", include_str!("../workflows/migrate.js")),
    ("review", include_str!("../workflows/review.js")),
];
