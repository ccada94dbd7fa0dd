"""Independent re-implementations of three memory layers in torch, written from the published equations. They are NOT the official
classes. crosscheck_transformers.py falls back to them where transformers has no class, and uses them in float64 as the referee.

`rounded=True` repeats the places where the family's own BF16 code rounds; otherwise nothing is rounded. dtype is that of the sums."""
import math
from dataclasses import dataclass

import numpy as np
import torch

DEAD = -1
MASK64 = (1 << 64) - 1


# ---- hash -----------------------------------------------------------------------------------------------------------------------------


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def column_primes(n_layers, starts, n_heads):
    """Per layer a flat list over (order, head). starts: where the search begins, one per order; a prime is used once over all."""
    used, layers = set(), []
    for _ in range(n_layers):
        flat = []
        for start in starts:
            prime = start - 1
            for _ in range(n_heads):
                prime += 1
                while prime in used or not is_prime(prime):
                    prime += 1
                used.add(prime)
                flat.append(prime)
        layers.append(flat)
    return layers


def half_bound(n_ids):
    return max(1, ((1 << 63) - 1) // n_ids // 2)


def numpy_multipliers(seed, count, n_ids):
    return [2 * int(r) + 1 for r in np.random.default_rng(seed).integers(0, half_bound(n_ids), count)]


def splitmix_multipliers(seed, count, n_ids):
    gamma = 0x9E3779B97F4A7C15

    def mix(v):
        v = (v + gamma) & MASK64
        v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9 & MASK64
        v = (v ^ v >> 27) * 0x94D049BB133111EB & MASK64
        return v ^ v >> 31

    return [2 * (mix((seed + gamma * (i + 1)) & MASK64) % half_bound(n_ids)) + 1 for i in range(count)]


@dataclass
class Hash:
    multipliers: list  # by look-back; as many as the longest n-gram has tokens
    primes: list  # by column = (order - 2) * heads + head
    n_heads: int
    pad: int  # fills missing slots
    eos: int | None = None  # an EOS predecessor reads as padding, and so does everything before it

    @property
    def offsets(self):
        return [sum(self.primes[:c]) for c in range(len(self.primes))]

    def rows(self, ids, history=()):
        """(len(ids), columns) int64; `history` are ids that came before."""
        ids = [int(i) for i in list(history) + list(ids)]
        out = []
        for p in range(len(history), len(ids)):
            window, blocked = [], False
            for back in range(len(self.multipliers)):
                blocked = blocked or p < back or ids[p - back] == DEAD or (back > 0 and ids[p - back] == self.eos)
                window.append(self.pad if blocked else ids[p - back])
            mix, row = window[0] * self.multipliers[0], []
            for back in range(1, len(window)):
                mix ^= window[back] * self.multipliers[back]
                for c in range((back - 1) * self.n_heads, back * self.n_heads):
                    row.append(self.offsets[c] + mix % self.primes[c])
            out.append(row)
        return np.array(out, np.int64).reshape(len(out), len(self.primes))


# ---- layers ---------------------------------------------------------------------------------------------------------------------------


@dataclass
class Result:
    hidden: torch.Tensor  # (T, branches, width)
    gates: torch.Tensor  # (T, branches)
    gate_bound: torch.Tensor = None  # what an implementation with other summation orders may differ by, see the bounds below
    hidden_bound: torch.Tensor = None


def bf16(x):
    return x.to(torch.bfloat16).to(x.dtype)


def ulp(x, bits):
    """Distance to the neighbours of x among numbers with `bits` significant bits."""
    return torch.exp2(torch.floor(torch.log2(x.abs().clamp_min(1e-37))) - (bits - 1))


def gate_of(s, signed_zero):
    root = s.abs().clamp_min(1e-6).sqrt()
    return torch.sigmoid(torch.copysign(root, s) if signed_zero else root * s.sign())


def gate_slack(s, ds, signed_zero):
    """How far the gate moves when its score moves by ds: the square root is steep at 0, and jumps there."""
    g = gate_of(s, signed_zero)
    return torch.maximum((gate_of(s + ds, signed_zero) - g).abs(), (gate_of(s - ds, signed_zero) - g).abs())


# The bounds of the layers below say what may come of a sum in another order: every sum of n terms is off by SUM * (sum of the terms'
# sizes), and in rounded mode FLIPS of the key's values land on the neighbouring BF16 number, one ulp (2^-7 relative at most) away.
SUM = 2.0**-21
FLIPS = 2


def key_slack(key, magnitude, rounded):
    """(per-value slack of every key value, slack of a few of them that round the other way)"""
    return SUM * magnitude, ulp(key, 8) if rounded else torch.zeros_like(key)


def engram_v41(w, looked_up, hidden, live, eps, rounded, dtype=torch.float32):
    """DeepSeek-V4.1. looked_up (T, columns * dim), hidden (T, branches, width), live (T) bool: False is DEAD.
    w: wkv (5 * width, columns * dim), query_gain and key_gain (branches, width)."""
    r = bf16 if rounded else lambda x: x
    e, h, wkv = looked_up.to(dtype), hidden.to(dtype), w["wkv"].to(dtype)
    n, branches, width = h.shape
    kv, magnitude = r(e @ wkv.T), e.abs() @ wkv.abs().T
    key, value = kv[:, : branches * width].view(n, branches, width), kv[:, branches * width :]
    rstd = torch.rsqrt(h.square().mean(-1) + eps) * torch.rsqrt(key.square().mean(-1) + eps)
    per_key = h * (w["query_gain"].to(dtype) * w["key_gain"].to(dtype)) * (rstd * width**-0.5)[..., None]
    s = (per_key * key).sum(-1)
    gates = torch.where(live[:, None], gate_of(s, True), 0)
    out = r(h + gates[..., None] * value[:, None])

    drift, flip = key_slack(key, magnitude[:, : branches * width].view_as(key), rounded)
    ds = (per_key.abs() * drift).sum(-1) + FLIPS * (per_key.abs() * flip).amax(-1) + SUM * (per_key * key).abs().sum(-1)
    gate_bound = torch.where(live[:, None], gate_slack(s, ds, True) + SUM * gates, 0)
    value_slack = SUM * magnitude[:, branches * width :] + (ulp(value, 8) if rounded else 0)
    change = gate_bound[..., None] * value.abs()[:, None] + gates[..., None] * value_slack[:, None]
    return Result(out, gates, gate_bound, change + torch.where(live[:, None, None], ulp(out, 8 if rounded else 22), 0))


def short_convolution(inputs, taps, dilation):
    """inputs (T, channels), taps (channels, kernel), oldest first; causal, zero before the start."""
    kernel = taps.shape[1]
    padded = torch.cat([inputs.new_zeros((kernel - 1) * dilation, inputs.shape[1]), inputs])
    return sum(padded[k * dilation : k * dilation + len(inputs)] * taps[:, k] for k in range(kernel))


def gated_convolution_layer(w, looked_up, hidden, eps, conv_eps, gain_offset, dilation, rounded, dtype):
    """What Qwen3.8's PLE and the original Engram share. w: key (branches * width, K), value (width, K), key_gain, query_gain, conv_gain
    (branches, width), conv (branches * width, kernel), and key_bias, value_bias or None."""
    r = bf16 if rounded else lambda x: x
    e, h = looked_up.to(dtype), hidden.to(dtype)
    n, branches, width = h.shape
    w = {name: t if t is None else t.to(dtype) for name, t in w.items()}

    def norm(x, gain, eps):
        return r(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (gain_offset + gain))

    def bias(name, like):
        return torch.zeros_like(like) if w[name] is None else w[name]

    key = e @ w["key"].T
    key = r(key + bias("key_bias", key)).view(n, branches, width)
    value = e @ w["value"].T
    value = r(value + bias("value_bias", value))
    kn, qn = norm(key, w["key_gain"], eps), norm(h, w["query_gain"], eps)
    dot = r(r(kn * qn).sum(-1))
    s = r(dot / math.sqrt(width))
    root = r(s.abs().clamp_min(1e-6).sqrt()) * s.sign()
    gates = r(torch.sigmoid(root))
    gated = r(gates[..., None] * value[:, None])
    conv_in = norm(gated, w["conv_gain"], conv_eps)
    pre = r(short_convolution(conv_in.flatten(1), w["conv"], dilation)).view_as(h)
    act = r(pre * torch.sigmoid(pre))
    delta = r(gated + act)
    out = r(h + delta)

    bits = 8 if rounded else 22
    drift, flip = key_slack(key, (e.abs() @ w["key"].abs().T).view_as(key), rounded)
    per_key = ((gain_offset + w["key_gain"]) * qn).abs() * torch.rsqrt(key.square().mean(-1, keepdim=True) + eps)
    one = ulp(kn * qn, 8) * 2 if rounded else torch.zeros_like(kn)  # a factor and the product round the other way
    ds = (per_key * drift).sum(-1) + FLIPS * (per_key * flip + one).amax(-1) + 4 * SUM * (kn * qn).abs().sum(-1)
    ds = ds / math.sqrt(width) + (ulp(s, bits) * 2 if rounded else 0)
    gate_bound = gate_slack(s, ds, False) + ulp(root, bits) / 4 + ulp(gates, bits)
    value_slack = SUM * (e.abs() @ w["value"].abs().T) + (ulp(value, 8) if rounded else 0)
    gated_slack = gate_bound[..., None] * value.abs()[:, None] + gates[..., None] * value_slack[:, None] + ulp(gated, bits)
    # The norm divides the gate out again, down to rounding: what is left is the value's slack and an ulp of the gated value and of the result.
    size = torch.rsqrt(gated.square().mean(-1, keepdim=True) + conv_eps) * (gain_offset + w["conv_gain"]).abs()
    small = (conv_eps * size.amax(-1, keepdim=True) ** 2).clamp_max(1)  # only where eps counts does the gate stay in
    relative = gate_bound[..., None] / gates[..., None].clamp_min(1e-30)
    conv_slack = size * (gates[..., None] * value_slack[:, None] + ulp(gated, bits)) + ulp(conv_in, bits) * 2
    conv_slack = conv_slack + small * relative * conv_in.abs()
    pre_slack = short_convolution(conv_slack.flatten(1), w["conv"].abs(), dilation).view_as(h) + ulp(pre, bits)
    bound = gated_slack + 1.1 * pre_slack + ulp(act, bits) + ulp(delta, bits) + ulp(out, bits)
    return Result(out, gates, gate_bound, bound)


def ple(w, looked_up, hidden, eps, dilation, rounded, dtype=torch.float32):
    """Qwen3.8-Flash-Next's n-gram memory."""
    w = dict(w, key_bias=None, value_bias=None)
    return gated_convolution_layer(w, looked_up, hidden, eps, eps, 1, dilation, rounded, dtype)


def engram_v1(w, looked_up, hidden, eps, conv_eps, dilation, dtype=torch.float32):
    """The original Engram as in its demonstration code: float32 throughout, biases, norm gains used as they are."""
    return gated_convolution_layer(w, looked_up, hidden, eps, conv_eps, 0, dilation, False, dtype)
