//! The verbs: what each does with the rooms behind it. Wiring only; no rule of a rollout is decided here.

pub mod intent;
pub mod run;
