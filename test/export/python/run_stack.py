"""Runs the op of the exported program `stack` twice: run_stack.py FOLDER M N GIVEN, with weights and x in a JSON file; prints results as JSON."""
import array
import importlib
import json
import sys

import torch

folder, m, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, folder)
stack = importlib.import_module("stack_torch")
given = json.load(open(sys.argv[4], encoding="utf-8"))


def made(shape, values):
    tensor = torch.empty(shape, torch.float32, "cpu")
    tensor.elements()[:] = array.array("f", values)
    return tensor


def refused(call):
    try:
        call()
    except (ValueError, RuntimeError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


x = made((m, n), given["x"])
model = stack.Program({name: made(shape, values) for name, shape, values in given["weights"]})
states = model.states(m)
began = list(model.view(states, "memory", m).elements())
once = list(model(x, states).elements())
twice = list(model(x, states).elements())
memory = model.view(states, "memory", m)
left = list(memory.elements())
# The next run reads values written through a view.
memory.elements()[:] = made((m, n), [0.0] * (m * n)).elements()
again = list(model(x, states).elements())
print(
    json.dumps(
        {
            "schemas": torch.schemas,
            "fake": torch.fakes["heddle::stack"](x, states, 0).shape,
            "began": began,
            "once": once,
            "twice": twice,
            "left": left,
            "again": again,
            "shape": refused(lambda: model(made((m, n + 1), [0.0] * (m * (n + 1))), states)),
            "weights": refused(lambda: stack.Program({})),
            "state": refused(lambda: model.view(states, "nothing", m)),
        }
    )
)
