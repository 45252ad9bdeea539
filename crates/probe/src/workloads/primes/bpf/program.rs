//! The counting in BPF instructions
//! (Documentation/bpf/standardization/instruction-set.rst).
//!
//! The verifier rejects a loop whose end it cannot see, unless a `may_goto` in
//! it can end it (Linux 6.9). Each call of such a loop has a budget: 8,388,608
//! turns, or 250 ms on newer kernels. The loop exits when the budget is used
//! up. So each call counts only [`CHUNK`] numbers, which takes far less than
//! the budget, and a loop that was cut short makes the result [`CUT_SHORT`].

/// Numbers that one call of the inner function counts. Even with the largest
/// primes, 2047 divisions each, it uses half of the budget.
const CHUNK: i32 = 2048;

/// Result of a program in which a loop was cut short.
pub const CUT_SHORT: u32 = u32::MAX;

/// Offset of the numbers in the map, in bytes.
pub const NUMBERS_OFFSET: usize = 64;
/// Offsets of a zero and a three, whose values the verifier must not know: it
/// would simulate loops that begin with a known number turn by turn.
pub const ZERO_OFFSET: usize = 0;
pub const THREE_OFFSET: usize = 8;
/// Offset at which the program stores the nanoseconds that it took.
pub const COUNT_NS_OFFSET: usize = 16;

/// Number of the helper function `bpf_ktime_get_ns`.
const KTIME_GET_NS: i32 = 5;

const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;

// Opcodes: class, size or operation, and source.
const LD_IMM64: u8 = 0x18;
const LDX_W: u8 = 0x61;
const LDX_DW: u8 = 0x79;
const STX_DW: u8 = 0x7b;
const MOV_K: u8 = 0xb7;
const MOV_X: u8 = 0xbf;
const ADD_K: u8 = 0x07;
const ADD_X: u8 = 0x0f;
const SUB_X: u8 = 0x1f;
const MUL_X: u8 = 0x2f;
const LSH_K: u8 = 0x67;
const AND_K: u8 = 0x57;
const MOD32_X: u8 = 0x9c;
const MOV32_X: u8 = 0xbc;
const JA: u8 = 0x05;
const JEQ_K: u8 = 0x15;
const JGE_K: u8 = 0x35;
const JGE_X: u8 = 0x3d;
const JGT_X: u8 = 0x2d;
const JLT_K: u8 = 0xa5;
const JEQ32_K: u8 = 0x16;
const MAY_GOTO: u8 = 0xe5;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Value of the source field that marks a load of an address in a map.
const PSEUDO_MAP_VALUE: u8 = 2;
/// Value of the source field that marks a call of an instruction of the program.
const PSEUDO_CALL: u8 = 1;

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    opcode: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Loop,
    Done,
    CutShort,
    Chunk,
    Next,
    Divide,
    Prime,
    ChunkDone,
    ChunkCutShort,
}

#[derive(Default)]
struct Assembly {
    instructions: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
    jumps: Vec<(usize, Label)>,
}

impl Assembly {
    fn push(&mut self, opcode: u8, destination: u8, source: u8, offset: i16, immediate: i32) {
        self.instructions.push(Instruction {
            opcode,
            registers: (source << 4) | destination,
            offset,
            immediate,
        });
    }

    fn k(&mut self, opcode: u8, destination: u8, immediate: i32) {
        self.push(opcode, destination, 0, 0, immediate);
    }

    fn x(&mut self, opcode: u8, destination: u8, source: u8) {
        self.push(opcode, destination, source, 0, 0);
    }

    fn map_value(&mut self, destination: u8, map: i32, offset: usize) {
        let offset = i32::try_from(offset).expect("the offset is in the head of the map");
        self.push(LD_IMM64, destination, PSEUDO_MAP_VALUE, 0, map);
        self.push(0, 0, 0, 0, offset);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.instructions.len()));
    }

    fn jump(&mut self, opcode: u8, destination: u8, source: u8, immediate: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(opcode, destination, source, 0, immediate);
    }

    /// Fills in the targets of jumps and calls.
    fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let found = self.labels.iter().find(|(known, _)| *known == label);
            let (_, target) = found.expect("every jump has a target");
            let distance = *target as i64 - at as i64 - 1;
            let instruction = &mut self.instructions[at];
            if instruction.opcode == CALL {
                instruction.immediate = i32::try_from(distance).expect("the program is short");
            } else {
                instruction.offset = i16::try_from(distance).expect("the program is short");
            }
        }
        self.instructions
    }
}

/// Assembles the program that counts the primes among the `n` numbers of a map,
/// by the divisions of `kernel/common/count_primes_core.c`.
pub fn assemble(map: i32, n: u32) -> Vec<Instruction> {
    let n = i32::try_from(n).expect("n is limited");
    let mut code = Assembly::default();
    count_all(&mut code, map, n);
    count_chunk(&mut code, map, n);
    code.finish()
}

