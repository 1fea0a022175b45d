//! How full a kernel can make a multiprocessor: Kineto's estimates.
//!
//! Follows from the launch and the device alone. The limits are those of cuda_occupancy.h
//! (CUDA Toolkit), for devices from compute capability 5.0 on. Only for kernels with more
//! shared memory than a block has without asking for it (48 KiB) is this not Kineto's
//! number: Kineto does not know that they asked, takes it that they cannot run, and says 0.

use kymograph_protos::device::LaunchSlot;

use super::device::Limits;

/// See the module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Estimate {
    pub(crate) blocks_per_multiprocessor: f64,
    pub(crate) warps_per_multiprocessor: f64,
    pub(crate) percent: i64,
}

pub(crate) fn estimate(limits: &Limits, launch: &LaunchSlot, dynamic: u32) -> Estimate {
    let product = |size: [u32; 3]| size.iter().map(|n| f64::from(*n)).product::<f64>();
    let (blocks, threads) = (product(launch.grid), product(launch.block));
    let per_sm = blocks / f64::from(limits.multiprocessors);
    let active = f64::from(active_blocks(limits, launch, dynamic));
    let share = active.min(per_sm) * threads / f64::from(limits.threads);
    Estimate {
        blocks_per_multiprocessor: per_sm,
        warps_per_multiprocessor: per_sm * threads / f64::from(limits.warp.max(1)),
        percent: if share.is_finite() { (share * 100.0).round() as i64 } else { 0 },
    }
}

/// Blocks that fit on a multiprocessor at once: the least of four limits.
fn active_blocks(limits: &Limits, launch: &LaunchSlot, dynamic: u32) -> u32 {
    let threads = launch.block.iter().fold(1_u64, |n, m| n.saturating_mul(u64::from(*m)));
    let warp = u64::from(limits.warp.max(1));
    let warps = threads.div_ceil(warp).max(1);
    let by_warps = u64::from(limits.threads) / warp / warps;
    let by_registers = by_registers(limits, launch.registers, warp, warps);
    let shared = u64::from(launch.shared) + u64::from(dynamic) + u64::from(limits.shared_reserved);
    let shared = round_up(shared, if limits.capability.0 >= 8 { 128 } else { 256 });
    let by_shared = u64::from(limits.shared).checked_div(shared).unwrap_or(u64::MAX);
    let by_blocks = u64::from(if limits.blocks == 0 { 32 } else { limits.blocks });
    by_warps.min(by_registers).min(by_shared).min(by_blocks) as u32
}

/// Registers are given to warps in portions, and warps to the four parts of a
/// multiprocessor (two on 6.0).
fn by_registers(limits: &Limits, registers: u32, warp: u64, warps: u64) -> u64 {
    if registers == 0 {
        return u64::MAX;
    }
    let per_warp = round_up(u64::from(registers) * warp, 256);
    let parts = if limits.capability == (6, 0) { 2 } else { 4 };
    if per_warp * round_up(warps, parts) > u64::from(limits.registers_per_block) {
        return 0;
    }
    u64::from(limits.registers) / parts / per_warp * parts / warps
}

fn round_up(value: u64, to: u64) -> u64 {
    value.div_ceil(to) * to
}

#[cfg(test)]
mod tests;
