"""Holds an exported program under PyTorch against what the same program gave elsewhere, and times it.

    python3 torch_export.py EXPORT --inputs inputs.safetensors --expected outputs.safetensors --tolerance 1e-2 [--say t=13] [--repeats 200]

EXPORT is a folder that `heddle export NAME --model MODEL` wrote and CMake built. Expected are outputs of its example on simt, which are
those of a run from Node bit for bit. Four ways: eager, torch.compile(fullgraph=True), both again in a CUDA graph of the caller. The
largest error of each output, as a share of its largest value, may be the tolerance at most; integers have to be equal, and between the
four ways nothing may differ. As in the files of the example, `state.NAME` is what a state begins with, or what one run leaves in it.
Prints JSON, and ends with 1 where anything is wrong. Needs torch alone.
"""
import argparse
import glob
import importlib
import json
import os
import statistics
import struct
import sys

import torch

STATE = "state."
TYPES = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "I8": torch.int8,
    "U8": torch.uint8,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I16": torch.int16,
    "U32": torch.uint32,
    "I64": torch.int64,
}


def read(path, device):
    """The tensors of a safetensors file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), bytearray(file.read())
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        dtype = TYPES[about["dtype"]]
        flat = torch.frombuffer(data, dtype=dtype, count=(end - begin) // dtype.itemsize, offset=begin)
        tensors[name] = flat.reshape(about["shape"]).clone().to(device)
    return tensors


def times(call, repeats, device):
    """Milliseconds of calls, from the launch to the end of the work: of each by itself, and of one among many behind each other."""
    if device != "cuda" or repeats == 0:
        return None
    found = []
    for count in [1] * repeats + [repeats]:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / count)
    *alone, among = found
    return {"median": statistics.median(alone), "least": min(alone), "among many": among}


class Runs:
    """Runs of a program on inputs, each from the same states."""

    def __init__(self, model, given, said, states_of):
        self._model, self._said, self._states_of = model, said, states_of
        self._values = {name[len(STATE) :]: value for name, value in given.items() if name.startswith(STATE)}
        self._arguments = {name: value for name, value in given.items() if not name.startswith(STATE)} | said
        self._states = model.states(**said) if states_of else None

    def begin(self):
        """Has states be what they begin with."""
        if self._states is None:
            return
        self._states.copy_(self._model.states(**self._said))
        for name, value in self._values.items():
            self._model.write(self._states, name, value, **self._said)

    def call(self):
        return self._model(**self._arguments) if self._states is None else self._model(self._states, **self._arguments)

    def found(self, results):
        """Outputs in their order, and states behind them."""
        states = {name: self._model.read(self._states, name[len(STATE) :], like, **self._said) for name, like in self._states_of.items()}
        return [result.clone() for result in listed(results)] + list(states.values())


def captured(call):
    """The call in a CUDA graph: what replays it, and what it writes."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph.replay, results


def listed(results):
    if results is None:
        return []
    return list(results) if isinstance(results, tuple) else [results]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("export")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--expected", required=True)
    parser.add_argument("--tolerance", type=float, required=True)
    parser.add_argument("--say", nargs="*", default=[], help="dimensions that no input says: name=size")
    parser.add_argument("--outputs", nargs="*", help="names of the outputs in order; those of the expected file, sorted, by default")
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()

    (module,) = [os.path.basename(path)[:-3] for path in glob.glob(os.path.join(options.export, "*_torch.py"))]
    sys.path.insert(0, options.export)
    exported = importlib.import_module(module)
    device = exported.DEVICE
    model = exported.Program(read(os.path.join(options.export, "weights.safetensors"), device))
    inputs = read(options.inputs, device)
    expected = read(options.expected, device)
    states_of = {name: expected[name] for name in sorted(expected) if name.startswith(STATE)}
    names = (options.outputs or sorted(set(expected) - set(states_of))) + list(states_of)
    said = {name: int(size) for name, size in (pair.split("=") for pair in options.say)}
    runs = Runs(model, inputs, said, states_of)

    compiled = torch.compile(runs.call, fullgraph=True)
    ways = {"eager": runs.call, "compiled": compiled}
    report, failures, first = {"device": device, "torch": torch.__version__}, [], None
    for way, call in ways.items():
        # A library for CUDA keeps what comes a second time, and replays it from the third time on.
        forms = {}
        for turn in ("", ", second run", ", third run"):
            runs.begin()
            forms[way + turn] = (call, runs.found(call()))
        if device == "cuda":
            replay, held = captured(call)
            for result in listed(held):
                result.zero_()
            runs.begin()
            replay()
            torch.cuda.synchronize()
            forms[way + " in a graph"] = (replay, runs.found(held))
        for form, (run, found) in forms.items():
            first = first or found
            errors = {}
            for name, result, same in zip(names, found, first, strict=True):
                wanted = expected[name].to(torch.float64)
                error = ((result.to(torch.float64) - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item()
                errors[name] = error
                if not error <= (options.tolerance if expected[name].is_floating_point() else 0):
                    failures.append(f"{form}: {name} errs by {error}")
                if not torch.equal(result, same):
                    failures.append(f"{form}: {name} differs from the eager run")
            runs.begin()
            report[form] = {"errors": errors, "milliseconds": times(run, options.repeats, device)}

    # A weight that is another must be told.
    weights = read(os.path.join(options.export, "weights.safetensors"), device)
    largest = max((name for name in weights if weights[name].is_floating_point()), key=lambda name: weights[name].numel())
    weights[largest] = weights[largest] * 1.5 + 0.25
    twins = Runs(exported.Program(weights), inputs, said, states_of)
    twins.begin()
    twin = twins.found(twins.call())
    if all(torch.equal(result, same) for result, same in zip(twin, first, strict=True)):
        failures.append(f"changing {largest} changed nothing")
    report["failures"] = failures
    print(json.dumps(report, indent=2))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
