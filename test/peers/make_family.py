#!/usr/bin/env python3
"""Writes small models of the BERT family with random weights, their tokenizers, and the results of HF transformers with them.

Needs PyTorch, transformers and tokenizers. Each folder below `--out` holds config.json, model.safetensors, tokenizer.json,
tokenizer_config.json, and golden.json: cases of one text, of a pair of texts and of pairs that were truncated, with the ids and types of
HF's tokenizer and the logits of a padded batch in float64.

    python3 make_family.py --out test/data/models/family
"""
import argparse
import json
import pathlib

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormForTokenClassification,
    XLMRobertaConfig,
    XLMRobertaForTokenClassification,
)

CORPUS = [
    "In the beginning God created the heaven and the earth.",
    "And the earth was without form, and void; and darkness was upon the face of the deep.",
    "And God said, Let there be light: and there was light.",
    "Who divided the light from the darkness, and what did he call the day?",
    "The waters under the heaven were gathered together unto one place.",
    "A weaver lifts the warp threads of a loom so that the pattern can pass.",
]
CASES = [
    {"text": "And God said, Let there be light."},
    {"text": "Who created the earth?", "pair": "In the beginning God created the heaven and the earth."},
    {"text": "light"},
    {"text": "the day", "pair": "the darkness was upon the deep"},
    {"text": "What is a loom, and who lifts its threads?", "pair": "A weaver lifts the warp threads so that the pattern can pass."},
    {"text": "Was für ein Tag!", "pair": "void"},
]
# What is cut, how, and to how many tokens besides special ones. Where both texts are cut the number is even: of an odd one, versions of
# HF's tokenizers differ in which text has one more.
TRUNCATED = [
    *((case, "longest_first", room) for case in (CASES[1], CASES[4]) for room in (14, 8)),
    (CASES[3], "longest_first", 5),
    *((case, how, room) for case in (CASES[1], CASES[4]) for how, room in (("only_second", 16), ("only_first", 28))),
]

SPECIAL = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
BYTES = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}


def fast(tokenizer: Tokenizer, tokens: dict[str, str]) -> PreTrainedTokenizerFast:
    named = {f"{name}_token": token for name, token in tokens.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def word_pieces() -> PreTrainedTokenizerFast:
    order = [SPECIAL[name] for name in ("pad", "unk", "cls", "sep", "mask")]
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=160, special_tokens=order, show_progress=False))
    ends = [(SPECIAL[name], tokenizer.token_to_id(SPECIAL[name])) for name in ("cls", "sep")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ends
    )
    return fast(tokenizer, SPECIAL)


def byte_pairs() -> PreTrainedTokenizerFast:
    order = [BYTES[name] for name in ("cls", "pad", "sep", "unk", "mask")]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=360, special_tokens=order, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return fast(tokenizer, BYTES)


