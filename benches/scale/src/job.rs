//! How the ranks of a job are arranged, and what is wrong with some of them.
//!
//! Ranks of a host are one process group (`host`), and so are the ranks of one number on all hosts
//! (`rail`): the network card of each number is on a switch of its own.

use serde_json::{Value, json};

/// Pseudo-random numbers: splitmix64.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence for a few numbers that say what it is for.
    pub fn of(keys: &[u64]) -> Random {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for key in keys {
            random.0 ^= *key;
            random.0 = random.next();
        }
        random
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `from..to`.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// The kernels of a rank take so many times as long.
    Gpu {
        /// The rank.
        rank: usize,
        /// How many times as long.
        factor: f64,
    },
    /// What the processors of a host do takes so many times as long.
    Host {
        /// The number of the host.
        host: usize,
        /// How many times as long.
        factor: f64,
    },
    /// Collectives over a rail take so many times as long.
    Link {
        /// The number of the rail.
        rail: usize,
        /// How many times as long.
        factor: f64,
    },
    /// The data loader of a rank stalls in one step.
    DataLoader {
        /// The rank.
        rank: usize,
        /// The number of the step, counted from 0.
        step: usize,
        /// How much longer than a usual step, as a part of that.
        factor: f64,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Job {
    /// How many ranks there are.
    pub ranks: usize,
    /// How many steps.
    pub steps: usize,
    /// What all random numbers come from.
    pub seed: u64,
    /// How many ranks a host has.
    pub per_host: usize,
    /// How often a step repeats the template.
    pub repeat: usize,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// How far the clock of each host is ahead, in nanoseconds.
    pub clocks: Vec<i64>,
}

/// The number of the first step.
pub const FIRST_STEP: usize = 10;

impl Job {
    /// A job with faults that follow from the seed: each kind is there in two of three jobs.
    pub fn new(ranks: usize, steps: usize, seed: u64, per_host: usize, repeat: usize) -> Job {
        let per_host = per_host.clamp(1, ranks.max(1));
        let hosts = ranks.div_ceil(per_host);
        let mut random = Random::of(&[seed, 1]);
        // Each fault is on a host of its own, so that each has one truth.
        let mut free: Vec<usize> = (0..hosts).collect();
        let mut own = |random: &mut Random| {
            let at = (!free.is_empty()).then(|| random.below(free.len()))?;
            Some(free.swap_remove(at))
        };
        let mut faults = Vec::new();
        let planted = |random: &mut Random| random.below(3) > 0;
        let rank = |random: &mut Random, host: usize| {
            (host * per_host + random.below(per_host)).min(ranks - 1)
        };
        if planted(&mut random)
            && let Some(host) = own(&mut random)
        {
            let (rank, factor) = (rank(&mut random, host), random.between(1.3, 1.6));
            faults.push(Fault::Gpu { rank, factor });
        }
        if planted(&mut random)
            && let Some(host) = own(&mut random)
        {
            faults.push(Fault::Host { host, factor: random.between(1.8, 2.5) });
        }
        if planted(&mut random) && hosts > 1 && per_host > 2 {
            let (rail, factor) = (random.below(per_host), random.between(2.0, 4.0));
            faults.push(Fault::Link { rail, factor });
        }
        if planted(&mut random)
            && let Some(host) = own(&mut random)
        {
            let (rank, step) = (rank(&mut random, host), random.below(steps.max(1)));
            let factor = random.between(0.3, 0.8);
            faults.push(Fault::DataLoader { rank, step, factor });
        }
        let wrong = planted(&mut random);
        let clock = |host: usize| match host {
            0 => 0,
            _ if wrong && random.below(3) == 0 => {
                let ahead = random.between(1e5, 5e6) as i64;
                if random.below(2) == 0 { ahead } else { -ahead }
            }
            _ => random.between(-2e3, 2e3) as i64,
        };
        let clocks = (0..hosts).map(clock).collect();
        Job { ranks, steps, seed, per_host, repeat: repeat.max(1), faults, clocks }
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> usize {
        rank / self.per_host
    }

    /// The number of a rank on its host, which is that of its rail.
    pub fn rail(&self, rank: usize) -> usize {
        rank % self.per_host
    }

    /// The process groups: the hosts, then the rails.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let hosts = self.clocks.len();
        let mut groups = vec![Vec::new(); hosts + self.per_host];
        for rank in 0..self.ranks {
            groups[self.host(rank)].push(rank);
            groups[hosts + self.rail(rank)].push(rank);
        }
        groups
    }

    /// The process group of a rank for collectives over a rail, or for those within a host.
    pub fn group(&self, rank: usize, over_rail: bool) -> usize {
        if over_rail { self.clocks.len() + self.rail(rank) } else { self.host(rank) }
    }

    /// How many times as long kernels of a rank take.
    pub fn gpu_factor(&self, rank: usize) -> f64 {
        let of = |fault: &Fault| match fault {
            Fault::Gpu { rank: slow, factor } if *slow == rank => Some(*factor),
            _ => None,
        };
        self.faults.iter().find_map(of).unwrap_or(1.0)
    }

    /// How many times as long the host of a rank takes.
    pub fn host_factor(&self, rank: usize) -> f64 {
        let of = |fault: &Fault| match fault {
            Fault::Host { host, factor } if *host == self.host(rank) => Some(*factor),
            _ => None,
        };
        self.faults.iter().find_map(of).unwrap_or(1.0)
    }

    /// How many times as long data of a group takes to move.
    pub fn link_factor(&self, group: usize) -> f64 {
        let of = |fault: &Fault| match fault {
            Fault::Link { rail, factor } if self.clocks.len() + *rail == group => Some(*factor),
            _ => None,
        };
        self.faults.iter().find_map(of).unwrap_or(1.0)
    }

    /// How long the data loader of a rank stalls in a step, as a part of a usual step.
    pub fn stall(&self, rank: usize, step: usize) -> f64 {
        let of = |fault: &Fault| match fault {
            Fault::DataLoader { rank: slow, step: at, factor } if (*slow, *at) == (rank, step) => {
                Some(*factor)
            }
            _ => None,
        };
        self.faults.iter().find_map(of).unwrap_or(0.0)
    }

    /// The name of a host.
    pub fn host_name(host: usize) -> String {
        format!("host{host:04}")
    }

    /// What is wrong, for those who look for it.
    pub fn truth(&self) -> Value {
        let fault = |fault: &Fault| match fault {
            Fault::Gpu { rank, factor } => json!({"kind": "gpu", "rank": rank, "factor": factor}),
            Fault::Host { host, factor } => {
                json!({"kind": "host", "host": Job::host_name(*host), "factor": factor})
            }
            Fault::Link { rail, factor } => {
                json!({"kind": "link", "group": format!("rail{rail}"), "factor": factor})
            }
            Fault::DataLoader { rank, step, factor } => json!({
                "kind": "data_loader", "rank": rank, "step": FIRST_STEP + step, "factor": factor,
            }),
        };
        let clocks = self.clocks.iter().enumerate();
        let clocks: serde_json::Map<String, Value> =
            clocks.map(|(host, ahead)| (Job::host_name(host), json!(ahead))).collect();
        json!({
            "ranks": self.ranks,
            "steps": self.steps,
            "seed": self.seed,
            "ranks_per_host": self.per_host,
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
            "clock_offsets_ns": clocks,
        })
    }

    /// The host and the switch of each rank, as CSV.
    pub fn labels(&self) -> String {
        let row =
            |rank| format!("{rank},{},rail{}\n", Job::host_name(self.host(rank)), self.rail(rank));
        "rank,host,switch\n".to_owned() + &(0..self.ranks).map(row).collect::<String>()
    }
}
