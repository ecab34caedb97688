#!/usr/bin/env python3
"""Measures how far a naive encoder is from the truth: the yardstick of the model tolerances in src/verify/tolerance.ts.

Needs PyTorch, transformers and safetensors. For each golden file of a HF folder it runs HF's eager model in float32,
float16 and bfloat16 and prints the relative L2 distance of the last hidden state from a float64 run over valid tokens, and
the same for the file itself. With test-set.json it also prints the micro F1 score of each dtype.

    python3 naive_error.py /tmp/bert test/data/models/kjv-punct-bert
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, BertForTokenClassification, BertModel

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def micro_f1(predicted: list[int], expected: list[int]) -> float:
    pairs = [(p, e) for p, e in zip(predicted, expected) if e != -100]
    hits = sum(1 for p, e in pairs if p > 0 and p == e)
    return 2 * hits / (sum(p > 0 for p, _ in pairs) + sum(e > 0 for _, e in pairs))


def test_set_f1(model: BertForTokenClassification, items: list[dict], device: str) -> float:
    predicted, expected = [], []
    for item in items:
        ids = torch.tensor([item["input_ids"]], device=device)
        predicted += model(input_ids=ids).logits[0].argmax(-1).tolist()
        expected += item["labels"]
    return micro_f1(predicted, expected)


@torch.no_grad()
def report(folder: pathlib.Path, device: str) -> None:
    config = AutoConfig.from_pretrained(folder, attn_implementation="eager")
    classifier = config.architectures == ["BertForTokenClassification"]
    load = BertForTokenClassification if classifier else BertModel
    models = {name: load.from_pretrained(folder, config=config, dtype=dtype).to(device).eval() for name, dtype in DTYPES.items()}
    for path in sorted(folder.glob("golden*.safetensors")):
        golden = load_file(path)
        ids, mask = golden["input_ids"].long().to(device), golden["attention_mask"].long().to(device)
        states = {}
        for name, model in models.items():
            encoder = model.bert if classifier else model
            states[name] = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.double()[mask.bool()]
        states["file"] = golden["last_hidden_state"].to(device).double()[mask.bool()]
        truth = states.pop("f64")
        errors = {name: f"{float((state - truth).norm() / truth.norm()):.3e}" for name, state in states.items()}
        print(path, f"{config.num_hidden_layers} layers", errors, flush=True)
    labelled = folder / "test-set.json"
    if labelled.exists():
        items = json.loads(labelled.read_text())["items"]
        print(labelled, {name: round(test_set_f1(model, items, device), 6) for name, model in models.items()}, flush=True)


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = False
    for argument in sys.argv[1:]:
        report(pathlib.Path(argument), "cuda" if torch.cuda.is_available() else "cpu")
