//! The `thruway` program: what the command line says, done.

fn main() {}
