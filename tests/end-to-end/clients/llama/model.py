"""Writes a llama model of two small layers with random weights: enough to run every step of one, and quick to compile."""

import sys

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT = 256, 2, 4, 2, 512, 512


def write(path):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + ["\u2581"] + [chr(c) for c in range(97, 123)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * 3 + [-1.0] * (len(tokens) - 3))
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * 27)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    random = np.random.default_rng(0)

    def weights(name, *shape):
        writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float16))

    def ones(name):
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    head = WIDTH // HEADS
    weights("token_embd.weight", len(tokens), WIDTH)
    weights("output.weight", len(tokens), WIDTH)
    ones("output_norm.weight")
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        ones(f"{block}.attn_norm.weight")
        ones(f"{block}.ffn_norm.weight")
        weights(f"{block}.attn_q.weight", WIDTH, WIDTH)
        weights(f"{block}.attn_k.weight", head * KV_HEADS, WIDTH)
        weights(f"{block}.attn_v.weight", head * KV_HEADS, WIDTH)
        weights(f"{block}.attn_output.weight", WIDTH, WIDTH)
        weights(f"{block}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        weights(f"{block}.ffn_up.weight", FEED_FORWARD, WIDTH)
        weights(f"{block}.ffn_down.weight", WIDTH, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
