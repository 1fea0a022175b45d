//! What devices can do at most, as their makers say: dense, without sparsity.
//!
//! The numbers are those of data sheets, at boost clocks. Real programs reach 60 to 80 % of them.

/// What a device can do at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peaks {
    /// What its name contains.
    pub name: &'static str,
    /// Operations per second, in units of 10¹²: of doubles, of floats, of floats in matrices
    /// (TF32), of halves in matrices, of eight bits in matrices; 0 where it has none.
    pub tera: [f64; 5],
    /// Bytes of memory per second, in units of 10⁹.
    pub bandwidth: f64,
}

/// The numbers that a kernel works with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Precision {
    /// 64 bits.
    Double,
    /// 32 bits.
    Float,
    /// 32 bits, multiplied with fewer in matrix units.
    Tf32,
    /// 16 bits, in matrix units.
    Half,
    /// 8 bits, in matrix units.
    Byte,
}

impl Precision {
    /// What tables say.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Double => "fp64",
            Precision::Float => "fp32",
            Precision::Tf32 => "tf32",
            Precision::Half => "fp16",
            Precision::Byte => "fp8",
        }
    }
}

const fn device(name: &'static str, tera: [f64; 5], bandwidth: f64) -> Peaks {
    Peaks { name, tera, bandwidth }
}

/// The first whose name is in a device's counts.
const DEVICES: [Peaks; 35] = [
    device("GB200", [40.0, 80.0, 1250.0, 2500.0, 5000.0], 8000.0),
    device("B200", [37.0, 75.0, 1125.0, 2250.0, 4500.0], 7700.0),
    device("B300", [1.3, 75.0, 1125.0, 2250.0, 4500.0], 8000.0),
    device("GH200", [34.0, 67.0, 494.7, 989.4, 1978.9], 4000.0),
    device("H200", [34.0, 67.0, 494.7, 989.4, 1978.9], 4800.0),
    device("H100 PCIe", [26.0, 51.0, 378.0, 756.0, 1513.0], 2000.0),
    device("H100 NVL", [30.0, 60.0, 417.5, 835.5, 1670.5], 3900.0),
    device("H100", [34.0, 67.0, 494.7, 989.4, 1978.9], 3350.0),
    device("H800", [1.0, 67.0, 494.7, 989.4, 1978.9], 3350.0),
    device("H20", [1.0, 44.0, 74.0, 148.0, 296.0], 4000.0),
    device("A100-SXM4-80GB", [9.7, 19.5, 156.0, 312.0, 624.0], 2039.0),
    device("A100 80GB", [9.7, 19.5, 156.0, 312.0, 624.0], 1935.0),
    device("A100", [9.7, 19.5, 156.0, 312.0, 624.0], 1555.0),
    device("A800", [9.7, 19.5, 156.0, 312.0, 624.0], 2039.0),
    device("A40", [0.6, 37.4, 74.8, 149.7, 299.3], 696.0),
    device("A30", [5.2, 10.3, 82.0, 165.0, 330.0], 933.0),
    device("A10G", [0.5, 31.5, 35.0, 70.0, 140.0], 600.0),
    device("A10", [0.5, 31.2, 62.5, 125.0, 250.0], 600.0),
    device("L40S", [1.4, 91.6, 183.0, 362.1, 733.0], 864.0),
    device("L40", [1.4, 90.5, 90.5, 181.1, 362.1], 864.0),
    device("L4", [0.5, 30.3, 60.0, 121.0, 242.5], 300.0),
    device("RTX 5090", [1.6, 104.8, 104.8, 209.5, 419.0], 1792.0),
    device("RTX 4090", [1.3, 82.6, 82.6, 165.2, 330.3], 1008.0),
    device("RTX 3090", [0.6, 35.6, 35.6, 71.0, 142.0], 936.0),
    device("V100", [7.8, 15.7, 0.0, 125.0, 0.0], 900.0),
    device("T4", [0.3, 8.1, 0.0, 65.0, 130.0], 320.0),
    device("P100", [5.3, 10.6, 0.0, 21.2, 0.0], 732.0),
    device("MI355X", [78.6, 157.3, 0.0, 2516.6, 5033.2], 8000.0),
    device("MI325X", [81.7, 163.4, 653.7, 1307.4, 2614.9], 6000.0),
    device("MI300X", [81.7, 163.4, 653.7, 1307.4, 2614.9], 5300.0),
    device("MI300A", [61.3, 122.6, 490.3, 980.6, 1961.2], 5300.0),
    // A device is one of the two dies.
    device("MI250X", [23.9, 23.9, 0.0, 191.5, 191.5], 1638.0),
    device("MI250", [22.6, 22.6, 0.0, 181.0, 181.0], 1638.0),
    device("MI210", [22.6, 22.6, 0.0, 181.0, 181.0], 1638.0),
    device("GPU Max 1550", [52.4, 52.4, 419.0, 839.0, 1678.0], 3276.8),
];

/// What the device of this name can do at most.
pub fn of(name: &str) -> Option<&'static Peaks> {
    DEVICES.iter().find(|device| {
        let after = name.split(device.name).nth(1);
        // `A100` is not `A1000`, and `L4` is not `L40`.
        after.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

impl Peaks {
    /// Operations per second in a precision; `None` if the device does not have it.
    pub fn flops(&self, precision: Precision) -> Option<f64> {
        let tera = self.tera[precision as usize];
        (tera > 0.0).then_some(tera * 1e12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        let found = |name| of(name).map(|device| device.name);
        assert_eq!(found("NVIDIA H200"), Some("H200"));
        assert_eq!(found("NVIDIA A100-SXM4-80GB"), Some("A100-SXM4-80GB"));
        assert_eq!(found("NVIDIA A100-SXM4-40GB"), Some("A100"));
        assert_eq!(found("NVIDIA L40S"), Some("L40S"));
        assert_eq!(found("Tesla V100-SXM2-32GB"), Some("V100"));
        assert_eq!(found("NVIDIA RTX A1000"), None);
        assert_eq!(found("AMD Radeon Graphics"), None);
        let h100 = of("NVIDIA H100 80GB HBM3").unwrap();
        assert_eq!(h100.flops(Precision::Half), Some(989.4e12));
        assert_eq!(of("Tesla V100").unwrap().flops(Precision::Tf32), None);
    }
}
