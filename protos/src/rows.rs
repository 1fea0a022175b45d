//! What rows are called, and in which order they stand: in a viewer, people tell by this the
//! ranks, the devices and the streams. Who reads a trace takes it back to what it was made of.
//!
//! | row | called | stands |
//! |---|---|---|
//! | process | `rank 3 · python train.py` | by rank, else as it started |
//! | thread | as it is | the main thread, those of autograd, others |
//! | device | `GPU 0 · NVIDIA H200` | by number |
//! | steps | `Steps · rank 3` | before the threads |
//! | stream | `Stream 007 default · rank 3` | by its name |
//! | ranges that a stream worked for | `Stream 007 · rank 3 · annotations` | behind the stream |
//! | beside a stream, in a group of its process | `GPU 0 synchronization` › `Stream 007 waits for events` | by stream |

/// What joins the parts of a name.
const AND: &str = " · ";

/// The order of processes and of threads: `sibling_order_rank` among all of them.
pub const ORDERED_BY_RANK: u64 = 1;

/// What a process is called: with its rank, if that is known and not said already, as in
/// traces that were merged.
pub fn process(rank: Option<i64>, name: &str) -> String {
    let says_it = |rank: &i64| name.contains(&format!("(rank {rank}"));
    match rank.filter(|rank| !says_it(rank)) {
        Some(rank) if name.is_empty() => format!("rank {rank}"),
        Some(rank) => format!("rank {rank}{AND}{name}"),
        None => name.to_owned(),
    }
}

/// What [`process`] was given as a name.
pub fn process_name(rank: i64, row: &str) -> Option<&str> {
    let (first, name) = row.split_once(AND).unwrap_or((row, ""));
    (first.strip_prefix("rank ")?.parse() == Ok(rank)).then_some(name)
}

/// What the row of a process's steps is called: it may be looked at without its process.
pub fn steps(rank: Option<i64>) -> String {
    rank.map_or("Steps".to_owned(), |rank| format!("Steps{AND}rank {rank}"))
}

/// The place of a process: by rank, and behind those that have one, by the time of its start
/// in nanoseconds.
pub fn process_rank(rank: Option<i64>, started: u64) -> i32 {
    const RANKS: i32 = 1 << 24;
    // As exact as the kernel tells it; good for half a year.
    const TICK: u64 = 10_000_000;
    match rank {
        Some(rank) => rank.clamp(0, i64::from(RANKS) - 1) as i32,
        None => i32::try_from(started / TICK).map_or(i32::MAX, |at| RANKS.saturating_add(at)),
    }
}

/// The place of a thread in its process.
pub fn thread_rank(pid: i64, tid: i64, name: &[u8]) -> i32 {
    const OTHERS: i32 = 1 << 16;
    const AUTOGRAD: &[u8] = b"pt_autograd_";
    if tid == pid {
        return 0;
    }
    let device = name.strip_prefix(AUTOGRAD).and_then(|rest| std::str::from_utf8(rest).ok());
    match device.and_then(|device| device.parse::<i32>().ok()) {
        Some(device) => 1 + device.clamp(0, OTHERS - 2),
        // As they were started, as a rule.
        None => i32::try_from(tid).map_or(i32::MAX, |tid| OTHERS.saturating_add(tid.max(0))),
    }
}

/// What a device is called.
pub fn device(number: i64, model: &str) -> String {
    if model.is_empty() { format!("GPU {number}") } else { format!("GPU {number}{AND}{model}") }
}

/// What [`device`] was given as a model.
pub fn device_model(number: i64, row: &str) -> Option<&str> {
    let rest = row.strip_prefix("GPU ")?.strip_prefix(number.to_string().as_str())?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix(AND) }
}

/// What a stream is called. Viewers sort by the letters.
pub fn stream(number: i64) -> String {
    if number < 0 { format!("Stream {number}") } else { format!("Stream {number:03}") }
}

