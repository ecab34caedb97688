#!/usr/bin/env python3
"""Times a BERT encoder in PyTorch on one GPU: the peers of `heddle bench encoder --peer torch`.

Every mode computes token ids to the last hidden state with random weights, without a pooler. Inputs are on the GPU before
the clock starts, and several sets of ids rotate. Events are recorded between back-to-back replays, as in heddle's own
timing. heddle starts this with a request on stdin; by hand, with PyTorch, CUDA and transformers:

    python3 torch_bert.py --config bert-base --shapes 1x32,32x128 --lengths full

Prints one JSON line per mode and shape; a mode that cannot run is a line with `error`. The modes:
    eager    transformers, scaled_dot_product_attention
    graph    the same, captured once into a CUDA graph
    compile  the same, torch.compile(mode="reduce-overhead")
    nested   torch.nn.TransformerEncoder over nested tensors           (ragged lengths only)
    packed   tokens without padding, varlen attention, torch.compile   (ragged lengths only)
"""
import argparse
import gc
import json
import pathlib
import random
import sys
import time

# The script may be in a read-only folder.
sys.dont_write_bytecode = True
from torch_ways import DTYPES, RAGGED_ONLY, ROTATION, WAYS, Case

BASE = dict(vocab=30522, hidden=768, layers=12, heads=12, inner=3072, positions=512, tokenTypes=2, eps=1e-12, activation="gelu")
CONFIGS = {"bert-base": BASE, "bert-large": {**BASE, "hidden": 1024, "layers": 24, "heads": 16, "inner": 4096}}


def say(**line) -> None:
    print(json.dumps(line), flush=True)


def config_of(name: str) -> dict:
    if name in CONFIGS:
        return CONFIGS[name]
    hf = json.loads((pathlib.Path(name) / "config.json").read_text())
    activation = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}.get(hf["hidden_act"], "gelu")
    return dict(
        vocab=hf["vocab_size"], hidden=hf["hidden_size"], layers=hf["num_hidden_layers"], heads=hf["num_attention_heads"],
        inner=hf["intermediate_size"], positions=hf["max_position_embeddings"], tokenTypes=hf.get("type_vocab_size", 2),
        eps=hf.get("layer_norm_eps", 1e-12), activation=activation,
    )


def lengths_of(name: str, batch: int, seq: int) -> list[int]:
    if name == "full":
        return [seq] * batch
    if name == "half":
        draw = random.Random(f"{batch}x{seq}")
        return [draw.randint(1, seq) for _ in range(batch)]
    values = [int(word) for word in pathlib.Path(name).read_text().split()]
    return [min(values[i % len(values)], seq) for i in range(batch)]


def request_of(args: argparse.Namespace) -> dict:
    """The request as heddle sends it, or the same from the command line."""
    if args.stdin:
        return json.load(sys.stdin)
    shapes = [tuple(int(part) for part in text.split("x")) for text in args.shapes.split(",")]
    shapes = [dict(batch=batch, seq=seq, lengths=lengths_of(args.lengths, batch, seq)) for batch, seq in shapes]
    return dict(config=config_of(args.config), dtype=args.dtype, repeats=args.repeats, warmup=args.warmup, shapes=shapes)


def samples(torch, call, repeats: int, warmup: int) -> list[float]:
    """Milliseconds of each call; the queue is never empty between the first warm-up and the end."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    for turn in range(warmup):
        call(turn)
    events[0].record()
    for turn in range(repeats):
        call(turn)
        events[turn + 1].record()
    events[-1].synchronize()
    return [before.elapsed_time(after) for before, after in zip(events, events[1:])]


def run(torch, request: dict, ways: list[str]) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    # Excludes the math backend: a shape that would fall back to it fails instead of being reported as PyTorch's best.
    fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    for shape in request["shapes"]:
        torch.manual_seed(0)
        case = Case(torch, request["config"], request["dtype"], shape)
        for way in ways:
            if way in RAGGED_ONLY and not case.ragged:
                continue
            about = dict(way=way, batch=case.batch, seq=case.seq)
            began = time.monotonic()
            try:
                with torch.no_grad(), sdpa_kernel(fused):
                    call = WAYS[way](case)
                    times = samples(torch, call, request["repeats"], max(request["warmup"], 2 * ROTATION))
                say(**about, samples=times, seconds=round(time.monotonic() - began, 1))
            except Exception as error:  # A mode that this PyTorch lacks is a line of the report, not the end of it.
                say(**about, error=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")
            call = None
            torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stdin", action="store_true", help="read the request as JSON from stdin")
    parser.add_argument("--config", default="bert-base", help=f"{', '.join(CONFIGS)} or a folder with config.json")
    parser.add_argument("--shapes", default="1x128,32x128", help="batch x seq, separated by commas")
    parser.add_argument("--lengths", default="full", help="full, half (uniform in 1..seq) or a file of lengths")
    parser.add_argument("--dtype", choices=DTYPES, default="f16")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=8)
    args = parser.parse_args()
    request = request_of(args)
    try:
        import torch
    except ImportError:
        return say(problem="this Python has no PyTorch")
    if not torch.cuda.is_available():
        return say(problem=f"PyTorch {torch.__version__} sees no CUDA device")
    versions = dict(torch=torch.__version__)
    try:
        import transformers

        versions["transformers"] = transformers.__version__
    except ImportError:
        pass  # Reported by each mode that needs it.
    say(gpu=torch.cuda.get_device_name(), **versions)
    run(torch, request, args.ways.split(","))


if __name__ == "__main__":
    main()
