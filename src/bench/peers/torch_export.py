"""Checks exported programs under PyTorch against expected outputs of the same programs, and times them.

    python3 torch_export.py FOLDER... [--repeats 200]
    python3 torch_export.py EXPORT --inputs inputs.safetensors --expected outputs.safetensors --tolerance 1e-2 [--say t=13]

A FOLDER is written by test/peers/make_exports.ts: the op, its library, weights, inputs, expected outputs, and check.json with the rest. An
EXPORT is a folder that `heddle export NAME --model MODEL` wrote and CMake built. Expected outputs are those of its example on simt, which
equal a run from Node bit for bit. There are four modes: eager, torch.compile(fullgraph=True), and both in a CUDA graph of the caller. The
largest error of each output, relative to its largest value, must not exceed the tolerance. Integers must be equal except for a stated
share of them, and the four modes must agree exactly. As in the files of the example, `state.NAME` is the initial value of a state, or its
value after one run. Prints JSON, one line per program, and exits with 1 on any failure. Needs only torch: without it, reports that and
exits with 0.
"""
import argparse
import glob
import importlib.util
import json
import os
import statistics
import struct
import subprocess
import sys

try:
    import torch
except ImportError as error:
    print(json.dumps({"skipped": f"there is no PyTorch for {sys.executable}: {error}"}))
    sys.exit(0)

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
    """Tensors of a safetensors file."""
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
    """Milliseconds of calls, from the launch to the end of the work: of single calls, and per call of many back to back."""
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
        """Resets states to their initial values."""
        if self._states is None:
            return
        self._states.copy_(self._model.states(**self._said))
        for name, value in self._values.items():
            self._model.write(self._states, name, value, **self._said)

    def call(self):
        return self._model(**self._arguments) if self._states is None else self._model(self._states, **self._arguments)

    def found(self, results):
        """Outputs in order, followed by states."""
        states = {name: self._model.read(self._states, name[len(STATE) :], like, **self._said) for name, like in self._states_of.items()}
        return [result.clone() for result in listed(results)] + list(states.values())

    def views(self):
        """Messages for states whose view differs from the value that is read."""
        wrong = []
        for name, like in self._states_of.items():
            view = self._model.view(self._states, name[len(STATE) :], **self._said)
            found = self._model.read(self._states, name[len(STATE) :], like, **self._said)
            order = sorted(range(view.dim()), key=lambda axis: -view.stride(axis))
            if not torch.equal(view.permute(order).flatten(), found.flatten()):
                wrong.append(f"the view of {name} is not what is read of it")
        return wrong


class Calls:
    """Calls of a function without state."""

    def __init__(self, call):
        self.call = call

    def begin(self):
        pass

    def found(self, results):
        return [result.clone() for result in listed(results)]


def captured(call):
    """Captures a call in a CUDA graph. Returns its replay function and its outputs."""
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


