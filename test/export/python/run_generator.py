"""Generates text with the op of an exported generator: run_generator.py FOLDER NAME GIVEN, with prompts and lists of options in a JSON file; prints texts as JSON."""
import array
import importlib
import json
import os
import struct
import sys

import torch

folder, name = sys.argv[1], sys.argv[2]
sys.path.insert(0, folder)
exported = importlib.import_module(name + "_torch")
types = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32, "I8": torch.int8, "U8": torch.uint8}


def weights():
    with open(os.path.join(folder, "weights.safetensors"), "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    for name, about in header.items():
        begin, end = about["data_offsets"]
        tensor = torch.empty(tuple(about["shape"]), types[about["dtype"]], "cpu")
        tensor._memory[tensor._begin : tensor._begin + end - begin] = data[begin:end]
        yield name, tensor


def integers(shape, values):
    tensor = torch.empty(shape, torch.int32, "cpu")
    tensor.elements()[:] = array.array("i", values)
    return tensor


given = json.load(open(sys.argv[3], encoding="utf-8"))
prompts = given["prompts"]
longest = max(len(prompt) for prompt in prompts)
# The padding after a prompt is no token of any vocabulary.
ids = integers((len(prompts), longest), [word for prompt in prompts for word in prompt + [-7] * (longest - len(prompt))])
lengths = integers((len(prompts),), [len(prompt) for prompt in prompts])
generator = exported.Generator(dict(weights()))
found, likely = [], []
for options in given["options"]:
    try:
        texts, ends, *logprobs = generator(ids, lengths, given["tokens"], **options)
        fake = torch.fakes[f"heddle::{name}_generate"](ids, lengths, 0, given["tokens"], **options)
        assert [each.shape for each in fake] == [texts.shape, ends.shape, *[each.shape for each in logprobs]]
        cut = lambda rows: [each[:end] for row, stops in zip(rows, ends.tolist()) for each, end in zip(row, stops)]
        found.append(cut(texts.tolist()))
        likely.extend(cut(each.tolist()) for each in logprobs)
    except (RuntimeError, ValueError) as error:
        found.append(f"{type(error).__name__}: {error}")
print(json.dumps({"texts": found, "logprobs": likely}))
