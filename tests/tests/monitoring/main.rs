//! What is shipped for those who watch (playbooks/monitoring/): rules, dashboard and Alertmanager's part, held against a real
//! Prometheus, a real Alertmanager, and members of both systems.

mod dashboard;
mod live;
mod prometheus;
mod rules;
mod silence;
mod textfile;
