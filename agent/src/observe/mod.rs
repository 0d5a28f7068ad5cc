//! Looking at the cluster: everything the planner knows comes from here.

pub mod view;