/// What a queue is called, with what tells it from those of other processes.
pub fn queue(name: &str, of: &str) -> String {
    let name = padded(name).unwrap_or_else(|| name.to_owned());
    if of.is_empty() { name } else { format!("{name}{AND}{of}") }
}

/// What the row beside a [`queue`] is called that shows the ranges which it worked for.
pub fn annotations(queue: &str) -> String {
    // Viewers sort by the letters: without what tells the default stream, as with it, the row
    // comes behind that of the stream.
    let stream = queue.replacen(" default", "", 1);
    let queue = if queue.starts_with("Stream ") { &stream } else { queue };
    if queue.is_empty() { "annotations".to_owned() } else { format!("{queue}{AND}annotations") }
}

/// A name that begins like a stream's, with its number in three digits.
fn padded(name: &str) -> Option<String> {
    let rest = name.strip_prefix("Stream ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number: i64 = rest[..end].parse().ok()?;
    Some(stream(number) + &rest[end..])
}

/// What a row tells about a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Of {
    /// The program's ranges, where the stream worked for them.
    Annotations,
    /// Threads that wait for it.
    Sync,
    /// What it waits for; of a whole device, threads that wait for it.
    Waits,
}

/// A row of the host that tells about a stream, or, with -1, about a whole device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Beside {
    /// The device.
    pub device: i64,
    /// The stream.
    pub stream: i64,
    /// What it tells.
    pub of: Of,
}

impl Beside {
    /// By what the row is called in records and in the hub: `GPU 0 stream 07 waits`.
    pub fn named(name: &str) -> Option<Beside> {
        let (device, rest) = name.strip_prefix("GPU ")?.split_once(' ')?;
        let device = device.parse().ok()?;
        let of = |what| match what {
            "annotations" => Some(Of::Annotations),
            "sync" => Some(Of::Sync),
            "waits" => Some(Of::Waits),
            _ => None,
        };
        if let Some(of) = of(rest) {
            return (of != Of::Sync).then_some(Beside { device, stream: -1, of });
        }
        let (stream, what) = rest.strip_prefix("stream ")?.split_once(' ')?;
        Some(Beside { device, stream: stream.parse().ok()?, of: of(what)? })
    }

    /// The same name.
    pub fn name(&self) -> String {
        let Beside { device, stream, of } = *self;
        let what = match of {
            Of::Annotations => "annotations",
            Of::Sync => "sync",
            Of::Waits => "waits",
        };
        match stream {
            -1 => format!("GPU {device} {what}"),
            stream => format!("GPU {device} stream {stream:02} {what}"),
        }
    }

    /// The group in which viewers show it, which they fold.
    pub fn group(&self) -> String {
        match self.of {
            Of::Annotations => format!("GPU {} annotations", self.device),
            Of::Sync | Of::Waits => format!("GPU {} synchronization", self.device),
        }
    }

    /// What it is called in that group.
    pub fn row(&self) -> String {
        match (self.of, self.stream) {
            (Of::Annotations, -1) => "GPU".to_owned(),
            (Of::Annotations, number) => stream(number),
            (_, -1) => "CPU waits for GPU".to_owned(),
            (Of::Sync, number) => format!("CPU waits for {}", stream(number).to_lowercase()),
            (Of::Waits, number) => format!("{} waits for events", stream(number)),
        }
    }

    /// By its group and what it is called in that.
    pub fn in_group(group: &str, row: &str) -> Option<Beside> {
        let (device, what) = group.strip_prefix("GPU ")?.split_once(' ')?;
        let device = device.parse().ok()?;
        let number = |text: &str| text.parse::<i64>().ok();
        let (stream, of) = match what {
            "annotations" if row == "GPU" => (-1, Of::Annotations),
            "annotations" => (number(row.strip_prefix("Stream ")?)?, Of::Annotations),
            "synchronization" if row == "CPU waits for GPU" => (-1, Of::Waits),
            "synchronization" => match row.strip_prefix("CPU waits for stream ") {
                Some(stream) => (number(stream)?, Of::Sync),
                None => {
                    let row = row.strip_prefix("Stream ")?.strip_suffix(" waits for events")?;
                    (number(row)?, Of::Waits)
                }
            },
            _ => return None,
        };
        Some(Beside { device, stream, of })
    }

