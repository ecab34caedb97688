"""Times PyTorch's softmax over channels and batch norm on a GPU, for comparison with `heddle bench channel_softmax` and `heddle bench batch_norm`.

    python test/peers/channels.py

Prints medians in microseconds of CUDA graphs of 40 runs, eager and compiled, float16. Runs alternate between buffers that together exceed
the L2 cache.
"""
import statistics

import torch
import torch.nn.functional as F

RUNS = 40
BYTES = 200e6


def timed(run, shape):
    count = int(BYTES // (2 * torch.Size(shape).numel() * 2)) + 2
    inputs = [torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(count)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for x in inputs[:3]:
            run(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(RUNS):
            run(inputs[i % count])
    samples = []
    for _ in range(8):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / RUNS * 1e3)
    return statistics.median(samples[1:])


def compiled_for(run):
    """Compiled for one shape: earlier compilations for other shapes make no extent dynamic."""
    torch._dynamo.reset()
    return torch.compile(run, dynamic=False)


def softmax(x):
    return torch.softmax(x, 1)


def normed(gamma, beta):
    """A batch norm in float32 arithmetic, for the compiler to fuse."""

    def run(x):
        y = x.float()
        mean = y.mean(0)
        variance = ((y - mean) ** 2).mean(0)
        return ((y - mean) * torch.rsqrt(variance + 1e-5) * gamma + beta).to(x.dtype)

    return run


def main():
    for shape in [(16, 4, 65536), (16, 16, 16384), (16, 19, 65536), (4, 64, 16384), (8, 512, 4096), (1, 1000, 1024)]:
        eager, compiled = timed(softmax, shape), timed(compiled_for(softmax), shape)
        print(f"softmax over channels {shape}: eager {eager:.1f}, compiled {compiled:.1f} us")
    for shape in [(4096, 768), (16384, 256), (65536, 64)]:
        gamma, beta = (torch.randn(shape[1], device="cuda") for _ in range(2))
        halves = (gamma.half(), beta.half())
        eager = timed(lambda x: F.batch_norm(x, None, None, *halves, True), shape)
        compiled = timed(compiled_for(normed(gamma, beta)), shape)
        print(f"batch norm {shape}: eager {eager:.1f}, compiled {compiled:.1f} us")


if __name__ == "__main__":
    main()
