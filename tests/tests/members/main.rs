//! Members that come and go, on real clusters: Scale, Replace, newcomers that fail, agents that are killed.

mod held;
mod killed;
mod refused;
mod replace;
mod scale;
mod taken_back;
