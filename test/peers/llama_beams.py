"""Results of HF's beam search with small LLaMA-like models, in float32: every hypothesis of some prompts, with its score.

    python llama_beams.py MODEL...

Prompts are parts of the folder's golden text. Texts end at the model's own ids and at some that it generates, so that hypotheses of several
lengths compete. Writes MODEL/beams.json; ids of a hypothesis are those before its end.
"""
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

WIDTH, STEPS = 4, 12
RULES = [(1.0, False), (0.4, True), (1.5, 'never')]


def generate(model, prompt, **config):
    with torch.no_grad():
        return model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            generation_config=GenerationConfig(pad_token_id=0, do_sample=False, return_dict_in_generate=True, output_scores=True, **config),
        )


for folder in map(Path, sys.argv[1:]):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = json.loads((folder / 'golden.json').read_text())['text']['input_ids']
    prompts = [ids[:2], ids[5:62], ids[70:79]]
    own = model.generation_config.eos_token_id
    own = own if isinstance(own, list) else [own]
    texts = [generate(model, prompt, eos_token_id=own, max_new_tokens=6).sequences[0][len(prompt):].tolist() for prompt in prompts[:2]]
    ends = sorted({*own, *(text[3] for text in texts if len(text) > 3)})

    def hypotheses(prompt, length_penalty, early_stopping):
        found = generate(
            model, prompt, eos_token_id=ends, max_new_tokens=STEPS, num_beams=WIDTH, num_return_sequences=WIDTH,
            length_penalty=length_penalty, early_stopping=early_stopping,
        )
        made = []
        for row, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
            new = row[len(prompt):]
            stop = next((at for at, token in enumerate(new) if token in ends), len(new))
            made.append({'ids': new[:stop], 'score': float(f'{score:.7g}')})
        return made

    searches = [
        {'length_penalty': penalty, 'early_stopping': stopping, 'found': [hypotheses(prompt, penalty, stopping) for prompt in prompts]}
        for penalty, stopping in RULES
    ]
    golden = {'width': WIDTH, 'steps': STEPS, 'ends': ends, 'prompts': prompts, 'searches': searches}
    (folder / 'beams.json').write_text(json.dumps(golden, separators=(',', ':')))
    print(folder.name, ends, [[[len(h['ids']) for h in found] for found in search['found']] for search in searches])
