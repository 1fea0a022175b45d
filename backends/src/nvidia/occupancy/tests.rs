use super::*;

const H200: Limits = Limits {
    capability: (9, 0),
    multiprocessors: 132,
    warp: 32,
    threads_per_block: 1024,
    threads: 2048,
    blocks: 32,
    registers: 65536,
    registers_per_block: 65536,
    shared: 233_472,
    shared_per_block: 49152,
    shared_per_block_optin: 232_448,
    shared_reserved: 1024,
};
const A100: Limits = Limits {
    capability: (8, 0),
    multiprocessors: 108,
    shared: 167_936,
    shared_per_block_optin: 166_912,
    ..H200
};
const V100: Limits = Limits {
    capability: (7, 0),
    multiprocessors: 80,
    shared: 98304,
    shared_per_block_optin: 98304,
    shared_reserved: 0,
    ..H200
};

/// The device, grid, block, registers per thread and bytes of shared memory of a kernel, and
/// what Kineto said of it: blocks and warps per multiprocessor, per cent.
type Row = (Limits, [u32; 3], [u32; 3], u32, u32, f64, f64, i64);

/// Kernels of PyTorch programs (GPT, ResNet, a vision model), from traces that Kineto wrote on
/// these devices.
#[rustfmt::skip]
const KINETO: &[Row] = &[
    (H200, [1, 1, 1], [128, 1, 1], 16, 0, 0.007576, 0.030303, 0),
    (H200, [64, 1, 1], [128, 1, 1], 18, 0, 0.484848, 1.939394, 3),
    (H200, [4, 32, 1], [32, 4, 1], 54, 2064, 0.969697, 3.878788, 6),
    (H200, [16, 12, 1], [128, 1, 1], 255, 33792, 1.454545, 5.818182, 9),
    (H200, [24, 1, 5], [256, 1, 1], 202, 49152, 0.909091, 7.272727, 11),
    (H200, [2, 8, 16], [32, 4, 1], 168, 36352, 1.939394, 7.757576, 12),
    (H200, [16, 64, 1], [128, 1, 1], 255, 33792, 7.757576, 31.030304, 13),
    (H200, [12, 32, 1], [32, 4, 1], 54, 2064, 2.909091, 11.636364, 18),
    (H200, [16, 32, 1], [32, 4, 1], 54, 2064, 3.878788, 15.515152, 24),
    (H200, [145, 1, 1], [512, 1, 1], 27, 0, 1.098485, 17.575758, 27),
    (H200, [178, 1, 1], [512, 1, 1], 32, 0, 1.348485, 21.575758, 34),
    (H200, [2, 8, 16], [128, 1, 1], 232, 53504, 1.939394, 7.757576, 0),
    (A100, [1, 1, 1], [128, 1, 1], 16, 0, 0.009259, 0.037037, 0),
    (A100, [1, 1, 32], [128, 1, 1], 90, 49152, 0.296296, 1.185185, 2),
    (A100, [63, 1, 1], [128, 1, 1], 22, 0, 0.583333, 2.333333, 4),
    (A100, [50, 1, 1], [256, 1, 1], 16, 0, 0.462963, 3.703704, 6),
    (A100, [18, 2, 4], [128, 1, 1], 96, 17408, 1.333333, 5.333333, 8),
    (A100, [1, 2, 64], [256, 1, 1], 32, 4224, 1.185185, 9.481482, 15),
    (A100, [288, 1, 1], [128, 1, 1], 16, 0, 2.666667, 10.666667, 17),
    (A100, [4, 106, 1], [128, 1, 1], 30, 0, 3.925926, 15.703704, 25),
    (A100, [155, 1, 1], [512, 1, 1], 32, 0, 1.435185, 22.962963, 36),
    (A100, [64, 8, 1], [256, 1, 1], 57, 16384, 4.740741, 37.925926, 50),
    (A100, [282, 1, 1], [512, 1, 1], 32, 0, 2.611111, 41.777779, 65),
    (A100, [1568, 2, 1], [128, 1, 1], 184, 73728, 29.037037, 116.148148, 0),
    (V100, [1, 1, 1], [128, 1, 1], 16, 0, 0.0125, 0.05, 0),
    (V100, [2, 8, 1], [32, 8, 1], 61, 9216, 0.2, 1.6, 3),
    (V100, [2, 2, 36], [64, 1, 1], 126, 8192, 1.8, 3.6, 6),
    (V100, [1, 2, 36], [256, 1, 1], 57, 16384, 0.9, 7.2, 11),
    (V100, [9, 2, 28], [128, 1, 1], 160, 32768, 6.3, 25.200001, 19),
    (V100, [4, 2, 64], [8, 32, 1], 120, 10496, 6.4, 51.200001, 25),
    (V100, [1, 1, 224], [8, 32, 1], 77, 6400, 2.8, 22.4, 35),
    (V100, [155, 1, 1], [512, 1, 1], 32, 0, 1.9375, 31.0, 48),
    (V100, [2, 256, 1], [256, 1, 1], 48, 16640, 6.4, 51.200001, 63),
    (V100, [282, 1, 1], [512, 1, 1], 32, 0, 3.525, 56.400002, 88),
];

#[test]
fn it_is_what_kineto_says() {
    for (limits, grid, block, registers, shared, blocks, warps, percent) in KINETO {
        let launch = LaunchSlot { grid: *grid, block: *block, registers: *registers, shared: 0 };
        let found = estimate(limits, &launch, *shared);
        let same = |a: f64, b: f64| (a - b).abs() <= 2e-6 * b.abs().max(1.0);
        assert!(same(found.blocks_per_multiprocessor, *blocks), "{found:?}, not {blocks} blocks");
        assert!(same(found.warps_per_multiprocessor, *warps), "{found:?}, not {warps} warps");
        if *shared <= limits.shared_per_block {
            assert_eq!(found.percent, *percent, "{grid:?} {block:?} {registers} {shared}");
        } else {
            assert!(*percent == 0 && found.percent > 0, "{found:?}: it ran");
        }
    }
}

fn percent(grid: u32, block: u32, registers: u32, shared: u32) -> i64 {
    let launch = LaunchSlot { grid: [grid, 1, 1], block: [block, 1, 1], registers, shared };
    estimate(&H200, &launch, 0).percent
}

#[test]
fn the_scarcest_resource_decides() {
    assert_eq!(percent(132 * 64, 256, 32, 0), 100);
    assert_eq!(percent(132 * 64, 256, 64, 0), 50);
    assert_eq!(percent(132 * 64, 32, 16, 0), 50);
    assert_eq!(percent(132 * 64, 1024, 32, 100_000), 100);
    assert_eq!(percent(132 * 64, 1024, 32, 200_000), 50);
    // Fewer blocks than multiprocessors.
    assert_eq!(percent(66, 1024, 32, 0), 25);
}