/// Registers: r6 has the numbers counted, r7 the primes among them, r8 the start time.
fn count_all(code: &mut Assembly, map: i32, n: i32) {
    code.k(CALL, 0, KTIME_GET_NS);
    code.x(MOV_X, R8, R0);
    code.map_value(R9, map, ZERO_OFFSET);
    code.push(LDX_W, R6, R9, 0, 0);
    code.k(MOV_K, R7, 0);
    code.label(Label::Loop);
    code.jump(MAY_GOTO, 0, 0, 0, Label::CutShort);
    code.jump(JGE_K, R6, 0, n, Label::Done);
    code.x(MOV_X, R1, R6);
    code.jump(CALL, 0, PSEUDO_CALL, 0, Label::Chunk);
    code.jump(JEQ32_K, R0, 0, CUT_SHORT.cast_signed(), Label::CutShort);
    code.x(ADD_X, R7, R0);
    code.k(ADD_K, R6, CHUNK);
    code.jump(JA, 0, 0, 0, Label::Loop);
    code.label(Label::Done);
    code.k(CALL, 0, KTIME_GET_NS);
    code.x(SUB_X, R0, R8);
    let count_ns = i16::try_from(COUNT_NS_OFFSET).expect("the offset is in the head of the map");
    code.push(STX_DW, R9, R0, count_ns, 0);
    code.x(MOV_X, R0, R7);
    code.k(EXIT, 0, 0);
    code.label(Label::CutShort);
    code.k(MOV_K, R0, CUT_SHORT.cast_signed());
    code.k(EXIT, 0, 0);
}

/// Registers: r1 has the index of the first number, r6 the index, r7 the end index, r8 the primes,
/// r9 three.
fn count_chunk(code: &mut Assembly, map: i32, n: i32) {
    code.label(Label::Chunk);
    code.x(MOV_X, R6, R1);
    code.x(MOV_X, R7, R1);
    code.k(ADD_K, R7, CHUNK);
    code.k(MOV_K, R8, 0);
    code.map_value(R2, map, THREE_OFFSET);
    code.push(LDX_DW, R9, R2, 0, 0);
    code.label(Label::Next);
    code.jump(MAY_GOTO, 0, 0, 0, Label::ChunkCutShort);
    code.jump(JGE_X, R6, R7, 0, Label::ChunkDone);
    code.jump(JGE_K, R6, 0, n, Label::ChunkDone);
    code.x(MOV_X, R1, R6);
    code.k(LSH_K, R1, 2);
    code.map_value(R2, map, NUMBERS_OFFSET);
    code.x(ADD_X, R2, R1);
    code.push(LDX_W, R3, R2, 0, 0);
    code.k(ADD_K, R6, 1);
    code.jump(JLT_K, R3, 0, 2, Label::Next);
    code.jump(JEQ_K, R3, 0, 2, Label::Prime);
    code.x(MOV_X, R5, R3);
    code.k(AND_K, R5, 1);
    code.jump(JEQ_K, R5, 0, 0, Label::Next);
    code.x(MOV_X, R4, R9);
    code.label(Label::Divide);
    code.jump(MAY_GOTO, 0, 0, 0, Label::ChunkCutShort);
    code.x(MOV_X, R5, R4);
    code.x(MUL_X, R5, R4);
    code.jump(JGT_X, R5, R3, 0, Label::Prime);
    code.x(MOV32_X, R5, R3);
    code.x(MOD32_X, R5, R4);
    code.jump(JEQ32_K, R5, 0, 0, Label::Next);
    code.k(ADD_K, R4, 2);
    code.jump(JA, 0, 0, 0, Label::Divide);
    code.label(Label::Prime);
    code.k(ADD_K, R8, 1);
    code.jump(JA, 0, 0, 0, Label::Next);
    code.label(Label::ChunkDone);
    code.x(MOV_X, R0, R8);
    code.k(EXIT, 0, 0);
    code.label(Label::ChunkCutShort);
    code.k(MOV_K, R0, CUT_SHORT.cast_signed());
    code.k(EXIT, 0, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_the_kernels_layout() {
        assert_eq!(size_of::<Instruction>(), 8);
        let program = assemble(7, 10);
        // r9 = address in map 7
        assert_eq!((program[2].opcode, program[2].registers), (0x18, 0x29));
        assert_eq!(program[2].immediate, 7);
    }

    #[test]
    fn every_jump_stays_in_the_program() {
        let program = assemble(3, 1 << 24);
        for (at, instruction) in program.iter().enumerate() {
            let class = instruction.opcode & 7;
            if class == 6 || class == 5 && ![CALL, EXIT].contains(&instruction.opcode) {
                let target = at as i64 + 1 + i64::from(instruction.offset);
                assert!((0..program.len() as i64).contains(&target), "{at}");
            }
        }
    }
}
