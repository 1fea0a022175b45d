//! Counters with units, and tracks with an order of their own.

use kymograph::{Config, Counter, CounterUnit, Recording, Track, instant, range};

static HEAP: Counter = Counter::new("heap").unit(CounterUnit::Bytes);
static LOAD: Counter = Counter::new("load");

fn main() -> Result<(), kymograph::Error> {
    let path = std::env::args().nth(1).unwrap_or("counters_and_tracks.pftrace".into());
    let _recording = Recording::start(Config::to_file(path))?;

    // Lower ranks come first, whenever a track is first used.
    let game = Track::new("game");
    let physics = Track::new("physics").under(&game).rank(2);
    let frames = Track::new("frames").under(&game).rank(1);

    let mut buffers: Vec<Vec<u8>> = Vec::new();
    for number in 0..5 {
        let _frame = range!(track: &frames, "frame", number = number);
        {
            let _step = range!(track: &physics, "step");
            buffers.push(vec![0; 1 << (10 + number)]);
        }
        HEAP.set(buffers.iter().map(Vec::len).sum::<usize>());
        LOAD.set(f64::from(number) / 5.0);
        instant!(track: &frames, "vsync");
    }
    Ok(())
}
