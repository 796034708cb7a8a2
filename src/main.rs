//! The command line.
fn main() {
    env_logger::init();
    let path = std::env::args().nth(1).unwrap();
    let config = thruway::config::load(std::path::Path::new(&path)).unwrap();
    if let Err(e) = thruway::runtime::run(config) {
        eprintln!("thruway: {e}");
        std::process::exit(1)
    }
}
