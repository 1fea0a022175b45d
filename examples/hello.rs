//! The shortest program that records itself: `cargo run --example hello -- hello.pftrace`,
//! then open the file in <https://ui.perfetto.dev>.

use kymograph::{Config, Recording, scope};

fn main() -> Result<(), kymograph::Error> {
    let path = std::env::args().nth(1).unwrap_or("hello.pftrace".into());
    let _recording = Recording::start(Config::to_file(path))?;
    let _scope = scope!("greet");
    for n in 0..3 {
        let _scope = scope!("print", n = n);
        println!("hello {n}");
    }
    Ok(())
}
