"""Results of HF for small LLaMA-like models: greedy ids after prompts, and logits at some positions of a text, in float32.

    python llama_goldens.py OUT MODEL...

The models are loaded in float32, as `from_pretrained` does it: inverse frequencies of the rotation are float32 numbers whatever the
checkpoint stores. Prompts, texts and places are those of the folder's own golden files. Writes OUT/MODEL.json.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def greedy(model, ids, count, ends):
    gap, new = float('inf'), []
    with torch.no_grad():
        out = model(torch.tensor([ids]), use_cache=True)
        for _ in range(count):
            best = out.logits[0, -1].topk(2)
            gap = min(gap, (best.values[0] - best.values[1]).item())
            new.append(best.indices[0].item())
            if new[-1] in ends:
                break
            out = model(best.indices[:1][None], past_key_values=out.past_key_values, use_cache=True)
    return {'input_ids': ids, 'greedy_ids': new, 'smallest_gap': round(gap, 5)}


target = Path(sys.argv[1])
for folder in map(Path, sys.argv[2:]):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    given = json.loads((folder / 'golden.json').read_text())
    tensors = load_file(folder / 'golden.safetensors')
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    text, places = tensors['input_ids'], tensors['places']
    with torch.no_grad():
        logits = model(text.long()[None]).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], text[1:].long()).item()
    made = {
        'cases': [greedy(model, case['input_ids'], len(case['greedy_ids']), ends) for case in given['cases']],
        'text': {
            'input_ids': text.tolist(),
            'mean_nll': loss,
            'places': places.tolist(),
            'logits': [[float(f'{x:.7g}') for x in row] for row in logits[places.long()].tolist()],
        },
    }
    (target / f'{folder.name}.json').write_text(json.dumps(made, separators=(',', ':')))
    print(folder.name, loss, [len(case['greedy_ids']) for case in made['cases']])
