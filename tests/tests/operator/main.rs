//! What only people meet: a playbook from a live cluster, the question at a terminal, the status of a downgrade.

mod abandon;
mod alone;
mod backup;
mod busy;
mod downgrade;
mod guard;
mod init;
mod pause;
mod question;
mod restore;
mod roles;
mod terminal;
mod verify;
