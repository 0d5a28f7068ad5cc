//! Members that come and go, on real clusters: Scale, Replace, newcomers that fail, agents that are killed or frozen, and
//! others who change what a run is about.

mod frozen;
mod held;
mod killed;
mod others;
mod refused;
mod replace;
mod scale;
mod secured;
mod taken_back;
mod wrong_place;
