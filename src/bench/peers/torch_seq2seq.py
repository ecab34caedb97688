#!/usr/bin/env python3
"""Times Hugging Face's generate for the sizes of `heddle bench decoding --peer torch`, which sends them on stdin as JSON.

The model has random weights, and its encoder has as many layers as the decoder. End ids are excluded, so every run takes all
steps. Prints one JSON line per batch. Needs PyTorch with CUDA, and transformers.
"""
import json
import sys
import time


def say(**line) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    request = json.load(sys.stdin)
    try:
        import torch
        import transformers
        from transformers import PegasusConfig, PegasusForConditionalGeneration
    except ImportError as error:
        say(problem=f"not timed: {error}")
        return
    if not torch.cuda.is_available():
        say(problem="not timed: PyTorch finds no GPU")
        return
    hidden = request["heads"] * request["headDim"]
    steps, places = request["steps"], max(request["steps"] + 1, request["memory"])
    config = PegasusConfig(
        vocab_size=request["vocab"], d_model=hidden, encoder_layers=request["layers"], decoder_layers=request["layers"],
        encoder_attention_heads=request["heads"], decoder_attention_heads=request["heads"], encoder_ffn_dim=4 * hidden,
        decoder_ffn_dim=4 * hidden, activation_function="relu", scale_embedding=True, max_position_embeddings=places,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None,
    )
    torch.manual_seed(0)
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[request["dtype"]]
    model = PegasusForConditionalGeneration(config).to("cuda", dtype).eval()
    say(about={"torch": torch.__version__, "transformers": transformers.__version__, "gpu": torch.cuda.get_device_name()})
    choice = request["choice"]
    ways = {"num_beams": choice.get("beams", 1), "do_sample": "topK" in choice or "topP" in choice}
    if ways["do_sample"]:
        ways.update(top_k=choice.get("topK", 0), top_p=choice.get("topP", 1.0))
    for batch in request["batches"]:
        samples = []
        for turn in range(request["warmup"] + min(request["repeats"], 5)):
            ids = torch.randint(3, request["vocab"], (batch, request["memory"]), device="cuda")
            torch.cuda.synchronize()
            began = time.perf_counter()
            model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=steps, max_new_tokens=steps, **ways)
            torch.cuda.synchronize()
            if turn >= request["warmup"]:
                samples.append((time.perf_counter() - began) * 1e3)
        say(batch=batch, samples=samples)


main()
