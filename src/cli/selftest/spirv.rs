//! Kernels in SPIR-V, put together here: no compiler is needed.
//!
//! Each is, in OpenCL's words:
//! `kernel void NAME(global uint *to, uint count, uint value)`
//! `{ uint at = get_global_id(0); if (at < count) to[at] = at * FACTOR + value; }`

/// The words of a module, and its next id.
struct Module {
    words: Vec<u32>,
    next: u32,
}

impl Module {
    fn id(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// An instruction.
    fn op(&mut self, code: u32, operands: &[u32]) {
        self.words.push((operands.len() as u32 + 1) << 16 | code);
        self.words.extend_from_slice(operands);
    }

    /// An instruction with a result, whose type is among the operands unless it is none.
    fn result(&mut self, code: u32, ty: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        self.op(code, &[&[ty, id], operands].concat());
        id
    }

    /// A type.
    fn ty(&mut self, code: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        self.op(code, &[&[id], operands].concat());
        id
    }
}

// Opcodes and numbers of the SPIR-V specification, 1.0.
const MAGIC: u32 = 0x0723_0203;
const VERSION: u32 = 0x0001_0000;
const MEMORY_MODEL: u32 = 14;
const ENTRY_POINT: u32 = 15;
const CAPABILITY: u32 = 17;
const TYPE_VOID: u32 = 19;
const TYPE_BOOL: u32 = 20;
const TYPE_INT: u32 = 21;
const TYPE_VECTOR: u32 = 23;
const TYPE_POINTER: u32 = 32;
const TYPE_FUNCTION: u32 = 33;
const CONSTANT: u32 = 43;
const FUNCTION: u32 = 54;
const PARAMETER: u32 = 55;
const FUNCTION_END: u32 = 56;
const VARIABLE: u32 = 59;
const LOAD: u32 = 61;
const STORE: u32 = 62;
const IN_BOUNDS_PTR_ACCESS_CHAIN: u32 = 70;
const DECORATE: u32 = 71;
const COMPOSITE_EXTRACT: u32 = 81;
const U_CONVERT: u32 = 113;
const I_ADD: u32 = 128;
const I_MUL: u32 = 132;
const U_LESS_THAN: u32 = 176;
const LABEL: u32 = 248;
const BRANCH: u32 = 249;
const BRANCH_CONDITIONAL: u32 = 250;
const RETURN: u32 = 253;
/// Capabilities: addresses, kernels, 64-bit integers.
const CAPABILITIES: [u32; 3] = [4, 6, 11];
const PHYSICAL_64: u32 = 2;
const OPEN_CL: u32 = 2;
const KERNEL: u32 = 6;
const BUILT_IN: u32 = 11;
const GLOBAL_INVOCATION_ID: u32 = 28;
const INPUT: u32 = 1;
const CROSS_WORKGROUP: u32 = 5;
const ALIGNED: u32 = 2;

/// A text as words: ended by a zero, filled up with zeros.
fn text(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
    let words = bytes.chunks_exact(4);
    words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// A module with a kernel of each name, which multiplies with the factor.
pub(super) fn fill<'a>(kernels: impl Iterator<Item = (&'a String, u32)>) -> Vec<u32> {
    let kernels: Vec<_> = kernels.collect();
    let mut module = Module { words: vec![MAGIC, VERSION, 0, 0, 0], next: 0 };
    for capability in CAPABILITIES {
        module.op(CAPABILITY, &[capability]);
    }
    module.op(MEMORY_MODEL, &[PHYSICAL_64, OPEN_CL]);
    let at = module.id();
    let functions: Vec<u32> = kernels.iter().map(|_| module.id()).collect();
    for ((name, _), function) in kernels.iter().zip(&functions) {
        module.op(ENTRY_POINT, &[&[KERNEL, *function][..], &text(name), &[at]].concat());
    }
    module.op(DECORATE, &[at, BUILT_IN, GLOBAL_INVOCATION_ID]);
    let types = Types::new(&mut module);
    let input = module.ty(TYPE_POINTER, &[INPUT, types.position]);
    module.op(VARIABLE, &[input, at, INPUT]);
    let factors: Vec<u32> =
        kernels.iter().map(|(_, factor)| module.result(CONSTANT, types.int, &[*factor])).collect();
    for (function, factor) in functions.into_iter().zip(factors) {
        kernel(&mut module, &types, at, function, factor);
    }
    module.words[3] = module.next + 1;
    module.words
}

struct Types {
    void: u32,
    int: u32,
    long: u32,
    flag: u32,
    /// Three long numbers.
    position: u32,
    /// Of the device's memory.
    pointer: u32,
    function: u32,
}

impl Types {
    fn new(module: &mut Module) -> Types {
        let void = module.ty(TYPE_VOID, &[]);
        let int = module.ty(TYPE_INT, &[32, 0]);
        let long = module.ty(TYPE_INT, &[64, 0]);
        let flag = module.ty(TYPE_BOOL, &[]);
        let position = module.ty(TYPE_VECTOR, &[long, 3]);
        let pointer = module.ty(TYPE_POINTER, &[CROSS_WORKGROUP, int]);
        let function = module.ty(TYPE_FUNCTION, &[void, pointer, int, int]);
        Types { void, int, long, flag, position, pointer, function }
    }
}

fn kernel(module: &mut Module, types: &Types, at: u32, function: u32, factor: u32) {
    module.op(FUNCTION, &[types.void, function, 0, types.function]);
    let to = module.result(PARAMETER, types.pointer, &[]);
    let count = module.result(PARAMETER, types.int, &[]);
    let value = module.result(PARAMETER, types.int, &[]);
    let (begin, inside, end) = (module.id(), module.id(), module.id());
    module.op(LABEL, &[begin]);
    let position = module.result(LOAD, types.position, &[at, ALIGNED, 32]);
    let long = module.result(COMPOSITE_EXTRACT, types.long, &[position, 0]);
    let index = module.result(U_CONVERT, types.int, &[long]);
    let less = module.result(U_LESS_THAN, types.flag, &[index, count]);
    module.op(BRANCH_CONDITIONAL, &[less, inside, end]);
    module.op(LABEL, &[inside]);
    let product = module.result(I_MUL, types.int, &[index, factor]);
    let sum = module.result(I_ADD, types.int, &[product, value]);
    let place = module.result(IN_BOUNDS_PTR_ACCESS_CHAIN, types.pointer, &[to, long]);
    module.op(STORE, &[place, sum, ALIGNED, 4]);
    module.op(BRANCH, &[end]);
    module.op(LABEL, &[end]);
    module.op(RETURN, &[]);
    module.op(FUNCTION_END, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions follow each other to the end, and ids are below the bound.
    #[test]
    fn a_module_is_well_formed() {
        let names = ["one".to_owned(), "fourteen_chars".to_owned()];
        let words = fill(names.iter().zip([7, 8]));
        assert_eq!(words[..2], [MAGIC, VERSION]);
        let (mut at, mut entries, mut functions) = (5, 0, 0);
        while at < words.len() {
            let (length, code) = ((words[at] >> 16) as usize, words[at] & 0xffff);
            assert!(length > 0 && at + length <= words.len());
            entries += u32::from(code == ENTRY_POINT);
            functions += u32::from(code == FUNCTION_END);
            at += length;
        }
        assert_eq!((at, entries, functions), (words.len(), 2, 2));
        assert!(words[3] > 20 && words[3] < 100);
        assert_eq!(text("abcd"), [u32::from_le_bytes(*b"abcd"), 0]);
    }
}
