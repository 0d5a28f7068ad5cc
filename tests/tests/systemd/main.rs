//! Members that are services of systemd, on hosts that really have one: each boots, crashes and is cut off by itself.

mod examples;
mod failure;
mod fleet;
mod guard;
mod interrupted;
mod members;
mod next_start;
mod refusal;
mod run;
mod trouble;
mod upgrade;
mod watch;
