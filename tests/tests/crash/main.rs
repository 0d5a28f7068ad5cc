//! The agent dies, in every way and at every moment, and the same command finishes the job.
//!
//! The shipped agent is killed, frozen and starved from outside. Whatever happens to it, clients lose
//! nothing and an observer never sees two members down by its hand.

mod boundary;
mod frozen;
mod full;
mod going_back;
mod lost;
mod mounted;
mod power;
mod quorum;
mod record;
mod rollout;
mod signals;
mod supervisor;
mod torn;
