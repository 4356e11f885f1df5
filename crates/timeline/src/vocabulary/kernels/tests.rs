use super::*;
use gapscope_trace::Trace;

/// Names of libraries with what people read.
const TABLE: &[(&str, &str)] = &[
    // PyTorch
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, float)",
        "gelu<bf16> (vec4)",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::<unnamed>::launch_clamp_scalar(at::TensorIteratorBase &, c10::Scalar)::[lambda() (instance 1)]::operator ()() const::[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)], at::detail::Array<char *, (int)2>>(int, T2, T3)",
        "clamp_scalar<float> (vec4)",
    ),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)0, false>, float const*, double>(int)",
        "fused_adam<float> (multi-tensor)",
    ),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<float, 2, 1, 1>, at::native::Sqrt<float> >(int)",
        "sqrt<float> (multi-tensor)",
    ),
    (
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "softmax<bf16> (block, vec8)",
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<c10::Half, float, float, 9, true>(float*, c10::Half const*, int)",
        "log_softmax<half -> float> (warp, up to 512)",
    ),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int, float)",
        "layer_norm<bf16> (vectorized)",
    ),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int, float)",
        "vectorized_layer_norm_kernel<bf16, float, true>",
    ),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<3>, at::native::(anonymous namespace)::PointwiseOpScalarFunctor<float, 3, 3, 0>, std::multiplies<float>, float>(int)",
        "addcmul_scalar<float> (multi-tensor)",
    ),
    (
        "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, at::native::templates::cuda::normal_and_transform<float, float>(at::TensorIteratorBase&)::{lambda(float)#1}>(long)",
        "distribution_elementwise_grid_stride_kernel<float, 4, normal_and_transform<float>>",
    ),
    (
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::BinaryFunctor<float, float, bool, at::native::(anonymous namespace)::CompareFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
        "compare<float -> bool> (strided)",
    ),
    // GEMMs
    (
        "nvjet_sm90_hsh_128x256_64x4_1x2_h_bz_coopA_bias_TNN",
        "gemm f16 128x256 bias TNN (nvjet sm90 hsh 64x4 1x2 h bz coopA)",
    ),
    (
        "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT",
        "gemm bf16 64x8 splitK TNT (nvjet tst 64x16 2x1 v bz)",
    ),
    (
        "nvjet_qqtst_128x128_128x6_2x1_v_bz_TNN",
        "gemm qqtst 128x128 TNN (nvjet 128x6 2x1 v bz)",
    ),
    ("ampere_sgemm_128x64_tn", "gemm f32 128x64 tn (ampere)"),
    (
        "volta_h884gemm_128x128_ldg8_nn",
        "gemm h884 128x128 nn (volta ldg8)",
    ),
    (
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_relu_f2f_stages_64x3_tn",
        "gemm bf16 128x64 relu tn (ampere s16816 ldg8 f2f stages 64x3)",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8::Params)",
        "gemm bf16 256x128 relu nn (cutlass 80 tensorop s16816 32x3 align8)",
    ),
    (
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_split_k_kernel__5x_cublas",
        "gemm f32 128x128x8 split-k tn (xmma sm80 n stage3 warpsize2x2x1 ffma aligna4 alignc4 cublas)",
    ),
    (
        "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16_execute_kernel__5x_cudnn",
        "conv fprop bf16 128x128x32 nhwc (xmma sm80 bf16f32 f32 nhwckrsc stage4 warpsize2x2x1 g1 tensor16x8x16 cudnn)",
    ),
    (
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<9, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cutlass::gemm::KernelTmaWarpSpecializedPingpong>, cute::tuple<cute::C<128>, cute::C<64>, cute::C<64> >, cutlass::bfloat16_t, cute::tuple<long> > > >(int)",
        "gemm bf16 128x64x64 (cutlass Sm90TmaGmmaWarpSpecialized Pingpong)",
    ),
    // Attention
    (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t, Flash_kernel_traits<(int)64, (int)128, (int)128, (int)4, cutlass::bfloat16_t>>, (bool)0, (bool)1>(pytorch_flash::Flash_fwd_params)",
        "flash_fwd<bf16, hdim 64> (128x128)",
    ),
    (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<128>, cute::C<176>, cute::C<128> >, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90, true> > > >(T1::Params)",
        "flash_attn_fwd<bf16, hdim 128> (sm90 128x176)",
    ),
    (
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t, cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
    ),
    // Collectives, CUB
    (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    ),
    (
        "void cub::CUB_200301_860_NS::DeviceRadixSortOnesweepKernel<cub::CUB_200301_860_NS::DeviceRadixSortPolicy<unsigned long, unsigned int, unsigned int>::Policy900, (bool)0, unsigned long, unsigned int>(T7 *)",
        "DeviceRadixSortOnesweep<false, unsigned long, unsigned int> (cub)",
    ),
    // llama.cpp, MLX, JAX, Triton
    (
        "void mul_mat_q<(ggml_type)12, 64, true>(char const*, int const*, float*)",
        "mul_mat_q<q4_K, 64, true>",
    ),
    ("rms_norm_f32", "rms_norm_f32"),
    (
        "Bf4ISinACf4ICosBDf4IExpCEf4OLogD_V_f4_11160318154034397263_contiguous<unsigned,4>",
        "sin cos exp log (fused f32, contiguous)",
    ),
    (
        "CV2IMultiplyABDV2OAddCB_VV_V2V2_11160318154034397263_strided",
        "multiply add (fused bf16, strided)",
    ),
    ("loop_add_fusion", "loop_add_fusion"),
    ("wrapped_sine", "wrapped_sine"),
    (
        "triton_poi_fused_cos_exp_log_sin_0",
        "triton_poi_fused_cos_exp_log_sin_0",
    ),
    // A program's own
    (
        "void ns::(anonymous namespace)::step<float, 4u>(float const*, int)",
        "step<float, 4>",
    ),
    ("spin(unsigned long)", "spin"),
    (
        "internal::gemvx::kernel<int, 7, cublasGemvParams<float> >(int)",
        "gemvx::kernel<int, 7>",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::arr…",
        "fill<float> (vec4)",
    ),
    // What is not understood stays.
    ("module::compute", "module::compute"),
    ("a<b…", "a<b…"),
    ("matmul (x, y)", "matmul (x, y)"),
    ("a<b", "a<b"),
    ("a>(b", "a>(b"),
    ("spv:11111111[0:40000000]", "spv:11111111[0:40000000]"),
    ("forward (spv:11111111)", "forward (spv:11111111)"),
    (
        "vectorized_elementwise_kernel<4, Unheard<float>>",
        "vectorized_elementwise_kernel<4, Unheard<float>>",
    ),
    ("Bf4ISinA_VV_f4_1", "Bf4ISinA_VV_f4_1"),
    ("nvjet", "nvjet"),
    ("ampere_sgemm", "ampere_sgemm"),
    ("", "unknown kernel"),
    ("  ", "unknown kernel"),
];

