//! What a matrix came to, for machines and people: JSON, JUnit XML, and a page with a grid.
//!
//! Pure: outcomes in, text out.

pub mod grid;
pub mod junit;
pub mod object;
pub mod words;