    /// Its place in the group: by stream, a whole device first.
    pub fn rank(&self) -> i32 {
        let stream = i32::try_from(self.stream).unwrap_or(i32::MAX / 2 - 1).max(-1);
        (stream + 1).saturating_mul(2).saturating_add(i32::from(self.of == Of::Waits))
    }

    /// The place of its group among the rows of the process: behind those of others.
    pub fn group_rank(&self) -> i32 {
        let device = i32::try_from(self.device).unwrap_or(0).clamp(0, 1 << 16);
        1000 + 2 * device + i32::from(self.of != Of::Annotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_what_they_were_made_of() {
        assert_eq!(process(Some(3), "python a · b"), "rank 3 · python a · b");
        assert_eq!(process_name(3, "rank 3 · python a · b"), Some("python a · b"));
        assert_eq!(process_name(2, "rank 3 · python"), None);
        assert_eq!(process_name(2, "python"), None);
        assert_eq!(process_name(3, &process(Some(3), "")), Some(""));
        assert_eq!(device_model(0, &device(0, "NVIDIA H200")), Some("NVIDIA H200"));
        assert_eq!(device_model(1, &device(1, "")), Some(""));
        assert_eq!(device_model(1, "GPU 11"), None);
        assert_eq!(device_model(0, "NVIDIA H200"), None);
        for of in [Of::Annotations, Of::Sync, Of::Waits] {
            for stream in [-1, 0, 7, 20, 1234] {
                let row = Beside { device: 2, stream, of };
                if (of, stream) != (Of::Sync, -1) {
                    assert_eq!(Beside::named(&row.name()), Some(row));
                    assert_eq!(Beside::in_group(&row.group(), &row.row()), Some(row));
                }
            }
        }
        assert_eq!(Beside::named("GPU 0 Memory"), None);
        assert_eq!(Beside::named("GPU 0 sync"), None);
    }

    #[test]
    fn numbers_sort_as_letters() {
        assert_eq!(queue("Stream 07 default", "rank 3"), "Stream 007 default · rank 3");
        assert_eq!(queue("Stream 1234", ""), "Stream 1234");
        assert_eq!(queue("Queue 3", ""), "Queue 3");
        assert_eq!(queue("Stream x", "pid 7"), "Stream x · pid 7");
        let rows = ["Stream 007 default", "Stream 013", "Queue 3"].map(|name| queue(name, ""));
        let beside = rows.each_ref().map(|row| annotations(row));
        assert_eq!(
            beside,
            ["Stream 007 · annotations", "Stream 013 · annotations", "Queue 3 · annotations"]
        );
        for rank in ["", "rank 3"] {
            let row = |name| queue(name, rank).to_lowercase();
            let beside = |name| annotations(&queue(name, rank)).to_lowercase();
            let (default, other) = ("Stream 007 default", "Stream 013");
            let sorted = [row(default), beside(default), row(other), beside(other)];
            assert!(sorted.is_sorted(), "{sorted:?}");
        }
    }

    #[test]
    fn ranks_come_first_and_the_main_thread() {
        assert!(process_rank(Some(7), 0) < process_rank(None, 0));
        assert!(process_rank(None, 1_000_000_000) < process_rank(None, 2_000_000_000));
        assert_eq!(process_rank(None, u64::MAX), i32::MAX);
        let threads = [(5, "a"), (9, "pt_autograd_0"), (8, "pt_autograd_1"), (6, "b"), (7, "a")];
        let ranks = threads.map(|(tid, name)| thread_rank(5, tid, name.as_bytes()));
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}
