//! What is in a `.gz` or `.zst` decompresses to all batches so far, at every moment.

use harness::alone;
use kymograph::config::Config;
use kymograph::sink;
use std::io::Read;

fn batch(i: u32) -> Vec<u8> {
    format!("batch {i} ").repeat(1 + i as usize * 100).into_bytes()
}

#[test]
fn a_compressed_trace_is_whole_after_every_flush() {
    alone!();
    type Decompress = fn(&[u8]) -> Vec<u8>;
    let gunzip: Decompress = |bytes| {
        let mut out = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    };
    let unzstd: Decompress = |bytes| zstd::stream::decode_all(bytes).unwrap();
    let cases = [("t.pftrace.gz", "", gunzip), ("t.pftrace.zst", "", unzstd)];
    let chosen = [("gz", "gzip", gunzip), ("zst", "zstd", unzstd)];
    let folder = tempfile::tempdir().unwrap();
    for (name, compress, decompress) in cases.into_iter().chain(chosen) {
        let path = folder.path().join(name);
        let mut config = Config::default();
        config.set("OUTPUT", &path).unwrap();
        config.set("COMPRESS", compress).unwrap();
        let mut sink = sink::open(&config).unwrap();
        let mut all = Vec::new();
        for i in 0..20 {
            sink.write(&batch(i)).unwrap();
            sink.write(b"").unwrap();
            all.extend(batch(i));
            let file = std::fs::read(&path).unwrap();
            assert!(decompress(&file) == all, "{name} after batch {i}");
        }
        sink.finish().unwrap();
        assert!(path.metadata().unwrap().len() < all.len() as u64 / 10);
    }
}
