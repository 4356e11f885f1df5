//! Tests what is read of shaders: needs, bindings and entry points, of damaged modules also.

use super::*;

fn compile(wgsl: &str) -> Vec<u8> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let module = naga::front::wgsl::parse_str(wgsl).unwrap();
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).unwrap();
    let options = naga::back::spv::Options::default();
    let words = naga::back::spv::write_vec(&module, &info, &options, None).unwrap();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn read(wgsl: &str, entry: &str) -> Shader {
    Shader::read(&compile(wgsl), entry, &Specialisation::new()).unwrap()
}

const SEVERAL: &str = "
struct Mixed { count: u32, values: array<f32, 3> }
@group(0) @binding(0) var<storage, read_write> floats: array<f32>;
@group(0) @binding(1) var<storage, read_write> vectors: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> gaps: array<vec3<f32>>;
@group(1) @binding(5) var<storage, read_write> mixed: Mixed;
@group(1) @binding(6) var<storage, read_write> integers: array<i32>;
var<workgroup> shared_floats: array<f32, 32>;
@compute @workgroup_size(8, 4)
fn all() {
    shared_floats[0] = floats[0] + vectors[0].x + gaps[0].x;
    workgroupBarrier();
    mixed.values[0] = shared_floats[0];
    integers[0] = 1;
}
@compute @workgroup_size(64)
fn one() { integers[1] = 2; }";

#[test]
fn a_shader_says_what_it_needs_and_uses() {
    let shader = read(SEVERAL, "all");
    assert_eq!(shader.local_size, Some([8, 4, 1]));
    assert_eq!(shader.shared_bytes, Some(128));
    let slots: Vec<_> = shader
        .slots
        .iter()
        .map(|s| (s.set, s.binding, s.element))
        .collect();
    let expected = [
        (0, 0, Some(Element::F32)),
        (0, 1, Some(Element::F32)),
        // A vector of three has a gap behind it.
        (0, 2, None),
        (1, 5, None),
        (1, 6, Some(Element::I32)),
    ];
    assert_eq!(slots, expected);
    assert!(
        shader
            .slots
            .iter()
            .all(|slot| slot.is_buffer && slot.count == Some(1))
    );
    assert!(!shader.knows_subgroups && !shader.follows_addresses);
}

#[test]
fn of_several_entry_points_each_has_its_own() {
    let shader = read(SEVERAL, "one");
    let slots: Vec<_> = shader
        .slots
        .iter()
        .map(|slot| (slot.set, slot.binding))
        .collect();
    assert_eq!(slots, [(1, 6)]);
    assert_eq!(
        (shader.local_size, shader.shared_bytes),
        (Some([64, 1, 1]), Some(0))
    );
    let missing = Shader::read(&compile(SEVERAL), "two", &Specialisation::new());
    assert_eq!(missing, Err(ReadError::NoEntryPoint("two".to_owned())));
}

#[test]
fn subgroups_are_seen() {
    let wgsl = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn sum(@builtin(subgroup_size) size: u32) { data[0] = size; }";
    assert!(read(wgsl, "sum").knows_subgroups);
}

#[test]
fn a_capability_can_be_taken_back() {
    let mut shader = read(SEVERAL, "all");
    let words = shader.words.len();
    // Shader, and one that is not declared.
    shader.undeclare(1);
    shader.undeclare(4436);
    assert_eq!(shader.words.len(), words - 2);
    assert!(!shader.capabilities.contains(&1));
}

/// Whatever is in the words, reading ends, and nothing panics.
#[test]
fn damage_is_said_or_survived() {
    let code = compile(SEVERAL);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut changed = code.clone();
        for _ in 0..=random() % 4 {
            let at = 20 + random() as usize % (changed.len() - 20);
            changed[at] = random() as u8;
        }
        if random() % 4 == 0 {
            changed.truncate(random() as usize % code.len());
        }
        refused += u32::from(Shader::read(&changed, "all", &Specialisation::new()).is_err());
    }
    assert!(refused > 1_000, "{refused}");
}

/// Types and constants that are made of themselves, or of twice the one before, a hundred times over.
#[test]
fn what_would_take_for_ever_ends() {
    let mut words = vec![0x0723_0203, 0x1_0300, 0, 1_000, 0];
    let mut instruction = |op: u32, operands: &[u32]| {
        words.push((operands.len() as u32 + 1) << 16 | op);
        words.extend_from_slice(operands);
    };
    instruction(15, &[5, 900, u32::from_le_bytes(*b"f\0\0\0"), 600]);
    instruction(21, &[1, 32, 0]);
    for id in 2..102 {
        instruction(30, &[id, id - 1, id - 1, id - 1]);
        instruction(52, &[1, 200 + id, 128, 199 + id, 199 + id]);
    }
    instruction(28, &[500, 101, 301]);
    instruction(32, &[501, 4, 500]);
    instruction(59, &[501, 600, 4]);
    instruction(30, &[700, 700]);
    instruction(54, &[1, 900, 0, 1]);
    instruction(61, &[1, 901, 600]);
    instruction(56, &[]);
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let shader = Shader::read(&code, "f", &Specialisation::new()).unwrap();
    assert_eq!(shader.shared_bytes, None);
}
