"""Times the attention kernels of test/projects/attention on a GPU, and PyTorch's flex_attention and scaled_dot_product_attention.

    heddle gen --specs test/projects/attention/specs --out OUT
    python test/peers/attention_variants.py OUT            # from the repository's root; needs nvcc and PyTorch on one machine
    python test/peers/attention_variants.py OUT --variants document causal --shapes 64x8192 128x2048

Compiles the float16 kernels of OUT with nvcc for the GPU at hand, checks each against flex_attention in float32 arithmetic of the same
float16 data, and prints medians in milliseconds of alternating rounds of 8 launches: batch 4, 16 heads. Sequences have the layout
of projections: batch, sequence, head, element.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def shape(text):
    size, sequence = text.split("x")
    return int(size), int(sequence)


parser = argparse.ArgumentParser()
parser.add_argument("out", help="the folder that heddle gen wrote")
parser.add_argument("--variants", nargs="+", help="those to be timed; without it, all that a shape is timed with")
parser.add_argument("--shapes", nargs="+", type=shape, help="elements of a head and keys, as 64x2048")
parser.add_argument("--limit", type=float, default=1e9, help="seconds after which PyTorch is no longer timed")
options = parser.parse_args()
out, limit = options.out, options.limit
began = time.time()
batch, heads, window = 4, 16, 512
manifest = {kernel["key"]: kernel for kernel in json.load(open(os.path.join(out, "manifest.json")))["kernels"]}


class Slice(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class Launch(ctypes.Structure):
    _fields_ = [
        ("queue", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(Slice)),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("attrs", ctypes.POINTER(ctypes.c_double)),
        ("buffer_count", ctypes.c_uint32),
        ("dim_count", ctypes.c_uint32),
        ("attr_count", ctypes.c_uint32),
        ("constants", ctypes.c_void_p),
    ]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("message", ctypes.c_char * 1024)]


def causal(b, h, q, k):
    return q >= k


def score_none(score, b, h, q, k):
    return score


def variants(data):
    """Score and mask functions of flex_attention, by name."""
    slopes, lengths, ids = data["slopes"], data["lengths"], data["ids"]
    bias, pairs, mask, kept = data["bias"], data["k"], data["c2"], data["kept"]
    reach = bias.shape[1]
    return {
        "plain": (None, None),
        "causal": (None, causal),
        "window": (None, lambda b, h, q, k: (q >= k) & (q - k < window)),
        "alibi": (lambda s, b, h, q, k: s + slopes[h] * (k - q), None),
        "soft_cap": (lambda s, b, h, q, k: 20 * torch.tanh(s / 20), None),
        "dilated": (None, lambda b, h, q, k: ((q - k).abs() < 6) & ((q - k) % 2 == 0)),
        "document": (None, lambda b, h, q, k: (q >= k) & (ids[b, q] == ids[b, k])),
        "prefix": (None, lambda b, h, q, k: (q >= k) | (k < lengths[b])),
        "ragged": (None, lambda b, h, q, k: (q >= k) & (k < lengths[b])),
        "neighbourhood": (None, lambda b, h, q, k: ((q // 16 - k // 16).abs() <= 1) & ((q % 16 - k % 16).abs() <= 1)),
        "relative_bias": (lambda s, b, h, q, k: s + bias[h, (k - q + reach // 2).clamp(0, reach - 1)], None),
        "pair_bias": (lambda s, b, h, q, k: s + pairs[h, q, k], None),
        "dense_mask": (lambda s, b, h, q, k: s + mask[b, q, k], None),
        "kept_pairs": (None, lambda b, h, q, k: kept[b, q, k]),
        "grouped": (None, causal),
    }


def build():
    names = options.variants or variants(draw(64, 64))
    files = [manifest[f"fused_attend_{name}__f16"] for name in names]
    include = [flag for folder in ("native/include", "native/device") for flag in ("-I", folder)]
    major, minor = torch.cuda.get_device_capability()
    code = f"{major}{minor}{'a' if major == 9 else ''}"

    def one(kernel):
        target = os.path.join(out, kernel["key"] + ".o")
        command = ["nvcc", "-std=c++17", "-O3", "-gencode", f"arch=compute_{code},code=sm_{code}", "-Xcompiler", "-fPIC"]
        subprocess.run([*command, *include, "-c", os.path.join(out, kernel["file"]), "-o", target], check=True)
        return target

    with ThreadPoolExecutor(16) as pool:
        objects = list(pool.map(one, files))
    library = os.path.abspath(os.path.join(out, "libattention.so"))
    subprocess.run(["nvcc", "-shared", "-o", library, *objects], check=True)
    return ctypes.CDLL(library)


def launcher(library, key, tensors, extents):
    """A function that enqueues the kernel."""
    kernel = manifest[key]
    launch = getattr(library, f"heddle_launch_{key}")
    given = [tensors[buffer["name"]] for buffer in kernel["buffers"]]
    buffers = (Slice * len(given))(*[Slice(t.data_ptr(), t.numel() * t.element_size()) for t in given])
    dims = (ctypes.c_int64 * max(1, len(kernel["dims"])))(*[extents[name.split("_")[0]] for name in kernel["dims"]])
    numbers = {"factor": extents["d"] ** -0.5, "cap": 20.0, "size": float(window), "temperature": 3.0}
    values = [numbers.get(a["name"], float(extents.get(a["name"].split("_")[0], a["default"]))) for a in kernel["attrs"]]
    attrs = (ctypes.c_double * max(1, len(values)))(*values)
    error = Error()
    stream = torch.cuda.current_stream().cuda_stream
    argument = Launch(stream, buffers, dims, attrs, len(given), len(kernel["dims"]), len(values), None)

    def run():
        if launch(ctypes.byref(argument), ctypes.byref(error)) != 0:
            raise RuntimeError(error.message.decode())

    run.kept = (buffers, dims, attrs, given)
    return run


def milliseconds(runs):
    """Medians by name. Rounds of 8 launches alternate, so that clocks and other processes affect all alike."""
    for run in runs.values():
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    times = {name: [] for name in runs}
    for _ in range(5):
        for name, run in runs.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(8):
                run()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end) / 8)
    return {name: statistics.median(taken) for name, taken in times.items()}


def draw(sequence, size):
    generator = torch.Generator("cuda").manual_seed(1)
    normal = lambda *shape: torch.randn(*shape, device="cuda", generator=generator)
    lengths = torch.tensor([sequence, sequence * 3 // 4, sequence // 2, sequence // 3], device="cuda", dtype=torch.int32)
    return {
        "query": normal(batch, sequence, heads, size).half(),
        "key": normal(batch, sequence, heads, size).half(),
        "value": normal(batch, sequence, heads, size).half(),
        "slopes": torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)], device="cuda"),
        "lengths": lengths,
        "ids": (torch.arange(sequence, device="cuda") // 300).repeat(batch, 1).int().contiguous(),
        "bias": normal(heads, 65).half(),
        # The manifest's names of the per-pair inputs of pair_bias and dense_mask.
        "k": (normal(heads, sequence, sequence) if sequence <= 2048 else normal(1, 1, 1)).half(),
        "c2": (normal(batch, sequence, sequence) if sequence <= 2048 else normal(1, 1, 1)).half(),
        # A random half of the pairs: no tile of them is empty or whole.
        "kept": torch.rand(batch, sequence, sequence, device="cuda", generator=generator) < 0.5,
        "y": torch.empty(batch, sequence, heads, size, device="cuda", dtype=torch.float16),
    }


def main():
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuda", torch.version.cuda)
    library = build()
    print(f"built in {time.time() - began:.0f} s", flush=True)
    torch._dynamo.config.cache_size_limit = 256
    flex = torch.compile(flex_attention, dynamic=False)
    full = ["plain", "causal", "window", "alibi", "soft_cap"]
    work = [(64, 2048, None), (128, 2048, full), (64, 8192, full), (128, 8192, full)]
    if options.shapes is not None:
        work = [(size, sequence, None) for size, sequence in options.shapes]
    print(f"{'variant':16}{'head':>6}{'keys':>6}{'heddle':>9}{'flex':>9}{'sdpa':>9}{'h/flex':>8}{'h/sdpa':>8}{'error':>10}")
    for size, sequence, names in work:
        data = draw(sequence, size)
        for name, (score, masked) in variants(data).items():
            # Variants that read a tensor per pair have none for longer sequences.
            if sequence > 2048 and name in ("pair_bias", "dense_mask", "kept_pairs"):
                continue
            if name not in (options.variants or names or [name]):
                continue
            tensors = dict(data)
            groups = 4 if name == "grouped" else heads
            if name == "grouped":
                tensors["key"] = data["key"][:, :, :groups].contiguous()
                tensors["value"] = data["value"][:, :, :groups].contiguous()
            extents = {"b": batch, "s": sequence, "h": heads, "g": groups, "d": size, "e": size, "r": data["bias"].shape[1]}
            own = launcher(library, f"fused_attend_{name}__f16", tensors, extents)
            q, k, v = [tensors[t].transpose(1, 2) for t in ("query", "key", "value")]
            runs = {"own": own}
            error = float("nan")
            if time.time() - began < limit:
                block = None
                if masked is not None:
                    block = create_block_mask(masked, batch, None, sequence, sequence, device="cuda")
                peer = lambda: flex(q, k, v, score_mod=score, block_mask=block, enable_gqa=groups != heads)
                want = peer().transpose(1, 2)
                runs["flex"] = peer
                own()
                torch.cuda.synchronize()
                error = (tensors["y"].float() - want.float()).abs().max().item()
            if name in ("plain", "causal"):
                sdpa = torch.nn.functional.scaled_dot_product_attention
                runs["sdpa"] = lambda: sdpa(q, k, v, is_causal=name == "causal")
            times = milliseconds(runs)
            time_own, time_flex, time_sdpa = [times.get(of, float("nan")) for of in ("own", "flex", "sdpa")]
            ratios = f"{time_own / time_flex:8.2f}{time_own / time_sdpa:8.2f}"
            print(f"{name:16}{size:6}{sequence:6}{time_own:9.3f}{time_flex:9.3f}{time_sdpa:9.3f}{ratios}{error:10.1e}", flush=True)


main()
