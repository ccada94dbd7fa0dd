#!/usr/bin/env python3
"""Compares tiny random memory layers as Hugging Face transformers computes them with `gaterq layer`.

Usage: python tests/python/crosscheck_transformers.py [--gaterq build/release/gaterq] [--keep DIR] [--seed N] [--only FAMILY]
Without --gaterq only the torch side is checked: golden vectors, official class against re-implementation, chunks, checkpoint folders.
Exit: 0 all within tolerance, 1 something is not, 2 bad usage, 77 torch or transformers is missing.

Requirements: torch transformers numpy h5py (2.15, 5.24, 2.4 and 3.16 were used). A CPU build of torch is enough; see README.md here.

Per family the report says which reference it used: the official class of the installed transformers, or an independent
re-implementation (reference_layers.py), which is not the official class and only as good as its reading of the equations.
"""
import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when transformers is imported: nothing here is to be downloaded
try:
    import h5py
    import numpy as np
    import torch
    import transformers
except ImportError as missing:
    print(f"SKIPPED: {missing}. This check needs torch, transformers, numpy and h5py (pip install them).", file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference_layers as own
import safetensors_files as files

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
BRANCHES, WIDTH, T = 4, 96, 96  # the root of the width is no power of two, so that dividing by it rounds

failures = []


def say(line):
    print(line, flush=True)


def check(ok, what):
    say(f"  {'ok  ' if ok else 'FAIL'} {what}")
    if not ok:
        failures.append(what)
    return ok


# ---- arrays ---------------------------------------------------------------------------------------------------------------------------


def bf16_words(x):
    return x.to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(np.uint16)


def from_bf16(words):
    return torch.from_numpy(np.ascontiguousarray(words).astype(np.uint16).view(np.int16)).view(torch.bfloat16).float()


def e4m3_values(codes):
    return torch.from_numpy(np.ascontiguousarray(codes)).view(torch.float8_e4m3fn).float()


def e4m3_codes(x):
    return x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8).numpy()


def e8m0_values(codes):
    return torch.exp2(torch.from_numpy(codes.astype(np.float32)) - 127)


def power_of_two_above(x):
    return torch.exp2(torch.ceil(torch.log2(x.clamp_min(2.0**-20))))


def in_order(words):
    """BF16 bit patterns as integers in the order of the values, so that a difference counts ulps; +0 and -0 are one value."""
    words = words.astype(np.int64)
    return np.where(words & 0x8000, 0x8000 - words, words)


def compare(what, got, want, bound, share):
    """Every value within its bound (see reference_layers.py). Where BF16 rounds (share not None), also no more than `share` of the values
    different beyond binary32 noise: what misses a rounding step stays within the bounds, but differs everywhere."""
    got, want, bound = got.double(), want.double(), bound.double()
    diff = (got - want).abs()
    # In BF16 ulps of the wanted value; values far below the largest of their position are measured in ulps of 2^-10 of that one.
    largest = want.abs().flatten(1).amax(1).view(-1, *[1] * (want.ndim - 1))
    ulps = diff / own.ulp(torch.maximum(want.abs(), largest * 2.0**-10), 8)
    over = torch.where(diff == 0, 0, diff / bound.clamp_min(1e-300))
    at = tuple(int(i) for i in np.unravel_index(int(over.argmax()), over.shape))
    good = bool(torch.isfinite(got).all()) and float(over.max()) <= 1
    text = f"{what}: max |diff| {diff.max():.3g}, {ulps.max():.3g} bf16 ulps, {over.max():.2f} of the bound"
    if share is not None:
        differ = float((ulps > 2.0**-6).double().mean())
        good = good and differ <= share
        text += f", {100 * differ:.2f} % differ (allowed {100 * share:g} %)"
    if not check(good, text):
        say(f"       at {at}: got {float(got[at]).hex()}, reference {float(want[at]).hex()}, bound {float(bound[at]):.3g}")


