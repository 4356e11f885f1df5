//! Kernels that communicate with other devices, recognised by name.
//!
//! Collectives, point-to-point transfers and barriers between devices are kernels like any other, and most of their
//! time they wait for another device: time that is not computed. Their libraries name them well, so names tell them
//! apart: as compiled (mangled), in full, or cut to what a table shows.
//!
//! What this cannot know: communication in kernels that are not named after it, such as a program's own reads of another
//! device's memory. A kernel that multiplies matrices and communicates besides counts as computing.

/// Starts of the names of kernels, of the libraries that communicate and do nothing else.
const PREFIXES: [&str; 8] = [
    "nccl",
    "rccl",
    "msccl",
    "nvshmem",
    "rocshmem",
    "oneccl",
    // Mori's and others' exchange between experts.
    "epdispatch",
    "epcombine",
];

/// Namespaces of such libraries, without what they compute before they communicate.
const NAMESPACES: [&str; 3] = ["deep_ep", "mscclpp", "mori"];
const COMPUTES: [&str; 1] = ["layout"];

/// Parts of the names of kernels, in lower case and without underscores.
const WORDS: [&str; 17] = [
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
    // Each rank spins until the others' data are there.
    "lamport",
    "multigpubarrier",
    "putsignalkernel",
    "waitsignalkernel",
    "symmetricmemorybarrier",
    "userbuffers",
    // NVSHMEM's calls on a stream: `barrier_on_stream_kernel`.
    "onstreamkernel",
    "sendrecv",
    "p2pbarrier",
];

/// Parts of the names of kernels that do more, or do so within one device.
const OTHERWISE: [&str; 6] = [
    "gemm",
    "matmul",
    "blockallreduce",
    "warpallreduce",
    "copyin",
    "copyout",
];

/// Bytes of a name that are looked at: a function's own name is before its arguments, and nothing limits those.
const LONGEST: usize = 4096;

/// True when a kernel of this name moves data between devices, or waits for other devices, and does little else.
pub fn is_communication(name: &str) -> bool {
    let path = path(&name[..name.floor_char_boundary(LONGEST)]);
    let Some((own, around)) = path.split_last() else {
        return false;
    };
    // TorchInductor names a kernel after all that was fused around it, and fuses nothing into collectives.
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
    let library = within(&NAMESPACES) && !within(&COMPUTES);
    let barrier = within(&["symmetric_memory"]) && word.contains("barrier");
    (library || barrier || has(&WORDS)) && !has(&OTHERWISE)
}

/// Namespaces and, last, the own name of a function: without its result, arguments and those of templates.
fn path(name: &str) -> Vec<&str> {
    match name.strip_prefix("_Z") {
        Some(mangled) => mangled_path(mangled),
        None => plain_path(name),
    }
}

/// From `N4vllm26cross_device_reduce_1stageIf…`: names with their lengths before them.
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

fn plain_path(name: &str) -> Vec<&str> {
    let mut path = Vec::new();
    let (mut depth, mut from) = (0usize, None);
    let mut chars = name.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let of_word = depth == 0 && (c.is_alphanumeric() || c == '_');
        match (from, of_word) {
            (None, true) => from = Some(at),
            (Some(start), false) => {
                path.push(&name[start..at]);
                from = None;
            }
            _ => {}
        }
        match c {
            // Arguments end the name; `(anonymous namespace)::` is a part of it.
            '(' if depth == 0 && !name[at..].starts_with("(anonymous") => break,
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            // What is before it was the result.
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
