//! A rule turned off.
