#!/usr/bin/env python3
"""Times HF transformers' BERT on one GPU, for comparison with `heddle bench encoder`. Prints JSON.

Needs PyTorch with CUDA and transformers. Times the whole model, token ids to last hidden state, without a pooler and
without padding: eager calls with both attention implementations, and the sdpa one replayed as a CUDA graph. The ways take
turns, so that a change of the GPU's clock meets all of them; each takes inputs in rotation.

    python3 time_bert.py --config bert-base --shapes 1x128,32x128 --repeats 30
"""
import argparse
import json
import statistics

import torch
from transformers import BertConfig, BertModel

CONFIGS = {
    "bert-base": dict(),
    "bert-large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ROTATION = 4


def build(config: str, attention: str, dtype: torch.dtype) -> BertModel:
    torch.manual_seed(0)
    settings = BertConfig(**CONFIGS[config], attn_implementation=attention)
    return BertModel(settings, add_pooling_layer=False).to("cuda", dtype).eval()


def graph_of(model: BertModel, ids: torch.Tensor) -> torch.cuda.CUDAGraph:
    """Captures one forward pass after the warm-up that lazy initialisation needs."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(ids)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(ids)
    return graph


def milliseconds(call) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def measure(ways: dict, repeats: int, warmup: int) -> dict[str, dict[str, float]]:
    samples = {name: [] for name in ways}
    for turn in range(warmup + repeats):
        for name, calls in ways.items():
            elapsed = milliseconds(calls[turn % len(calls)])
            if turn >= warmup:
                samples[name].append(elapsed)
    quartiles = {name: statistics.quantiles(values, n=4) for name, values in samples.items()}
    return {name: {"median": q[1], "low": q[0], "high": q[2], "best": min(samples[name])} for name, q in quartiles.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", choices=CONFIGS, default="bert-base")
    parser.add_argument("--shapes", default="1x128,32x128", help="comma-separated batch x seq")
    parser.add_argument("--dtype", choices=DTYPES, default="f16")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=8)
    args = parser.parse_args()

    models = {attention: build(args.config, attention, DTYPES[args.dtype]) for attention in ("sdpa", "eager")}
    results = []
    with torch.no_grad():
        for text in args.shapes.split(","):
            batch, seq = (int(part) for part in text.split("x"))
            inputs = [torch.randint(1, 30000, (batch, seq), device="cuda") for _ in range(ROTATION)]
            graphs = [graph_of(models["sdpa"], ids) for ids in inputs]
            ways = {
                "hf_sdpa": [lambda ids=ids: models["sdpa"](ids) for ids in inputs],
                "hf_eager": [lambda ids=ids: models["eager"](ids) for ids in inputs],
                "hf_graph": [graph.replay for graph in graphs],
            }
            results.append({"batch": batch, "seq": seq, "ms": measure(ways, args.repeats, args.warmup)})
            del graphs
    print(json.dumps({
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "config": args.config,
        "dtype": args.dtype,
        "results": results,
    }))


if __name__ == "__main__":
    main()
