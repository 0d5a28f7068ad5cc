//! A server's own features: on or off by its flags alone (etcd, `featuregate`).

use super::{Features, Level, Overrides, Registry, Stage};

/// Stand for all features of a stage.
pub const ALL: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

impl Registry {
    /// What is on of a server's own features, where its flags say this: by name, else for the whole stage, else the default.
    pub fn of_server(self, said: &Overrides) -> Features {
        let said_of = |name: &str| said.0.get(name).copied();
        let own = self.iter().filter(|(feature, _)| feature.level == Level::Server);
        own.map(|(feature, spec)| {
            let all = ALL.iter().find(|(_, stage)| *stage == spec.stage).and_then(|(all, _)| said_of(all));
            (feature.name.to_owned(), said_of(feature.name).or(all).unwrap_or(spec.default))
        })
        .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::features::{Feature, Spec};
    use proto::ClusterVersion;

    use super::*;

    const fn spec(stage: Stage, default: bool) -> Spec {
        Spec { since: ClusterVersion { major: 3, minor: 6 }, patch: 0, default, stage, is_locked: false }
    }

    const HISTORY: &[Feature] = &[
        Feature { name: "A", level: Level::Server, specs: &[spec(Stage::Alpha, false)] },
        Feature { name: "B", level: Level::Server, specs: &[spec(Stage::Beta, true)] },
        Feature { name: "C", level: Level::Cluster, specs: &[spec(Stage::Beta, true)] },
    ];

    #[test]
    fn a_server_s_feature_is_what_its_flags_say_by_name_by_stage_or_not() {
        for (said, a, b) in [
            (&[][..], false, true),
            (&[("A", true), ("B", false)], true, false),
            (&[("AllAlpha", true)], true, true),
            (&[("AllAlpha", true), ("A", false)], false, true), // the name comes first
            (&[("AllBeta", false)], false, false),
            (&[("AllBeta", false), ("B", true)], false, true),
        ] {
            let overrides = Overrides(said.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect());
            let found = Registry::over(HISTORY, &"3.6.0".parse().unwrap()).of_server(&overrides);
            assert_eq!((found.get("A"), found.get("B"), found.get("C")), (Some(a), Some(b), None), "{said:?}");
            // Below, nothing is known, and nothing on.
            let older = Registry::over(HISTORY, &"3.5.0".parse().unwrap()).of_server(&overrides);
            assert_eq!(older, Features::default());
        }
    }
}
