//! What only people meet: the question at a terminal, the status of a downgrade.

mod downgrade;
mod question;
mod terminal;