def loaded(folder, name):
    """Module from a file of the folder."""
    about = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
    sys.modules[name] = importlib.util.module_from_spec(about)
    about.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class Case:
    """A program to check: its folder, inputs and expected outputs."""

    def __init__(self, folder, options):
        about = os.path.join(folder, "check.json")
        stated = json.load(open(about, encoding="utf-8")) if os.path.exists(about) else {}
        self.folder = folder
        self.inputs = options.inputs or os.path.join(folder, "inputs.safetensors")
        self.expected = options.expected or os.path.join(folder, "expected.safetensors")
        self.tolerance = stated.get("tolerance", 0.0) if options.tolerance is None else options.tolerance
        self.differ = stated.get("differ", 0.0)
        self.said = stated.get("say", {}) | {name: int(size) for name, size in (pair.split("=") for pair in options.say)}
        self.outputs = options.outputs or stated.get("outputs")

    def module(self):
        (name,) = [
            os.path.basename(path)[:-3]
            for path in glob.glob(os.path.join(self.folder, "*_torch.py"))
            if os.path.basename(path) != "gather_tree_torch.py"
        ]
        return loaded(self.folder, name)

    def wrong(self, wanted, result):
        """Error of a result, and True if it is too large."""
        if wanted.is_floating_point():
            wanted = wanted.to(torch.float64)
            error = ((result.to(torch.float64) - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item()
            return error, not error <= self.tolerance
        error = (result != wanted).to(torch.float64).mean().item()
        return error, error > self.differ


def forms_of(runs, device):
    """Results of the program in each mode, with a function that runs it again."""
    forms = {}
    for way, call in {"eager": runs.call, "compiled": torch.compile(runs.call, fullgraph=True)}.items():
        # A CUDA library captures the second call of a kind, and replays it from the third on.
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
    return forms


def check(case, repeats):
    exported = case.module()
    device = exported.DEVICE
    path = os.path.join(case.folder, "weights.safetensors")
    inputs, expected = read(case.inputs, device), read(case.expected, device)
    states_of = {name: expected[name] for name in sorted(expected) if name.startswith(STATE)}
    names = (case.outputs or sorted(set(expected) - set(states_of))) + list(states_of)
    runs = Runs(exported.Program(read(path, device)), inputs, case.said, states_of)

    report, failures, first = {"folder": case.folder, "device": device, "torch": torch.__version__}, [], None
    for form, (run, found) in forms_of(runs, device).items():
        first = first or found
        errors = {}
        for name, result, same in zip(names, found, first, strict=True):
            errors[name], far = case.wrong(expected[name], result)
            if far:
                failures.append(f"{form}: {name} errs by {errors[name]}")
            if not torch.equal(result, same):
                failures.append(f"{form}: {name} differs from the eager run")
        runs.begin()
        report[form] = {"errors": errors, "milliseconds": times(run, repeats, device)}
    failures += runs.views()

    # A changed weight must change the result.
    weights = read(path, device)
    largest = max((name for name in weights if weights[name].is_floating_point()), key=lambda name: weights[name].numel())
    weights[largest] = weights[largest] * 1.5 + 0.25
    twins = Runs(exported.Program(weights), inputs, case.said, states_of)
    twins.begin()
    twin = twins.found(twins.call())
    if all(torch.equal(result, same) for result, same in zip(twin, first, strict=True)):
        failures.append(f"changing {largest} changed nothing")
    return report | {"failures": failures + tree_failures(case.folder, device)}


def plain_tree(words, parents, lengths, end):
    """Reference of gather_tree: follows each beam from the last step back to its parents."""
    steps, sequences, width = words.shape
    texts = torch.full_like(words, end)
    for b in range(sequences):
        for k in range(width):
            beam = k
            for t in reversed(range(min(steps, int(lengths[b])))):
                texts[t, b, k] = words[t, b, beam]
                beam = int(parents[t, b, beam]) % width
            hits = (texts[:, b, k] == end).nonzero()
            if len(hits) > 0:
                texts[int(hits[0]) :, b, k] = end
    return texts


def tree_failures(folder, device):
    """Failures of gather_tree in all modes on random steps, including lengths of 0 and beyond the steps."""
    module = loaded(folder, "gather_tree_torch")
    torch.manual_seed(1)
    failures = []
    for steps, width in ((1, 1), (2, 4), (13, 3), (32, 4)):
        lengths = torch.tensor([0, 1, steps, steps + 2, max(1, steps - 3)], dtype=torch.int32)
        words = torch.randint(0, 9, (steps, len(lengths), width), dtype=torch.int32)
        rows = torch.randint(0, width, words.shape) + width * torch.arange(len(lengths)).view(1, -1, 1)
        wanted = plain_tree(words, rows, lengths, 2)
        given = [tensor.to(device) for tensor in (words, rows.to(torch.int32), lengths)]

        def call():
            return module.gather_tree(*given, 2)

        for form, (_, found) in forms_of(Calls(call), device).items():
            if not torch.equal(found[0].cpu(), wanted):
                failures.append(f"gather_tree {form}: another text for {steps} steps of {width} beams")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--inputs")
    parser.add_argument("--expected")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--say", nargs="*", default=[], help="dimensions that no input determines: name=size")
    parser.add_argument("--outputs", nargs="*", help="names of the outputs in order; default: sorted names of the expected file")
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    if len(options.folders) > 1:
        # An op can be defined only once per process, and several folders may have the same program.
        others = [argument for argument in sys.argv[1:] if argument not in options.folders]
        codes = [subprocess.run([sys.executable, __file__, folder, *others], check=False).returncode for folder in options.folders]
        sys.exit(max(abs(code) for code in codes))
    report = check(Case(options.folders[0], options), options.repeats)
    print(json.dumps(report))
    sys.exit(1 if report["failures"] else 0)


if __name__ == "__main__":
    main()
