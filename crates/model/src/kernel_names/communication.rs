//! Recognises kernels that communicate with other devices, by name.
//!
//! Collectives, point-to-point transfers and barriers between devices are kernels like any other, but they mostly
//! wait for another device instead of computing. Their libraries give them telling names, which are recognised as
//! compiled (mangled), in full, or cut to what a table shows.
//!
//! Communication in kernels with other names is not recognised, such as a program's own reads of another device's
//! memory. A kernel that multiplies matrices and also communicates counts as computing.

/// Prefixes of the names of kernels from libraries that only communicate.
const PREFIXES: [&str; 8] = [
    "nccl",
    "rccl",
    "msccl",
    "nvshmem",
    "rocshmem",
    "oneccl",
    // The exchange between experts of Mori and others.
    "epdispatch",
    "epcombine",
];

/// Namespaces of libraries that communicate; those of [`COMPUTING_NAMESPACES`] inside them are excluded.
const NAMESPACES: [&str; 3] = ["deep_ep", "mscclpp", "mori"];
/// Namespaces of such libraries whose kernels compute.
const COMPUTING_NAMESPACES: [&str; 1] = ["layout"];

/// Parts of the names of kernels that communicate, in lower case and without underscores.
const COMMUNICATION_WORDS: [&str; 17] = [
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    // vLLM, SGLang, AITER.
    "crossdevicereduce",
    "crossdevicestore",
    "quickreduce",
    // Multicast instructions: PyTorch's symmetric memory and TensorRT-LLM.
    "multimem",
    // Each rank spins until the data of the others have arrived.
    "lamport",
    "multigpubarrier",
    "putsignalkernel",
    "waitsignalkernel",
    "symmetricmemorybarrier",
    "userbuffers",
    // NVSHMEM's calls on a stream, such as `barrier_on_stream_kernel`.
    "onstreamkernel",
    "sendrecv",
    "p2pbarrier",
];

/// Parts of the names of kernels that do more than communicate, or stay within one device.
const EXCLUDED_WORDS: [&str; 6] = [
    "gemm",
    "matmul",
    "blockallreduce",
    "warpallreduce",
    "copyin",
    "copyout",
];

/// The most bytes of a name that are examined; the rest is ignored. A function's own name comes before its arguments,
/// which have no limit.
const MAX_NAME_BYTES: usize = 4096;

/// Returns true when a kernel of this name mostly moves data between devices or waits for other devices: a prefix of
/// a library decides alone; otherwise a namespace or a word of communication does, unless an excluded word is there.
pub fn is_communication(name: &str) -> bool {
    let path = path(&name[..name.floor_char_boundary(MAX_NAME_BYTES)]);
    let Some((own, around)) = path.split_last() else {
        return false;
    };
    // TorchInductor lists everything fused into a kernel in its name, and fuses nothing into collectives.
    if own.starts_with("triton_") && own.contains("_fused_") {
        return false;
    }
    let lower = own.to_ascii_lowercase();
    let word: String = lower.chars().filter(|c| *c != '_').collect();
    if PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
        return true;
    }
    let has = |words: &[&str]| words.iter().any(|part| word.contains(part));
    let within = |names: &[&str]| around.iter().any(|space| names.contains(space));
    let library = within(&NAMESPACES) && !within(&COMPUTING_NAMESPACES);
    let barrier = within(&["symmetric_memory"]) && word.contains("barrier");
    (library || barrier || has(&COMMUNICATION_WORDS)) && !has(&EXCLUDED_WORDS)
}

/// Returns the namespaces and, last, the own name of a function, without its result, arguments and template
/// arguments.
fn path(name: &str) -> Vec<&str> {
    match name.strip_prefix("_Z") {
        Some(mangled) => mangled_path(mangled),
        None => plain_path(name),
    }
}

/// Returns the path of a mangled name, whose parts have their lengths in front, such as
/// `N4vllm26cross_device_reduce_1stageIf…`.
fn mangled_path(mangled: &str) -> Vec<&str> {
    let mut rest = mangled.trim_start_matches(['N', 'K', 'L']);
    let mut path = Vec::new();
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|n| *n > 0) {
        let length = rest[..digits].parse().unwrap_or(usize::MAX);
        let Some(own) = rest[digits..].get(..length) else {
            break;
        };
        path.push(own);
        rest = rest[digits + length..].trim_start_matches('L');
    }
    path
}

/// Returns the path of a C++ name that is not mangled.
fn plain_path(name: &str) -> Vec<&str> {
    let mut path = Vec::new();
    let (mut depth, mut from) = (0usize, None);
    let mut chars = name.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_word = depth == 0 && (c.is_alphanumeric() || c == '_');
        match (from, is_word) {
            (None, true) => from = Some(at),
            (Some(start), false) => {
                path.push(&name[start..at]);
                from = None;
            }
            _ => {}
        }
        match c {
            // Arguments end the name, but `(anonymous namespace)::` is a part of it.
            '(' if depth == 0 && !name[at..].starts_with("(anonymous") => break,
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            // The text before the blank was the result type.
            ' ' if depth == 0 && chars.peek().is_some_and(|(_, c)| !c.is_whitespace()) => {
                path.clear();
            }
            _ => {}
        }
    }
    path.extend(from.map(|start| &name[start..]));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_libraries_that_communicate_are_recognised() {
        for name in [
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
            "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
            "ncclSymkDevKernel_ReduceScatter_LL_sum_f32",
            "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
            "nccl:all_reduce",
            "mscclKernel_Sum_half_Simple",
            "void mscclpp::allreduce6<__half, 0>(__half*, __half*)",
            "nvshmemi_proxy_quiet_entrypoint",
            "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)2>(int, int)",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
            "_ZN4vllm26cross_device_reduce_2stageIfLi2EEEvPNS_8RankDataENS_11RankSignalsE",
            "cross_device_reduce_1stage",
            "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<int>>(int)",
            "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 2, true>(tensorrt_llm::kernels::AllReduceParams)",
            "tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport",
            "userbuffers_fp16_sum_inplace_gpu_mc_rw",
            "void (anonymous namespace)::one_shot_all_reduce_kernel<float, 16, 8>(float**, float*)",
            "void <unnamed>::two_shot_all_reduce_kernel<c10::BFloat16, (int)16>(T1 **)",
            "void c10d::symmetric_memory::multimem_all_gather_kernel<16>(unsigned int*)",
            "void c10d::symmetric_memory::barrier_kernel(unsigned int**, int)",
            "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)",
            "_ZN7deep_ep12internode_ll7combineILb0ELi7168EEEvPvS1_",
            "mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>",
        ] {
            assert!(is_communication(name), "{name}: {:?}", path(name));
        }
    }

    #[test]
    fn kernels_that_compute_are_not() {
        for name in [
            "",
            "work",
            "_Z",
            "_Z9",
            "_Z4worké",
            "sgemm_128x64_nn",
            "void gemm_all_reduce_kernel<float>(float*)",
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
            "void at::native::scatter_reduce_kernel<float>(float*)",
            "triton_poi_fused_add_all_reduce_wait_tensor_3",
            "void fsdp::all_gather_copy_in_kernel<float>(float*)",
            "void softmax<ncclRedOp_t>(ncclComm*)",
            "void deep_ep::layout::get_dispatch_layout<256, 4, 8>(long const*)",
            "void moe::dispatch<float>(float*)",
            "blockAllReduceSum",
        ] {
            assert!(!is_communication(name), "{name}: {:?}", path(name));
        }
    }
}
