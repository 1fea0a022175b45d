//! Prints what is read of vendors' structs: see `tests/headers`.

fn main() {
    print!("{}", kymograph_backends::layouts::expected());
}