#[test]
fn names_of_libraries_are_those_that_people_read() {
    for (name, expected) in TABLE {
        assert_eq!(readable(name, None), *expected, "{name}");
        assert_eq!(readable(expected, None), *expected);
    }
}

#[test]
fn a_shorter_name_stays_where_the_whole_one_is_of_no_library() {
    assert_eq!(
        readable("step<4>", Some("void ns::step<4>(int)")),
        "step<4>"
    );
    let whole = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, int>(int)";
    assert_eq!(readable("vectorized", Some(whole)), "fill<float> (vec4)");
}

#[test]
fn huge_names_take_no_time_and_stay() {
    let started = std::time::Instant::now();
    for name in [
        "a".repeat(1 << 20),
        "a_".repeat(1 << 19),
        "a::".repeat(1 << 19),
        format!("{}{}", "<".repeat(10_000), ">".repeat(10_000)),
        format!("k{}{}(int)", "<a".repeat(10_000), ">".repeat(10_000)),
        format!("k<{}>(int)", "b, ".repeat(20_000)),
        format!("void k{}(int)", "(".repeat(50) + &")".repeat(50)),
        format!("Bf4I{}_V_f4_1", "SinA".repeat(15_000)),
        format!("nvjet_tst_{}", "1x1_".repeat(15_000)),
        format!("{}k<4>(int)", "a<b>::".repeat(9_000)),
        format!("k<{}>(int)", "a(b)::{lambda(float)#1}::".repeat(2_000)),
    ] {
        assert!(!readable(&name, None).is_empty());
    }
    // Unoptimised and on a busy machine; what is not linear takes minutes.
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

/// Pieces of names, so that random ones get past the first letters.
const PIECES: &str = "(void |at::native::|vectorized_elementwise_kernel|reduce_kernel|unrolled_elementwise_kernel|multi_tensor_apply_kernel\
    |CUDAFunctor_add|ReduceOp|Functor|::|<|>|, |\\(|\\)|\\{|\\}|\\[|\\]|lambda|#1|operator\\(\\)|operator| const|4|float|cutlass_80|_|nvjet|tst|128x64|sgemm|xmma|sm80\
    |Kernel2|device_kernel|cub::|Device|softmax_warp_forward|true|Bf4ISinA|V|Sin|é| |&|\\*|->|<4, |CatArrayBatchedCopy|OpaqueType<4>|\\(int\\)4|[ -~]){0,24}";

proptest::proptest! {
    #[test]
    fn a_readable_name_is_not_empty_and_stays(name in PIECES, full in proptest::option::of(PIECES)) {
        let once = readable(&name, full.as_deref()).into_owned();
        proptest::prop_assert!(!once.trim().is_empty());
        let alone = readable(&name, None).into_owned();
        proptest::prop_assert_eq!(readable(&alone, None), alone.as_str());
    }
}

fn names(text: &str) -> KernelNames {
    KernelNames::new(&Trace::from_text(text).unwrap().tables.kernels)
}

fn shown(names: &KernelNames) -> Vec<&str> {
    names
        .all()
        .iter()
        .map(|kernel| kernel.name.as_str())
        .collect()
}

#[test]
fn kernels_of_different_code_are_never_one_row() {
    let names = names(
        "kernel id=1 name=matmul name_source=object-name source=aaaaaaaa11 entry_point=main specialisation=0:01
         kernel id=2 name=matmul name_source=object-name source=aaaaaaaa11 entry_point=main specialisation=0:02
         kernel id=3 name=matmul name_source=object-name source=bbbbbbbb22 entry_point=main
         kernel id=4 name=matmul name_source=object-name source=aaaaaaaa11 entry_point=other
         kernel id=5 name=sin name_source=object-name source=cccc entry_point=main",
    );
    assert_eq!(
        shown(&names),
        [
            "matmul (spv:aaaaaaaa main)",
            "matmul (spv:bbbbbbbb main)",
            "matmul (spv:aaaaaaaa other)",
            "sin"
        ]
    );
    assert_eq!(names.index_of_row(0), names.index_of_row(1));
}

#[test]
fn kernels_of_one_name_have_the_hash_of_their_code_behind_it() {
    let names = names(
        "kernel id=1 name=matmul source=aaaaaaaa11\nkernel id=2 name=matmul source=bbbbbbbb22
         kernel id=3 name=\"matmul (spv:aaaaaaaa)\" source=dddddddd",
    );
    assert_eq!(
        shown(&names),
        [
            "matmul (spv:aaaaaaaa) #2",
            "matmul (spv:bbbbbbbb)",
            "matmul (spv:aaaaaaaa)"
        ]
    );
    assert!(names.all().iter().all(|kernel| kernel.full_name.is_none()));
}

#[test]
fn what_differs_in_the_whole_names_tells_kernels_apart() {
    let pow = |number| {
        format!(
            "void at::native::vectorized_elementwise_kernel<4, void at::native::pow_kernel_impl<float, float>(at::TensorIteratorBase&)::{{lambda(float)#{number}}}, std::array<char*, 2ul> >(int)"
        )
    };
    let names = names(&format!(
        "kernel id=1 name=\"{}\" name_source=entry-point\nkernel id=2 name=\"{}\" name_source=entry-point",
        pow(1),
        pow(2)
    ));
    assert_eq!(
        shown(&names),
        ["pow<float> (vec4) [1]", "pow<float> (vec4) [2]"]
    );
    assert_eq!(names.full_name(1), Some(pow(2).as_str()));
    let names = self::names(
        "kernel id=1 name=k name_source=entry-point entry_point=_Z1kPi full_name=\"k(int*)\"
         kernel id=2 name=k name_source=entry-point entry_point=_Z1kPf full_name=\"k(float*)\"",
    );
    assert_eq!(shown(&names), ["k [int]", "k [float]"]);
}

#[test]
fn names_that_people_gave_stay() {
    let names = names(
        "kernel id=1 name=\"f(x)\" name_source=label\nkernel id=2 name=\"ns::g(y)\" name_source=names-file
         kernel id=3 name=\"ns::h(z)\" name_source=entry-point\nkernel id=4 name=\"kernel(2)\" name_source=source-name",
    );
    assert_eq!(shown(&names), ["f(x)", "ns::g(y)", "h", "kernel(2)"]);
}

#[test]
fn more_codes_than_have_rows_of_their_own_are_one_row_that_says_so() {
    let text = |codes: usize| {
        let line = |code| format!("kernel id={code} name=generated source={code:08x}\n");
        (1..=codes).map(line).collect::<String>()
    };
    assert_eq!(names(&text(CODES_OF_A_NAME)).all().len(), CODES_OF_A_NAME);
    let many = names(&text(CODES_OF_A_NAME + 1));
    assert_eq!(shown(&many), ["generated (65 codes)"]);
    assert_eq!(many.all()[0].codes, 65);
    assert_eq!(many.name(64), "generated (65 codes)");
}