class Sigmoids(torch.overrides.TorchFunctionMode):
    """Records what torch.sigmoid returns: the official classes do not give their gates away otherwise."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "sigmoid":
            self.seen.append(out)
        return out


# ---- inputs ---------------------------------------------------------------------------------------------------------------------------


def normal(rng, *shape, scale=1.0):
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32)) * scale


def make_hidden(rng):
    """BF16 values: ordinary positions, one all zero, one of zeros in one branch, a large and a tiny one."""
    h = normal(rng, T, BRANCHES, WIDTH)
    h[9] = 0
    h[11, 2] = 0
    h[13] *= 3000
    h[15] *= 1e-6
    return own.bf16(h)


def make_ids(rng, n_ids, special):
    """Random ids of which some n-grams repeat; `special` (DEAD or EOS) alone, in a run, at the end."""
    ids = rng.integers(3, n_ids, T)
    ids[30:38] = ids[20:28]
    for at in (17, 40, 41, 42, 50, 52, T - 1):
        ids[at] = special
    return ids


# ---- families -------------------------------------------------------------------------------------------------------------------------
# A family has: name, source (what the reference is), folder(path), layers {L: case}; a case has ids, hidden, reference(numerics) and
# referee() in float64; both give an own.Result.


class DeepseekV41:
    name = "deepseek-v41"
    LAYERS, N_IDS, HEADS, ORDERS, DIM, PAD, EPS, START = (1, 3), 211, 2, 4, 32, 2, 1e-20, 97
    COLUMNS = (ORDERS - 1) * HEADS
    MODULE = "transformers.models.deepseek_v41.modeling_deepseek_v41"

    def __init__(self, rng, options, grid=False):
        self.title = self.name + (", sums exact in binary32" if grid else "")
        self.primes = own.column_primes(len(self.LAYERS), [self.START] * (self.ORDERS - 1), self.HEADS)
        self.text = {
            "engram_layer_ids": list(self.LAYERS),
            "engram_num_embeddings": [sum(p) for p in self.primes],
            "engram_vocab_size": self.START,
            "engram_max_ngram_size": self.ORDERS,
            "engram_n_heads": self.HEADS,
            "engram_head_dim": self.DIM,
            "engram_pad_token_id": self.PAD,
            "engram_compressed_vocab_size": self.N_IDS,
            "hidden_size": WIDTH,
            "hc_mult": BRANCHES,
            "rms_norm_eps": self.EPS,
            "vocab_size": self.N_IDS,
            "num_hidden_layers": 5,
        }
        try:
            self.module = importlib.import_module(options.deepseek_module or self.MODULE)
            kind = "CLASS given by --deepseek-module," if options.deepseek_module else "OFFICIAL CLASS"
            self.source = f"{kind} {self.module.__name__}.DeepseekV41Engram (transformers {transformers.__version__})"
        except ImportError:
            self.module = None
            self.source = (
                f"INDEPENDENT RE-IMPLEMENTATION (not the official class: transformers {transformers.__version__} has no deepseek_v41)"
            )
        self.layers = {layer: self.make_layer(rng, index, layer, grid) for index, layer in enumerate(self.LAYERS)}

    def make_layer(self, rng, index, layer, grid):
        hashing = own.Hash(own.numpy_multipliers(10007 * layer, self.ORDERS, self.N_IDS), self.primes[index], self.HEADS, self.PAD)
        n_rows, k, out = sum(self.primes[index]), self.COLUMNS * self.DIM, (BRANCHES + 1) * WIDTH
        ids = make_ids(rng, self.N_IDS, own.DEAD)
        if index:
            ids[:2] = own.DEAD
        rows = hashing.rows(ids)
        if grid:  # few bits and one scale: all sums are exact in binary32, whatever their order
            codes = e4m3_codes(torch.from_numpy(rng.integers(-8, 9, (n_rows, self.DIM)).astype(np.float32)))
            scale = np.full((n_rows, self.DIM // 32), 124, np.uint8)
            wkv_codes = e4m3_codes(torch.from_numpy(rng.integers(-8, 9, (out, k)).astype(np.float32)))
            wkv_scale = np.full((out // 32, k // 32), 121, np.uint8)
        else:
            table = normal(rng, n_rows, self.DIM // 32, 32) * torch.exp2(normal(rng, n_rows, self.DIM // 32, 1))
            step = power_of_two_above(table.abs().amax(-1) / 448)
            codes = e4m3_codes((table / step[..., None]).flatten(1))
            codes[5, :6] = [0x7E, 0xFE, 0x80, 0x01, 0x81, 0x07]  # +-448, -0, subnormals
            scale = (step.log2() + 127).numpy().astype(np.uint8)
            weights = normal(rng, out // 32, 32, k // 32, 32, scale=k**-0.5)
            step = power_of_two_above(weights.abs().amax((1, 3)) / 448)
            wkv_codes = e4m3_codes((weights / step[:, None, :, None]).reshape(out, k))
            wkv_scale = (step.log2() + 127).numpy().astype(np.uint8)
        codes[rows[33]] = 0  # an all-zero look-up
        loud = torch.tensor([1.0, 3.0, 8.0, 20.0])[:, None]  # scores reach far beyond 1, as in the released model
        gains = {name: own.bf16(1 + 0.3 * normal(rng, BRANCHES, WIDTH)) for name in ("query_gain", "key_gain")}
        gains["query_gain"] = own.bf16(gains["query_gain"] * loud)
        table = e4m3_values(codes) * e8m0_values(scale).repeat_interleave(32, 1)
        wkv = e4m3_values(wkv_codes) * e8m0_values(wkv_scale).repeat_interleave(32, 0).repeat_interleave(32, 1)
        case = SimpleNamespace(
            index=index, layer=layer, hashing=hashing, ids=ids, rows=rows, hidden=make_hidden(rng), table=table, codes=codes, scale=scale,
            wkv_codes=wkv_codes, wkv_scale=wkv_scale, weights=dict(gains, wkv=wkv), live=torch.from_numpy(ids != own.DEAD),
        )
        case.looked_up = table[torch.from_numpy(rows)].flatten(1)
        case.reference = lambda numerics: self.reference(case, numerics)
        case.referee = lambda: own.engram_v41(case.weights, case.looked_up, case.hidden, case.live, self.EPS, False, torch.float64)
        return case

    def folder(self, path):
        config = {
            "architectures": ["DeepseekV41ForCausalLM"],
            "model_type": "deepseek_v41",
            "image_token_id": self.N_IDS - 1,
            "text_config": dict(self.text, model_type="deepseek_v41_text"),
            "quantization_config": {
                "quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0", "activation_scheme": "dynamic", "weight_block_size": [32, 32],
            },
        }
        shards = [{"embed.weight": ("BF16", np.zeros((8, WIDTH), np.uint16))}]  # the backbone, of no interest here
        for layer, case in self.layers.items():
            prefix = f"layers.{layer}.engram."
            shards.append({
                prefix + "embed.weight": ("F8_E4M3", case.codes),
                prefix + "embed.scale": ("F8_E8M0", case.scale),
                prefix + "wkv.weight": ("F8_E4M3", case.wkv_codes),
                prefix + "wkv.scale": ("F8_E8M0", case.wkv_scale),
                prefix + "q_weight": ("BF16", bf16_words(case.weights["query_gain"])),
                prefix + "k_weight": ("BF16", bf16_words(case.weights["key_gain"])),
            })
        files.write_checkpoint(path, config, shards)

    def config(self):
        return SimpleNamespace(**dict(self.text, engram_pad_id=self.PAD))

    def official(self, case, dtype):
        module = self.module.DeepseekV41Engram(self.config(), case.layer)
        fp8 = dtype == torch.bfloat16  # the table as stored and dequantised by the class
        with torch.no_grad():
            module.to(dtype)
            module.embed.weight = torch.nn.Parameter(torch.from_numpy(case.codes).view(torch.float8_e4m3fn) if fp8 else case.table, False)
            module.embed.scale = torch.nn.Parameter(e8m0_values(case.scale), False)
            module.wkv.weight.copy_(case.weights["wkv"])
            module.q_weight.copy_(case.weights["query_gain"])
            module.k_weight.copy_(case.weights["key_gain"])
            with Sigmoids() as sigmoids:
                hidden = module(case.hidden[None].to(dtype), torch.from_numpy(case.rows)[None], case.live[None])[0]
        gates = sigmoids.seen[0][0].float().masked_fill(~case.live[:, None], 0)
        return hidden.float(), gates

    def reference(self, case, numerics):
        rounded = numerics == "reference"
        result = own.engram_v41(case.weights, case.looked_up, case.hidden, case.live, self.EPS, rounded)
        if self.module:
            hidden, gates = self.official(case, torch.bfloat16 if rounded else torch.float32)
            share = SHARE.get((self.name, numerics))
            mine, result = result, own.Result(hidden, gates, result.gate_bound, result.hidden_bound)
            compare(f"layer {case.layer} {numerics}: re-implementation against class, gates", mine.gates, gates, result.gate_bound, share)
            compare(f"layer {case.layer} {numerics}: re-implementation against class, hidden", mine.hidden, hidden, result.hidden_bound, share)
        return result

    def torch_checks(self):
        if not self.module or not hasattr(self.module, "DeepseekV41NgramHashState"):
            return say("  --   no class: no hash state or cache of it to compare")
        backend = SimpleNamespace(decode=lambda ids, **_: f"<{ids[0]}>")  # every id its own class: compressed ids are the ids
        tokenizer = type("Tokenizer", (), {"__len__": lambda _: self.N_IDS, "backend_tokenizer": backend})()
        for layer, case in self.layers.items():
            live = case.live[None]
            ids = torch.from_numpy(np.where(case.ids == own.DEAD, 0, case.ids))[None]
            at = torch.arange(T)[None]
            for sizes in ([T], chunk_sizes()):
                state = self.module.DeepseekV41NgramHashState(self.config(), tokenizer)
                rows = [state(i, p, m)[0, :, case.index] for i, p, m in zip(*(x.split(sizes, 1) for x in (ids, at, live)))]
                same = np.array_equal(torch.cat(rows).numpy()[case.ids != own.DEAD], case.rows[case.ids != own.DEAD])
                check(same, f"layer {layer}: rows of the class's hash state, {len(sizes)} chunks")


def chunk_sizes():
    return [1, 1, 2, 5, 7, 1, 9, 12, 1, 20, T - 59]


class Qwen38:
    name = "qwen38-ple"
    N_IDS, HEADS, N, EOS, EPS, START, PARTS, MULTIPLE, KERNEL, EMBED, SEED = 251, 3, 3, 250, 1e-6, 97, 16, 128, 4, 144, 1234
    MODULE = "transformers.models.qwen4_exp"

    def __init__(self, rng, options, fp8=False, grid=False):
        ids_of_layers = [2] if fp8 else [2, 3]  # one-based; the released model has one layer
        self.fp8, self.ple_layer_ids = fp8, ids_of_layers
        self.title = self.name + (", FP8 table" if fp8 else "") + (", sums exact in binary32" if grid else "")
        self.text = {
            "model_type": "qwen4_exp_text", "hidden_size": WIDTH, "hc_count": BRANCHES, "hc_lowrank": 8, "num_hidden_layers": 4,
            "ple_layer_ids": ids_of_layers, "ple_embed_dim": self.EMBED, "ngram_size": self.N, "heads_per_ngram": self.HEADS,
            "ngram_vocab_size_base": self.START, "make_ngram_vocab_size_divisible_by": self.MULTIPLE, "split_ngram_parts": self.PARTS,
            "ple_conv_kernel_size": self.KERNEL, "rms_norm_eps": self.EPS, "vocab_size": self.N_IDS, "eos_token_id": self.EOS,
            "bos_token_id": self.EOS, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "linear_key_head_dim": 16,
            "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
            "indexer_n_heads": 1, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 8, "indexer_compress_ratio": 2,
        }
        if not fp8:
            self.text["seed"] = self.SEED  # may be left out: the FP8 variant does
        try:
            self.modeling = importlib.import_module(self.MODULE + ".modeling_qwen4_exp")
            self.configuration = importlib.import_module(self.MODULE + ".configuration_qwen4_exp")
            self.source = f"OFFICIAL CLASS {self.modeling.__name__}.Qwen4ExpTextPLELayer (transformers {transformers.__version__})"
        except ImportError:
            self.modeling = None
            self.source = (
                f"INDEPENDENT RE-IMPLEMENTATION (not the official class: transformers {transformers.__version__} has no qwen4_exp)"
            )
        columns = (self.N - 1) * self.HEADS
        first = own.column_primes(len(ids_of_layers), [self.START] * (self.N - 1), self.HEADS)
        self.layers = {}
        for ordinal, one_based in enumerate(ids_of_layers):
            hashing = own.Hash(
                own.splitmix_multipliers(self.SEED + 10007 * ordinal, self.N, self.N_IDS), first[ordinal], self.HEADS, self.EOS, self.EOS
            )
            self.layers[one_based - 1] = self.make_layer(rng, ordinal, one_based - 1, hashing, columns, grid)

    def make_layer(self, rng, ordinal, layer, hashing, columns, grid):
        dim, n_rows = self.EMBED // columns, -(-sum(hashing.primes) // self.MULTIPLE) * self.MULTIPLE
        ids = make_ids(rng, self.N_IDS - 1, self.EOS)
        ids[0] = self.EOS if ordinal else ids[0]
        rows = hashing.rows(ids)

        def values(*shape, scale):
            if not grid:
                return own.bf16(normal(rng, *shape, scale=scale))
            step = 2.0 ** round(np.log2(scale / 4))
            return torch.from_numpy(rng.integers(-8, 9, shape).astype(np.float32)) * step

        table = values(n_rows, dim, scale=0.7)
        codes = table_scale = None
        if self.fp8:
            table_scale = own.bf16(torch.tensor([0.0021]))
            codes = e4m3_codes(table / table_scale)
            codes[5, :6] = [0x7E, 0xFE, 0x80, 0x01, 0x81, 0x07]
            codes[rows[33]] = 0
            table = own.bf16(e4m3_values(codes) * table_scale)
        table[torch.from_numpy(rows[33])] = 0  # an all-zero look-up
        gain = [own.bf16(0.3 * normal(rng, BRANCHES, WIDTH)) for _ in range(3)]
        loud = torch.tensor([1.0, 3.0, 8.0, 20.0])[:, None]
        weights = {
            "key": values(BRANCHES * WIDTH, self.EMBED, scale=self.EMBED**-0.5),
            "value": values(WIDTH, self.EMBED, scale=self.EMBED**-0.5),
            "key_gain": gain[0],
            "query_gain": own.bf16((1 + gain[1]) * loud - 1),
            "conv_gain": gain[2],
            "conv": own.bf16(0.5 * normal(rng, BRANCHES * WIDTH, self.KERNEL)),
        }
        case = SimpleNamespace(
            ordinal=ordinal, layer=layer, hashing=hashing, ids=ids, rows=rows, hidden=make_hidden(rng), table=table, codes=codes,
            table_scale=table_scale, weights=weights,
        )
        case.looked_up = table[torch.from_numpy(rows)].flatten(1)
        case.reference = lambda numerics: self.reference(case, numerics)
        case.referee = lambda: own.ple(weights, case.looked_up, case.hidden, self.EPS, self.N, False, torch.float64)
        return case

    def folder(self, path):
        config = {
            "architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp", "image_token_id": 248, "video_token_id": 249,
            "text_config": self.text,
            "vision_config": {
                "model_type": "qwen4_exp_vision", "depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2,
                "out_hidden_size": WIDTH, "num_position_embeddings": 16, "patch_size": 4,
            },
        }
        if self.fp8:
            config["quantization_config"] = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
        first = {"model.language_model.embed_tokens.weight": ("BF16", bf16_words(torch.zeros(self.N_IDS, WIDTH)))}
        small, pieces = {}, {}
        for layer, case in self.layers.items():
            w, prefix = case.weights, f"model.language_model.layers.{layer}.ple."
            for leaf, words in {
                "key_proj.weight": w["key"], "value_proj.weight": w["value"], "norm_key.weight": w["key_gain"].flatten(),
                "norm_query.weight": w["query_gain"].flatten(), "norm_conv.weight": w["conv_gain"].flatten(),
                "conv1d.weight": w["conv"][:, None],
            }.items():
                small[prefix + leaf] = ("BF16", bf16_words(words))
            prefix += "ple_embedding."
            for leaf, numbers in {
                "layer_multipliers": case.hashing.multipliers, "ngram_heads_vocab_sizes": case.hashing.primes,
                "ngram_heads_offsets": case.hashing.offsets,
            }.items():
                small[prefix + leaf] = ("I64", np.array(numbers, np.int64))
            per_piece = len(case.table) // self.PARTS
            for piece in range(self.PARTS):
                part = slice(piece * per_piece, (piece + 1) * per_piece)
                pieces[f"{prefix}ngram_embedding.shard_{piece}.weight"] = (
                    ("F8_E4M3", case.codes[part]) if self.fp8 else ("BF16", bf16_words(case.table[part]))
                )
            if self.fp8:
                small[prefix + "ngram_embedding.weight_scale"] = ("BF16", bf16_words(case.table_scale))
        names = sorted(pieces)  # shard_10 before shard_2, and over two files
        half = len(names) // 2 + 3
        shards = [first | {n: pieces[n] for n in names[:half]}, {n: pieces[n] for n in names[half:]} | small]
        files.write_checkpoint(path, config, shards)

    def text_config(self):
        return self.configuration.Qwen4ExpTextConfig(**self.text)

    def official_layer(self, case, dtype):
        layer = self.modeling.Qwen4ExpTextPLELayer(self.text_config(), case.layer, case.ordinal)
        w = case.weights
        with torch.no_grad():
            layer.ple_embedding.ngram_embedding.weight.copy_(case.table)
            layer.key_proj.weight.copy_(w["key"])
            layer.value_proj.weight.copy_(w["value"])
            for name, gain in (("norm_key", "key_gain"), ("norm_query", "query_gain"), ("norm_conv", "conv_gain")):
                getattr(layer, name).weight.copy_(w[gain].flatten())
            layer.conv1d.weight.copy_(w["conv"][:, None])
        return layer.to(dtype)

    def run_official(self, layer, ids, hidden, sizes=None):
        """With sizes: chunk by chunk through transformers' cache."""
        dtype = layer.key_proj.weight.dtype
        cache = transformers.DynamicCache(config=self.text_config()) if sizes else None
        ids, hidden = torch.from_numpy(ids)[None], hidden.flatten(1)[None].to(dtype)
        out, gates = [], []
        with torch.no_grad():
            for i, h in zip(ids.split(sizes or [len(ids[0])], 1), hidden.split(sizes or [len(ids[0])], 1)):
                with Sigmoids() as sigmoids:
                    out.append((h + layer(h, i, cache))[0])
                gates.append(sigmoids.seen[0][0, ..., 0])
        return torch.cat(out).float().view(-1, BRANCHES, hidden.shape[-1] // BRANCHES), torch.cat(gates).float()

    def reference(self, case, numerics):
        rounded = numerics == "reference"
        result = own.ple(case.weights, case.looked_up, case.hidden, self.EPS, self.N, rounded)
        if self.modeling:
            layer = self.official_layer(case, torch.bfloat16 if rounded else torch.float32)
            hidden, gates = self.run_official(layer, case.ids, case.hidden)
            mine, result = result, own.Result(hidden, gates, result.gate_bound, result.hidden_bound)
            what, share = f"layer {case.layer} {numerics}: ", SHARE.get((self.name, numerics))
            compare(what + "re-implementation against class, gates", mine.gates, gates, result.gate_bound, share)
            compare(what + "re-implementation against class, hidden", mine.hidden, hidden, result.hidden_bound, share)
            chunked, chunked_gates = self.run_official(layer, case.ids, case.hidden, chunk_sizes())
            compare(what + "class in chunks with its cache against one shot, gates", chunked_gates, gates, result.gate_bound, share)
            compare(what + "class in chunks with its cache against one shot, hidden", chunked, hidden, result.hidden_bound, share)
        return result

    def torch_checks(self):
        if not self.modeling:
            return say("  --   no class: no hash constants or cache of it to compare")
        for case in self.layers.values():
            embedding = self.official_layer(case, torch.bfloat16).ple_embedding
            for name, mine in (
                ("layer_multipliers", case.hashing.multipliers), ("ngram_heads_vocab_sizes", case.hashing.primes),
                ("ngram_heads_offsets", case.hashing.offsets),
            ):
                check(getattr(embedding, name).tolist() == mine, f"layer {case.layer}: {name} of the class")
            with torch.no_grad():
                looked_up = embedding(torch.from_numpy(case.ids)[None], None)[0].float()
            check(torch.equal(looked_up, case.looked_up), f"layer {case.layer}: rows of the class, one shot")
        if not self.fp8:
            self.load_folder()

    def load_folder(self):
        """transformers' own loader on our folder: the tensors' names, the order of the pieces."""
        with tempfile.TemporaryDirectory() as work:
            self.folder(Path(work) / "checkpoint")
            verbosity = transformers.logging.get_verbosity()
            transformers.logging.set_verbosity_error()
            transformers.logging.disable_progress_bar()
            try:
                model = self.modeling.Qwen4ExpForConditionalGeneration.from_pretrained(Path(work) / "checkpoint", dtype=torch.bfloat16)
            finally:
                transformers.logging.set_verbosity(verbosity)
            for case in self.layers.values():
                loaded = dict(model.model.language_model.layers[case.layer].ple.state_dict())
                mine = self.official_layer(case, torch.bfloat16).state_dict()
                wrong = [n for n in mine if n not in loaded or not torch.equal(mine[n], loaded[n])]
                check(not wrong and len(loaded) == len(mine), f"layer {case.layer}: transformers loads our folder to the same tensors {wrong}")


class EngramV1:
    name = title = "engram-v1"
    source = "INDEPENDENT RE-IMPLEMENTATION (there is no class in transformers and there are no released weights)"
    LAYERS, N_IDS, HEADS, N, DIM, PAD, EPS, CONV_EPS, STARTS, KERNEL = (1, 3), 211, 2, 3, 16, 2, 2.0**-23, 1e-5, [97, 131], 4

    def __init__(self, rng, options):
        primes = own.column_primes(len(self.LAYERS), self.STARTS, self.HEADS)
        self.layers = {}
        for index, layer in enumerate(self.LAYERS):
            multipliers = own.numpy_multipliers(10007 * layer, self.N, self.N_IDS)
            self.layers[layer] = self.make_layer(rng, layer, own.Hash(multipliers, primes[index], self.HEADS, self.PAD))

    def make_layer(self, rng, layer, hashing):
        columns = (self.N - 1) * self.HEADS
        k = columns * self.DIM
        ids = make_ids(rng, self.N_IDS, self.PAD)
        rows = hashing.rows(ids)
        table = normal(rng, sum(hashing.primes), self.DIM)
        table[torch.from_numpy(rows[33])] = 0
        loud = torch.tensor([1.0, 3.0, 8.0, 20.0])[:, None]
        weights = {
            "key": normal(rng, BRANCHES * WIDTH, k, scale=k**-0.5), "key_bias": normal(rng, BRANCHES * WIDTH, scale=0.1),
            "value": normal(rng, WIDTH, k, scale=k**-0.5), "value_bias": normal(rng, WIDTH, scale=0.1),
            "key_gain": 1 + 0.3 * normal(rng, BRANCHES, WIDTH), "query_gain": (1 + 0.3 * normal(rng, BRANCHES, WIDTH)) * loud,
            "conv_gain": 1 + 0.3 * normal(rng, BRANCHES, WIDTH), "conv": 0.5 * normal(rng, BRANCHES * WIDTH, self.KERNEL),
        }
        case = SimpleNamespace(layer=layer, hashing=hashing, ids=ids, rows=rows, hidden=make_hidden(rng), table=table, weights=weights)
        case.looked_up = table[torch.from_numpy(rows)].flatten(1)
        run = lambda dtype: own.engram_v1(weights, case.looked_up, case.hidden, self.EPS, self.CONV_EPS, self.N, dtype)
        case.reference = lambda numerics: run(torch.float32)
        case.referee = lambda: run(torch.float64)
        return case

    def torch_checks(self):
        pass

    def folder(self, path):
        """Our own format, docs/format.md "Memory folders": a geometry and safetensors."""
        path.mkdir(parents=True)
        geometry = {
            "family": self.name, "layer_ids": list(self.LAYERS), "min_order": 2, "max_order": self.N, "n_heads": self.HEADS,
            "row_dim": self.DIM, "width": WIDTH, "n_branches": BRANCHES, "prime_start": self.STARTS, "n_ids": self.N_IDS,
            "pad_id": self.PAD, "multiplier_seed": 10007, "norm_eps": self.EPS, "gate_clamp": 1e-6, "text_only": True, "bias": True,
            "zero_rule": "half", "conv_kernel": self.KERNEL, "conv_dilation": self.N, "conv_eps": self.CONV_EPS,
            "n_rows": [len(case.table) for case in self.layers.values()],
        }
        (path / "memory.json").write_text(json.dumps(geometry, indent=2) + "\n")
        tables, rest = {}, {}
        for layer, case in self.layers.items():
            tables[f"memory.{layer}.table"] = ("F32", case.table.numpy())
            for name, tensor in case.weights.items():
                rest[f"memory.{layer}.{'conv_weight' if name == 'conv' else name}"] = ("F32", tensor.numpy())
        files.write(path / "tables.safetensors", tables)
        files.write(path / "weights.safetensors", rest)


# ---- golden vectors -------------------------------------------------------------------------------------------------------------------


def golden(folder, name):
    path = folder / name
    if not path.exists():
        say(f"  --   {name} is not in {folder.name}/: its checks are skipped")
        return None
    return json.loads(path.read_text())


def close(what, got, want, tolerance):
    diff = float((got.double() - torch.as_tensor(want, dtype=torch.float64)).abs().max())
    check(diff <= tolerance, f"{what}: max |diff| {diff:.3g}, allowed {tolerance:g}")


def golden_hash(folder):
    data = golden(folder, "engram_hash.json")
    if not data:
        return
    for key, starts, n_ids in (("v41", [16000000] * 3, 99092), ("original_demo", [646400] * 2, 98627)):
        part = data[key]
        primes = own.column_primes(2, starts, 8)
        for index, (layer, constants) in enumerate(part["layers"].items()):
            multipliers = own.numpy_multipliers(10007 * int(layer), len(starts) + 1, n_ids)
            hashing = own.Hash(multipliers, primes[index], 8, 2)
            check(
                multipliers == constants["multipliers"] and hashing.primes == constants["primes_flat_col_order"],
                f"{key} layer {layer}: multipliers and primes",
            )
            same = all(hashing.rows(s["compressed_ids"]).tolist() == s["rows"][layer] for s in part["sequences"])
            check(same, f"{key} layer {layer}: rows of {len(part['sequences'])} sequences")


def hex_words(text, kind):
    return np.frombuffer(bytes.fromhex(text), kind).copy()


def golden_gates(folder):
    data = golden(folder, "engram_gate.json")
    if not data:
        return
    g = data["v41_float64"]
    t = lambda x: torch.tensor(x, dtype=torch.float64)
    w = {"wkv": t(g["wkv_weight_out_in"]), "query_gain": t(g["q_weight"]), "key_gain": t(g["k_weight"])}
    live = torch.tensor(g["token_mask_true_means_active"])
    result = own.engram_v41(w, t(g["e_concat_rows"]), t(g["h_in"]), live, g["rms_eps"], False, torch.float64)
    close("V4.1 gate example in float64, hidden", result.hidden, g["h_out"], 1e-12)
    g = data["v41_quantised_pipeline"]
    scales = lambda rows: torch.stack([e8m0_values(hex_words(s, np.uint8)) for s in rows])
    wkv = torch.stack([e4m3_values(hex_words(c, np.uint8)) for c in g["wkv_codes_e4m3_rows"]])
    wkv = wkv * scales(g["wkv_scales_e8m0_tiles"]).repeat_interleave(32, 0).repeat_interleave(32, 1)
    rows = torch.stack([torch.stack([e4m3_values(hex_words(c, np.uint8)) for c in token]) for token in g["row_codes_e4m3"]])
    rows = rows * scales(g["row_scales_e8m0"])[..., None]
    words = lambda text: from_bf16(hex_words(text, ">u2"))
    w = {"wkv": wkv, "query_gain": torch.stack([words(x) for x in g["q_weight_bf16"]]),
         "key_gain": torch.stack([words(x) for x in g["k_weight_bf16"]])}
    h = torch.stack([torch.stack([words(x) for x in token]) for token in g["h_in_bf16"]])
    want = torch.stack([torch.stack([words(x) for x in token]) for token in g["h_out_bf16"]])
    eps = g.get("rms_eps", 1e-20)
    result = own.engram_v41(w, rows.flatten(1), h, torch.ones(len(h), dtype=torch.bool), eps, True)
    gates = [[branch["float32_sequential"]["gate"] for branch in token] for token in g["gate_records_token_branch"]]
    close("V4.1 in its number formats, gates", result.gates, gates, 1e-5)
    ulps = np.abs(in_order(bf16_words(result.hidden)) - in_order(bf16_words(want)))
    check(ulps.max() <= 1, f"V4.1 in its number formats, hidden: {ulps.max()} bf16 ulps, {np.count_nonzero(ulps)} differ")
    g = data["original_float64"]
    w = {
        "key": t(g["key_proj_weight"]).flatten(0, 1), "key_bias": t(g["key_proj_bias"]).flatten(), "value": t(g["value_proj_weight"]),
        "value_bias": t(g["value_proj_bias"]), "key_gain": t(g["norm1_key_weight"]), "query_gain": t(g["norm2_query_weight"]),
        "conv_gain": t(g["conv_norm_weight"]), "conv": t(g["conv_weight_channel_tap_oldest_first"]),
    }
    eps, conv_eps = g["rmsnorm_eps_key_and_query"], g["rmsnorm_eps_conv"]
    result = own.engram_v1(w, t(g["e_concat"]), t(g["h_in"]), eps, conv_eps, g["dilation"], torch.float64)
    close("original Engram in float64, gates", result.gates, g["gates"], 1e-12)
    close("original Engram in float64, hidden", result.hidden, g["h_out"], 1e-12)


def golden_ple(folder, qwen):
    data = golden(folder, "qwen_ple.json")
    if not data:
        return
    released = data["released"]
    primes = own.column_primes(1, [20000000] * 2, 8)[0]
    multipliers = own.splitmix_multipliers(released["seed"], 3, released["vocab_size"])
    hashing = own.Hash(multipliers, primes, 8, released["eos_token_id"], released["eos_token_id"])
    check(
        multipliers == [int(m) for m in released["multipliers"]] and primes == released["head_vocab_sizes"]
        and hashing.offsets == released["head_offsets"],
        "PLE: released multipliers, primes, offsets",
    )
    cases = data["hash_cases"]
    check(all(hashing.rows(c["tokens"]).tolist() == c["rows"] for c in cases), f"PLE: rows of {len(cases)} sequences")
    small = data["small_layer"]
    c, exact, bits = small["config"], small["float64"], small["bf16_bits"]
    t = {name: torch.tensor(x, dtype=torch.float64) for name, x in small["weights"].items()}
    branches, width = c["hc_count"], c["hidden_size"]
    w = {
        "key": t["key_proj"], "value": t["value_proj"], "conv": t["conv1d"],
        **{f"{name}_gain": t[f"norm_{name}"].view(branches, width) for name in ("key", "query", "conv")},
    }
    hidden = torch.tensor(small["hidden_in"], dtype=torch.float64).view(-1, branches, width)
    looked_up = t["table"][torch.tensor(small["rows"])].flatten(1)
    result = own.ple(w, looked_up, hidden, c["rms_norm_eps"], c["conv_dilation"], False, torch.float64)
    close("PLE small layer in float64, gates", result.gates, exact["gate"], 1e-12)
    close("PLE small layer in float64, hidden", result.hidden.flatten(1), exact["out"], 1e-12)

    def same_bits(what, gates, hidden):
        for name, got, want in (("gates", gates, bits["gate"]), ("hidden", hidden.flatten(1), bits["out"])):
            differ = np.count_nonzero(in_order(bf16_words(got)) != in_order(np.array(want, np.uint16)))
            check(differ == 0, f"{what}, {name}: {differ} of {np.size(want)} bf16 values differ")

    result = own.ple(w, looked_up.float(), hidden.float(), c["rms_norm_eps"], c["conv_dilation"], True)
    same_bits("PLE small layer, re-implementation", result.gates, result.hidden)
    if not qwen.modeling:
        return
    text = dict(
        qwen.text, ple_layer_ids=[2], ple_conv_kernel_size=c["conv_kernel"],
        **{k: c[k] for k in ("hidden_size", "hc_count", "ngram_size", "heads_per_ngram", "ple_embed_dim", "vocab_size", "eos_token_id",
                             "ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by", "seed", "rms_norm_eps")},
    )
    other = Qwen38.__new__(Qwen38)
    other.__dict__.update(qwen.__dict__, text=text)
    case = SimpleNamespace(layer=1, ordinal=0, table=t["table"], weights=w)
    for sizes in (None, small["chunked"]["sizes"]):
        layer = other.official_layer(case, torch.bfloat16)
        out, gates = other.run_official(layer, np.array(small["tokens"]), hidden.float(), sizes)
        same_bits(f"PLE small layer, official class {'in chunks' if sizes else 'at once'}", gates, out)


# ---- the tool -------------------------------------------------------------------------------------------------------------------------


def run_tool(options, folder, case, numerics, work):
    source, result = work / "X.h5", work / "Y.h5"
    with h5py.File(source, "w") as f:
        f["ids"] = case.ids.astype(np.int32)
        f["hidden"] = case.hidden.numpy().astype(np.float32)
    command = [options.gaterq, "layer", "--memory", folder, "--layer", case.layer, "--input", source, "--output", result]
    command = [str(word) for word in command + ["--numerics", numerics]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        check(False, f"layer {case.layer} {numerics}: {' '.join(command)} exits {done.returncode}: {done.stderr.strip()[-600:]}")
        return None
    with h5py.File(result) as f:
        out = own.Result(torch.from_numpy(f["hidden"][()]), torch.from_numpy(f["gates"][()]))
    source.unlink()
    result.unlink()
    want = (T, BRANCHES, WIDTH), (T, BRANCHES)
    good = (tuple(out.hidden.shape), tuple(out.gates.shape)) == want and out.hidden.dtype == out.gates.dtype == torch.float32
    return out if check(good, f"layer {case.layer} {numerics}: shapes and types of the output") else None


# Where BF16 rounds: share of the values that may differ at all (by more than 1/64 BF16 ulp). A sum in another order moves a result by
# about 2^-22, which takes it over a tie of BF16 about once in 2^13 values, and V4.1's gate has no rounding of its own. PLE rounds its
# gate: the one in a hundred or so that rounds the other way moves its whole branch by an ulp. A rounding step left out makes 5 % or more
# of the gates or streams differ (tried for every step of both layers).
SHARE = {("deepseek-v41", "reference"): 0.01, ("qwen38-ple", "reference"): 0.03}


def check_family(family, options, work):
    say(f"\n{family.title}: {family.source}")
    family.torch_checks()
    folder = work / family.title.replace(", ", "-").replace(" ", "-")
    family.folder(folder)
    if (folder / "config.json").exists():
        files.read_checkpoint(folder)  # raises where index, shards and headers disagree
    for case in family.layers.values():
        referee = case.referee()
        for numerics in ("reference", "fp32"):
            want = case.reference(numerics)
            share = SHARE.get((family.name, numerics))
            what = f"layer {case.layer} {numerics}: "
            if numerics == "fp32":
                compare(what + "reference against float64, gates", want.gates, referee.gates, want.gate_bound, share)
                compare(what + "reference against float64, hidden", want.hidden, referee.hidden, want.hidden_bound, share)
            if not options.gaterq:
                continue
            got = run_tool(options, folder, case, numerics, work)
            if got:
                compare(what + "gaterq against reference, gates", got.gates, want.gates, want.gate_bound, share)
                compare(what + "gaterq against reference, hidden", got.hidden, want.hidden, want.hidden_bound, share)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gaterq", metavar="TOOL", help="the tool to compare with; without it only the torch side is checked")
    parser.add_argument("--keep", metavar="DIR", help="write the checkpoint folders here and leave them (default: a temporary folder)")
    parser.add_argument("--golden", metavar="DIR", type=Path, default=GOLDEN, help="golden vectors (default: tests/golden)")
    parser.add_argument("--deepseek-module", metavar="NAME", help="Python module with DeepseekV41Engram, if it is not transformers' own")
    parser.add_argument("--only", metavar="FAMILY", choices=("deepseek-v41", "qwen38-ple", "engram-v1"), help="this family only")
    parser.add_argument("--seed", type=int, default=1, help="of weights and inputs (default 1)")
    options = parser.parse_args()
    if options.gaterq and not os.access(options.gaterq, os.X_OK):
        parser.error(f"--gaterq: {options.gaterq} is not a program")
    if options.keep and Path(options.keep).exists() and any(Path(options.keep).iterdir()):
        parser.error(f"--keep: {options.keep} is not empty")
    torch.set_num_threads(min(2, torch.get_num_threads()))
    say(f"torch {torch.__version__}, transformers {transformers.__version__}, seed {options.seed}")

    seeds = np.random.SeedSequence(options.seed).spawn(6)
    rng = lambda n: np.random.default_rng(seeds[n])
    qwen = Qwen38(rng(2), options)
    families = [
        DeepseekV41(rng(0), options), DeepseekV41(rng(1), options, grid=True), qwen, Qwen38(rng(3), options, grid=True),
        Qwen38(rng(4), options, fp8=True), EngramV1(rng(5), options),
    ]
    say("\ngolden vectors")
    golden_hash(options.golden)
    golden_gates(options.golden)
    golden_ple(options.golden, qwen)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary)
        work.mkdir(parents=True, exist_ok=True)
        for family in families:
            if options.only in (None, family.name):
                check_family(family, options, work)
    say("")
    for family in families:
        say(f"reference for {family.title}: {family.source}")
    say(f"{len(failures)} checks failed" if failures else "all checks within tolerance")
    if not options.gaterq:
        say("The tool was not compared: no --gaterq.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
