//! Asks trace_processor about a trace: `query_trace FILE [SQL]`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let trace = oracle::Trace::open(args.next().ok_or("FILE")?);
    match args.next() {
        Some(sql) => println!("{}", trace.table(&sql)),
        None => trace.assert_clean(),
    }
    Ok(())
}