def pieces() -> PreTrainedTokenizerFast:
    order = [BYTES[name] for name in ("cls", "pad", "sep", "unk", "mask")]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=order, unk_token=BYTES["unk"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return fast(tokenizer, BYTES)


def sizes(hidden: int, heads: int, inner: int) -> dict:
    return dict(hidden_size=hidden, num_hidden_layers=2, num_attention_heads=heads, intermediate_size=inner)


def distil(hidden: int, heads: int, inner: int) -> dict:
    return dict(dim=hidden, n_layers=2, n_heads=heads, hidden_dim=inner, max_position_embeddings=96)


# 96 positions for every model: those of RoBERTa begin after that of the padding token.
MODELS = {
    "bert-pairs": (word_pieces, BertForSequenceClassification,
                   lambda: BertConfig(**sizes(48, 3, 80), max_position_embeddings=96, num_labels=3)),
    "bert-answers": (word_pieces, BertForQuestionAnswering,
                     lambda: BertConfig(**sizes(32, 2, 64), max_position_embeddings=96, hidden_act="gelu_new")),
    "distilbert-pairs": (word_pieces, DistilBertForSequenceClassification, lambda: DistilBertConfig(**distil(32, 2, 72), num_labels=4)),
    "distilbert-answers": (word_pieces, DistilBertForQuestionAnswering,
                           lambda: DistilBertConfig(**distil(32, 4, 64), activation="relu")),
    "roberta-pairs": (byte_pairs, RobertaForSequenceClassification,
                      lambda: RobertaConfig(**sizes(32, 2, 64), max_position_embeddings=98, type_vocab_size=1, layer_norm_eps=1e-5,
                                            num_labels=3)),
    "roberta-answers": (byte_pairs, RobertaForQuestionAnswering,
                        lambda: RobertaConfig(**sizes(48, 2, 64), max_position_embeddings=98, type_vocab_size=1,
                                              layer_norm_eps=1e-5)),
    "prelayernorm-tokens": (byte_pairs, RobertaPreLayerNormForTokenClassification,
                            lambda: RobertaPreLayerNormConfig(**sizes(64, 2, 96), max_position_embeddings=98, type_vocab_size=1,
                                                              layer_norm_eps=1e-5, hidden_act="silu", num_labels=4)),
    "xlm-roberta-tokens": (pieces, XLMRobertaForTokenClassification,
                           lambda: XLMRobertaConfig(**sizes(32, 2, 64), max_position_embeddings=98, type_vocab_size=1,
                                                    layer_norm_eps=1e-5, num_labels=5)),
}


def spread(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Weights that keep values of order one, biases and norms that are random too: a dropped term does not go unnoticed."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                wide = "embeddings" in name
                parameter.copy_(torch.randn_like(parameter) * (0.7 if wide else 1.4 / parameter.shape[1] ** 0.5))
            else:
                centre = 1.0 if "orm.weight" in name or "layer_norm.weight" in name else 0.0
                parameter.copy_(centre + torch.randn_like(parameter) * 0.2)
    return model.eval()


def encode(tokenizer: PreTrainedTokenizerFast, case: dict) -> dict:
    limit = {} if "truncate" not in case else {"truncation": case["truncate"], "max_length": case["most"]}
    try:
        made = tokenizer(case["text"], case.get("pair"), return_token_type_ids=True, **limit)
    except Exception:  # The tokenizer has one kind of error only: nothing would be left of what is to be truncated.
        return {**case, "refused": True}
    return {**case, "input_ids": made["input_ids"], "token_type_ids": made["token_type_ids"]}


def write(folder: pathlib.Path, seed: int, name: str) -> None:
    make_tokenizer, kind, make_config = MODELS[name]
    tokenizer = make_tokenizer()
    config = make_config()
    config.vocab_size = len(tokenizer)
    config.pad_token_id = tokenizer.pad_token_id
    config._attn_implementation = "eager"
    model = spread(kind(config), seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model.to(torch.float64)
    # A model without types of tokens, or with one, is given none.
    typed = getattr(config, "type_vocab_size", 0) > 1
    special = tokenizer.num_special_tokens_to_add(pair=True)
    cut = [{"truncate": how, "most": room + special, **case} for case, how, room in TRUNCATED]
    every = [encode(tokenizer, case) for case in CASES + cut]
    cases = [case for case in every if "refused" not in case]
    longest = max(len(case["input_ids"]) for case in cases)
    padded = lambda key, filler: torch.tensor([case[key] + [filler] * (longest - len(case[key])) for case in cases])
    ids = padded("input_ids", tokenizer.pad_token_id)
    mask = torch.tensor([[1] * len(case["input_ids"]) + [0] * (longest - len(case["input_ids"])) for case in cases])
    types = {"token_type_ids": padded("token_type_ids", 0)} if typed else {}
    with torch.no_grad():
        made = model(input_ids=ids, attention_mask=mask, **types)
    short = lambda row: [float(f"{value:.9g}") for value in row.flatten().tolist()]
    for i, case in enumerate(cases):
        length = len(case["input_ids"])
        if "start_logits" in made:
            case["begins"] = short(made.start_logits[i, :length])
            case["ends"] = short(made.end_logits[i, :length])
        else:
            logits = made.logits[i]
            case["logits"] = short(logits[:length] if logits.dim() == 2 else logits)
        if not typed:
            del case["token_type_ids"]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in every)
    (folder / "golden.json").write_text(f'{{"cases":[\n{lines}\n]}}\n', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=sorted(MODELS))
    args = parser.parse_args()
    for seed, name in enumerate(sorted(MODELS)):
        if args.only in (None, name):
            write(args.out / name, seed, name)


if __name__ == "__main__":
    main()
