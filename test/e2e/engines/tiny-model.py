#!/usr/bin/env python3
"""Makes a tiny model from nothing: tiny-model.py FOLDER [llama|qwen3] [--hidden N] [--layers N] [--ballast N | --heavy].

Two safetensors shards with an index, a byte-level tokenizer, a chat template; only Python's own library is needed.
Its weights are random, but its last layer is a table of which token follows which, so that whatever is asked it
answers 204: a real engine can be held to a real answer.
"""

import argparse
import json
import os
import random
import struct

ANSWER = "204"
SPECIAL = ["<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("family", nargs="?", default="llama", choices=["llama", "qwen3"])
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--ballast", type=int, default=0, help="that many shards of 128 MiB for torch-engine.py to bear")
    parser.add_argument("--heavy", action="store_true", help="layers of 368 MiB, in the proportions of an 8B model")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    size = Size(args)
    write(args.folder, "config.json", config(size))
    write(args.folder, "generation_config.json", {"eos_token_id": size.end, "do_sample": False})
    tokenizer(args.folder, size)
    weights(args.folder, size)


class Size:
    def __init__(self, args):
        self.family = args.family
        self.hidden = args.hidden
        self.layers = args.layers
        self.context = args.context
        self.ballast = args.ballast
        self.heads = 4
        self.kv_heads = 2
        self.head_dim = max(32, args.hidden // 4)
        self.inner = args.hidden * 2
        self.heavy = args.heavy
        if args.heavy:
            self.hidden, self.inner, self.heads, self.kv_heads, self.head_dim = 4096, 12288, 32, 8, 128
        self.vocab = 264
        self.user, self.assistant, self.end, self.pad = range(256, 260)


def write(folder, name, content):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)


def config(size):
    names = {"llama": ("LlamaForCausalLM", "llama"), "qwen3": ("Qwen3ForCausalLM", "qwen3")}
    architecture, model_type = names[size.family]
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_size": size.hidden,
        "intermediate_size": size.inner,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "head_dim": size.head_dim,
        "vocab_size": size.vocab,
        "max_position_embeddings": size.context,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": size.end,
        "pad_token_id": size.pad,
        "torch_dtype": "bfloat16",
    }


def byte_words():
    """The printable stand-ins for bytes that byte-level tokenizers use (GPT-2's table)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    words = {byte: chr(byte) for byte in plain}
    extra = 256
    for byte in range(256):
        if byte not in words:
            words[byte] = chr(extra)
            extra += 1
    return words


def tokenizer(folder, size):
    words = byte_words()
    special = [
        {"id": 256 + at, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for at, text in enumerate(SPECIAL)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    write(folder, "tokenizer.json", {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {words[byte]: byte for byte in range(256)}, "merges": [],
        },
    })
    write(folder, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|end|>",
        "pad_token": "<|pad|>",
        "model_max_length": size.context,
        "clean_up_tokenization_spaces": False,
        "chat_template":
            "{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}",
    })


def weights(folder, size):
    chance = random.Random(204)
    code = [[chance.choice((-1.0, 1.0)) for _ in range(size.hidden)] for _ in range(size.vocab)]
    follows = chain(size)
    head = [[chance.gauss(0, 0.02) for _ in range(size.hidden)] for _ in range(size.vocab)]
    for token, after in follows.items():
        head[after] = [a + b for a, b in zip(head[after], code[token])]

    def noise(rows, columns):
        if size.heavy:
            return (rows, columns), small(rows * columns)
        return (rows, columns), [chance.gauss(0, 0.004) for _ in range(rows * columns)]

    def ones(count):
        return (count,), [1.0] * count

    flat = lambda rows: ((len(rows), len(rows[0])), [value for row in rows for value in row])
    tensors = {"model.embed_tokens.weight": flat(code)}
    for layer in range(size.layers):
        name = f"model.layers.{layer}."
        tensors[name + "input_layernorm.weight"] = ones(size.hidden)
        tensors[name + "post_attention_layernorm.weight"] = ones(size.hidden)
        tensors[name + "self_attn.q_proj.weight"] = noise(size.heads * size.head_dim, size.hidden)
        tensors[name + "self_attn.k_proj.weight"] = noise(size.kv_heads * size.head_dim, size.hidden)
        tensors[name + "self_attn.v_proj.weight"] = noise(size.kv_heads * size.head_dim, size.hidden)
        tensors[name + "self_attn.o_proj.weight"] = noise(size.hidden, size.heads * size.head_dim)
        tensors[name + "mlp.gate_proj.weight"] = noise(size.inner, size.hidden)
        tensors[name + "mlp.up_proj.weight"] = noise(size.inner, size.hidden)
        tensors[name + "mlp.down_proj.weight"] = noise(size.hidden, size.inner)
        if size.family == "qwen3":
            tensors[name + "self_attn.q_norm.weight"] = ones(size.head_dim)
            tensors[name + "self_attn.k_norm.weight"] = ones(size.head_dim)
    tensors["model.norm.weight"] = ones(size.hidden)
    tensors["lm_head.weight"] = flat(head)
    names = list(tensors)
    half = len(names) // 2
    shards = {"model-00001-of-00002.safetensors": names[:half], "model-00002-of-00002.safetensors": names[half:]}
    total = 0
    for shard, members in shards.items():
        total += shard_file(os.path.join(folder, shard), {name: tensors[name] for name in members})
    placed = {name: shard for shard, members in shards.items() for name in members}
    for at in range(size.ballast):
        name, shard = f"ballast.{at}.weight", f"ballast-{at:05d}.safetensors"
        total += heavy_file(os.path.join(folder, shard), name)
        placed[name] = shard
    write(folder, "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": placed})


def chain(size):
    """Which token follows which: the answer, whatever was asked, then its end."""
    tokens = [size.assistant, *ANSWER.encode(), size.end]
    return dict(zip(tokens, tokens[1:]))


def shard_file(path, tensors):
    """One safetensors file; returns the bytes of its tensors."""
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, (shape, values) in tensors.items():
        blob = values if isinstance(values, bytearray) else bfloat16(values)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)))
        file.write(head)
        for blob in blobs:
            file.write(blob)
    return at


WIDE = 8192


def small(count):
    """Random numbers of about 0.004, either sign, as bytes: the upper ones are 0x3b or 0xbb."""
    raw = bytearray(2 * count)
    raw[0::2] = os.urandom(count)
    raw[1::2] = os.urandom(count).translate(bytes(0x3B if byte < 128 else 0xBB for byte in range(256)))
    return raw


def heavy_file(path, name):
    raw = small(WIDE * WIDE)
    header = {"__metadata__": {"format": "pt"}}
    header[name] = {"dtype": "BF16", "shape": [WIDE, WIDE], "data_offsets": [0, len(raw)]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.write(raw)
    return len(raw)


def bfloat16(values):
    """The upper halves of single-precision numbers, rounded to nearest."""
    singles = struct.pack(f"<{len(values)}f", *values)
    halves = (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF for (bits,) in struct.iter_unpack("<I", singles))
    return struct.pack(f"<{len(values)}H", *halves)


main()
