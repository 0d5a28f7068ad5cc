//! What only people meet: the status of a downgrade.

mod downgrade;
