//! What happens, told while it happens: to a terminal, or in lines.

pub mod colour;
pub mod display;
pub mod pipe;
pub mod progress;
pub mod reporter;
pub mod text;

#[cfg(test)]
mod reporter_test;
