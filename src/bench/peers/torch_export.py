"""Holds an exported program under PyTorch against what the same program gave elsewhere, and times it.

    python3 torch_export.py EXPORT --inputs inputs.safetensors --expected outputs.safetensors --tolerance 1e-2 [--say t=13] [--repeats 200]

EXPORT is a folder that `heddle export NAME --model MODEL` wrote and CMake built. Expected are outputs of its example on simt, which are
those of a run from Node bit for bit. Four ways: eager, torch.compile(fullgraph=True), both again in a CUDA graph. The largest error of each
output, as a share of its largest value, may be the tolerance at most; between the four ways nothing may differ. Prints JSON, and ends with 1
where anything is wrong. Needs torch alone; for programs without states.
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
    """Milliseconds of each call, from its launch to the end of its work."""
    found = []
    for _ in range(repeats):
        if device == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end))
        else:
            call()
    return {"median": statistics.median(found), "least": min(found)} if found else None


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
    names = options.outputs or sorted(expected)
    said = {name: int(size) for name, size in (pair.split("=") for pair in options.say)}

    def eager():
        return model(**inputs, **said)

    compiled = torch.compile(eager, fullgraph=True)
    ways = {"eager": eager, "compiled": compiled}
    report, failures, first = {"device": device, "torch": torch.__version__}, [], None
    for way, call in ways.items():
        results = [result.clone() for result in listed(call())]
        forms = {way: (call, results)}
        if device == "cuda":
            replay, held = captured(call)
            for result in listed(held):
                result.zero_()
            replay()
            torch.cuda.synchronize()
            forms[way + " in a graph"] = (replay, [result.clone() for result in listed(held)])
        for form, (run, found) in forms.items():
            first = first or found
            errors = {}
            for name, result, same in zip(names, found, first):
                wanted = expected[name].to(torch.float64)
                error = ((result.to(torch.float64) - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item()
                errors[name] = error
                if not error <= options.tolerance and expected[name].is_floating_point():
                    failures.append(f"{form}: {name} errs by {error}")
                if not torch.equal(result, same):
                    failures.append(f"{form}: {name} differs from the eager run")
            report[form] = {"errors": errors, "milliseconds": times(run, options.repeats, device)}

    # A weight that is another must be told.
    weights = read(os.path.join(options.export, "weights.safetensors"), device)
    largest = max((name for name in weights if weights[name].is_floating_point()), key=lambda name: weights[name].numel())
    weights[largest] = weights[largest] * 1.5 + 0.25
    twin = listed(exported.Program(weights)(**inputs, **said))
    if all(torch.equal(result, same) for result, same in zip(twin, first)):
        failures.append(f"changing {largest} changed nothing")
    report["failures"] = failures
    print(json.dumps(report, indent=2))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
