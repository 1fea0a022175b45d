//! What `kymo demo` records: frames of the Mandelbrot set, rendered tile by tile by a few
//! threads. Real work, said with everything that the API offers.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use kymograph::{Category, Config, Counter, Error, Flow, Range, Recording, Summary, Track};
use kymograph::{instant, range, scope, set_thread_name};

static RENDER: Category = Category::new("render");
static IO: Category = Category::new("io");
static QUEUED: Counter = Counter::new("tiles queued").category(&RENDER);
static PROGRESS: Counter = Counter::new("pixels done").category(&RENDER);

const FRAMES: usize = 4;
/// Tiles per side of a frame, and pixels per side of a tile, a multiple of 4.
const TILES: usize = 4;
pub(super) const SIDE: usize = 64;
const WORKERS: usize = 3;

/// A piece of a frame on its way from the scheduler to a worker.
struct Tile {
    frame: usize,
    x: usize,
    y: usize,
    /// Pixels per side.
    side: usize,
    flow: Flow,
}

/// A piece on its way from a worker to the assembler.
struct Done {
    tile: Tile,
    pixels: Vec<u16>,
}

/// Renders and records into `config.output`.
pub(super) fn run(config: Config) -> Result<Summary, Error> {
    let recording = Recording::start(config)?;
    set_thread_name("scheduler");
    {
        let _scope = scope!("demo", frames = FRAMES, workers = WORKERS);
        render_all(SIDE);
    }
    Ok(recording.stop())
}

/// With tiles of `side` pixels: the fewer, the more there is to record for the work.
pub(super) fn render_all(side: usize) {
    let frames = Track::new("frames in flight").rank(0);
    let (work, tiles) = channel();
    let (finished, done) = channel();
    let tiles = Arc::new(Mutex::new(tiles));
    let workers: Vec<_> = (0..WORKERS)
        .map(|n| {
            let (tiles, finished) = (tiles.clone(), finished.clone());
            spawn(format!("worker {n}"), move || work_on(&tiles, &finished))
        })
        .collect();
    drop(finished);
    let (begun, running) = channel();
    let assembler = spawn("assembler".into(), move || assemble(&done, &running));
    for frame in 0..FRAMES {
        // A range: it ends on another thread, after the next one has begun.
        let range = range!(track: &frames, RENDER, "frame", number = frame);
        let _ = begun.send(range);
        schedule(frame, side, &work);
    }
    drop((work, begun));
    for thread in workers.into_iter().chain([assembler]) {
        let _ = thread.join();
    }
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        set_thread_name(&name);
        body();
    })
}

fn schedule(frame: usize, side: usize, work: &Sender<Tile>) {
    let _scope = scope!(RENDER, "schedule", frame = frame);
    for (y, x) in (0..TILES).flat_map(|y| (0..TILES).map(move |x| (y, x))) {
        let flow = Flow::new();
        let _scope = scope!(RENDER, "queue tile", x = x, y = y, flow = flow);
        QUEUED.set((frame * TILES * TILES + y * TILES + x + 1) as u64);
        let _ = work.send(Tile { frame, x, y, side, flow });
    }
}

fn work_on(tiles: &Mutex<Receiver<Tile>>, finished: &Sender<Done>) {
    loop {
        let next = tiles.lock().map(|tiles| tiles.recv());
        let Ok(Ok(tile)) = next else { return };
        let pixels = render(&tile);
        let _ = finished.send(Done { tile, pixels });
    }
}

fn render(tile: &Tile) -> Vec<u16> {
    let _scope =
        scope!(RENDER, "render tile", flow = tile.flow, frame = tile.frame, x = tile.x, y = tile.y);
    let side = tile.side;
    let zoom = 0.4f64.powi(tile.frame as i32);
    let size = (TILES * side) as f64;
    let mut pixels = Vec::with_capacity(side * side);
    for band in 0..4 {
        let _scope = scope!(RENDER, "band", rows = side / 4, first = band * side / 4);
        for row in band * side / 4..(band + 1) * side / 4 {
            pixels.extend((0..side).map(|column| {
                let x = ((tile.x * side + column) as f64 / size - 0.5) * 3.0 * zoom - 0.743;
                let y = ((tile.y * side + row) as f64 / size - 0.5) * 3.0 * zoom + 0.131;
                escape(x, y)
            }));
        }
    }
    pixels
}

/// How many steps a point of the plane takes to leave the circle of radius 2.
fn escape(x0: f64, y0: f64) -> u16 {
    let (mut x, mut y) = (0.0, 0.0);
    for step in 0..400 {
        if x * x + y * y > 4.0 {
            return step;
        }
        (x, y) = (x * x - y * y + x0, 2.0 * x * y + y0);
    }
    400
}

fn assemble(done: &Receiver<Done>, running: &Receiver<Range>) {
    let mut frames: Vec<Option<Range>> = Vec::new();
    let mut tiles_left = [TILES * TILES; FRAMES];
    let mut pixels = 0u64;
    for Done { tile, pixels: tile_pixels } in done {
        frames.extend(running.try_iter().map(Some));
        let _scope = scope!(IO, "assemble tile", flow = tile.flow.end(), frame = tile.frame);
        let checksum =
            tile_pixels.iter().fold(7u64, |sum, p| sum.wrapping_mul(31).wrapping_add((*p).into()));
        pixels += tile_pixels.len() as u64;
        PROGRESS.set(pixels);
        tiles_left[tile.frame] -= 1;
        if tiles_left[tile.frame] == 0 {
            instant!(IO, "frame complete", frame = tile.frame, checksum = checksum);
            if let Some(range) = frames.get_mut(tile.frame).and_then(Option::take) {
                range.end();
            }
        }
    }
}
