#!/usr/bin/env python3
"""Writes a BERT model with random weights and the results of HF transformers with it in float64.

Needs PyTorch, transformers and safetensors. The folder holds config.json, model.safetensors, golden.safetensors
(the first shape) and golden-<batch>x<seq>.safetensors (the others), each with input_ids, attention_mask and
last_hidden_state. `heddle selftest --golden DIR` reads it.

    python3 make_bert.py --config bert-base --out /tmp/bert --shapes 1x32,8x128,32x512
"""
import argparse
import pathlib

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel

CONFIGS = {
    "bert-tiny": dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512),
    "bert-base": dict(),
    "bert-large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
}

# The lengths at the borders of tiles of 32, before the random ones.
EDGE_LENGTHS = (1, 31, 32, 33)


def parse_shape(text: str) -> tuple[int, int]:
    batch, seq = text.split("x")
    return int(batch), int(seq)


def random_model(config: BertConfig, seed: int) -> BertModel:
    """A model whose biases and norms are random too: at their usual 0 and 1 a dropped term would go unnoticed."""
    torch.manual_seed(seed)
    model = BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def ragged_lengths(batch: int, seq: int, generator: torch.Generator) -> torch.Tensor:
    """The first row is full, then edge lengths that fit, then uniform draws from 1..seq."""
    fixed = [seq] + [length for length in EDGE_LENGTHS if length < seq]
    drawn = torch.randint(1, seq + 1, (batch,), generator=generator)
    head = torch.tensor(fixed[:batch])
    return torch.cat([head, drawn[len(head):]])


def golden(model: BertModel, batch: int, seq: int, lengths: str, seed: int, device: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, model.config.vocab_size, (batch, seq), generator=generator)
    valid = ragged_lengths(batch, seq, generator) if lengths == "ragged" else torch.full((batch,), seq)
    mask = (torch.arange(seq)[None] < valid[:, None]).long()
    ids = ids * mask
    with torch.no_grad():
        hidden = model(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state
    return {
        "input_ids": ids.int().contiguous(),
        "attention_mask": mask.int().contiguous(),
        "last_hidden_state": hidden.float().cpu().contiguous(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", choices=CONFIGS, default="bert-base")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--shapes", default="1x32", help="comma-separated batch x seq")
    parser.add_argument("--lengths", choices=("ragged", "full"), default="ragged")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()

    config = BertConfig(**CONFIGS[args.config], attn_implementation="eager", architectures=["BertModel"])
    model = random_model(config, args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(args.out)
    model.to(args.device, torch.float64)
    for position, text in enumerate(args.shapes.split(",")):
        batch, seq = parse_shape(text)
        name = "golden.safetensors" if position == 0 else f"golden-{batch}x{seq}.safetensors"
        save_file(golden(model, batch, seq, args.lengths, args.seed + position, args.device), args.out / name)
        print(f"{args.out / name}: {args.config}, {batch}x{seq}, lengths {args.lengths}, {args.device}")


if __name__ == "__main__":
    main()
