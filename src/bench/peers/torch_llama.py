#!/usr/bin/env python3
"""Times a LLaMA-like model in PyTorch for `heddle bench llama --peer torch`, which sends the sizes on stdin as JSON.

Weights are random. The cache has 64 positions more than the context, positions advance with every step, and the chosen token is fed
back; nothing waits for the host before the end of a window of steps. Modes: `compile` is torch.compile with CUDA graphs over
scaled_dot_product_attention, with each key read once for the heads that share it; `flex` is the same over flex_attention; `max-autotune`
lets inductor choose kernels by measuring; `graph` is eager PyTorch in a CUDA graph. Prints one JSON line per shape and mode, with its own
floor: bytes at the rate of a large copy, or arithmetic at the rate of a large matmul. Needs PyTorch with CUDA.
"""
import json
import sys
import time


def say(**line):
    print(json.dumps(line), flush=True)


request = json.load(sys.stdin)
try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    say(problem=f"not timed: {error}")
    sys.exit()
if not torch.cuda.is_available():
    say(problem="not timed: PyTorch finds no GPU")
    sys.exit()

sizes = request["config"]
H, HEADS, KV, D = sizes["hidden"], sizes["heads"], sizes["kvHeads"], sizes["headDim"]
INNER, LAYERS, VOCAB, SHARED = sizes["inner"], sizes["layers"], sizes["vocab"], HEADS // KV
DTYPE = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[request["dtype"]]
WINDOW, REPEATS = request["window"], request["repeats"]
SPARE = max(64, WINDOW)
device = "cuda"
torch.manual_seed(0)


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, device=device, dtype=DTYPE) * 0.02, requires_grad=False)

    def forward(self, x):
        return F.linear(x, self.weight)


def steps_of(weight):
    """Scale of each channel."""
    return weight.abs().amax(1).float() / 127


class Int8Weights(nn.Module):
    def __init__(self, linear):
        super().__init__()
        steps = steps_of(linear.weight)
        self.register_buffer("weight", (linear.weight / steps[:, None]).round().to(torch.int8))
        self.register_buffer("steps", steps.to(DTYPE))

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype)) * self.steps


class Int8(nn.Module):
    """int8 matmul with one scale per token and one per channel. `_int_mm` needs more than 16 rows."""

    def __init__(self, linear):
        super().__init__()
        steps = steps_of(linear.weight)
        self.register_buffer("weight", (linear.weight / steps[:, None]).round().to(torch.int8).t())
        self.register_buffer("steps", steps)

    def forward(self, x):
        rows = x.flatten(0, -2).float()
        own = rows.abs().amax(-1, keepdim=True).clamp(min=1e-9) / 127
        product = torch._int_mm((rows / own).round().to(torch.int8), self.weight)
        return (product.float() * own * self.steps).to(x.dtype).unflatten(0, x.shape[:-1])


KINDS = {"float": lambda linear: linear, "int8 weights": Int8Weights, "int8": Int8}


def rotate(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def ones(count):
    return nn.Parameter(torch.ones(count, device=device, dtype=DTYPE), requires_grad=False)


class Layer(nn.Module):
    def __init__(self, rows, capacity, kind):
        super().__init__()
        self.qkv, self.out = kind(Linear(H, (HEADS + 2 * KV) * D)), kind(Linear(HEADS * D, H))
        self.gate_up, self.down = kind(Linear(H, 2 * INNER)), kind(Linear(INNER, H))
        self.attention_norm, self.inner_norm = ones(H), ones(H)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(rows, KV, capacity, D, device=device, dtype=DTYPE))

    def forward(self, x, places, cos, sin, mask, flex):
        rows, count, _ = x.shape
        normed = F.rms_norm(x, (H,), self.attention_norm, sizes["eps"])
        q, k, v = self.qkv(normed).view(rows, count, HEADS + 2 * KV, D).transpose(1, 2).split((HEADS, KV, KV), 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        self.keys[:, :, places] = k
        self.values[:, :, places] = v
        if count > 1:  # the chunk is the whole past
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=SHARED > 1)
        elif flex is not None:
            seen = flex(q, self.keys, self.values, block_mask=mask, enable_gqa=SHARED > 1)
        else:
            grouped = q.view(rows, KV, SHARED, D)
            seen = F.scaled_dot_product_attention(grouped, self.keys, self.values, attn_mask=mask).reshape(rows, HEADS, 1, D)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, count, HEADS * D))
        gate, up = self.gate_up(F.rms_norm(x, (H,), self.inner_norm, sizes["eps"])).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, rows, capacity, products):
        super().__init__()
        self.words = nn.Parameter(torch.randn(VOCAB, H, device=device, dtype=DTYPE) * 0.02, requires_grad=False)
        self.layers = nn.ModuleList(Layer(rows, capacity, KINDS[products]) for _ in range(LAYERS))
        self.norm, self.head = ones(H), Linear(H, VOCAB)
        if sizes["tied"]:
            self.head.weight = self.words
        frequencies = 1 / sizes["theta"] ** (torch.arange(0, D, 2).float() / D)
        angles = torch.outer(torch.arange(capacity).float(), frequencies).to(device)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("all_places", torch.arange(capacity, device=device))
        self.flex = None

    def forward(self, ids, places, block_mask=None):
        x, cos, sin = self.words[ids], self.cos[places], self.sin[places]
        mask = block_mask
        if self.flex is None:
            mask = (self.all_places <= places)[None, None, None] if ids.shape[1] == 1 else None
        for layer in self.layers:
            x = layer(x, places, cos, sin, mask, self.flex)
        return self.head(F.rms_norm(x[:, -1], (H,), self.norm, sizes["eps"])).argmax(-1, keepdim=True)

    def read_bytes(self):
        """Bytes of weights that a step reads; the embedding table counts only for a tied head."""
        own = {id(self.words)} if not sizes["tied"] else set()
        tensors = [p for p in self.parameters() if id(p) not in own]
        tensors += [b for layer in self.layers for m in layer.children() for b in m.buffers()]
        return sum(t.numel() * t.element_size() for t in tensors)


def timed(run, count):
    """Milliseconds of `count` runs, by events."""
    samples = []
    for _ in range(count):
        first, last = torch.cuda.Event(True), torch.cuda.Event(True)
        first.record()
        run()
        last.record()
        last.synchronize()
        samples.append(first.elapsed_time(last))
    return samples


def copy_rate():
    x = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    return 2e3 * x.numel() / min(timed(lambda: y.copy_(x), 12))


def product_rate(int8):
    n = 8192
    if int8:
        x = torch.randint(-127, 128, (n, n), device=device, dtype=torch.int8)
        return 2e3 * n**3 / min(timed(lambda: torch._int_mm(x, x.t()), 12))
    x = torch.randn(n, n, device=device, dtype=DTYPE)
    return 2e3 * n**3 / min(timed(lambda: x @ x.t(), 12))


RATE = copy_rate()
PRODUCT = {"float": product_rate(False), "int8": product_rate(True) if "int8" in request["products"] else None}
PRODUCT["int8 weights"] = PRODUCT["float"]
torch.cuda.empty_cache()
say(about={"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "copy": f"{RATE / 1e12:.3f} TB/s"})


def usual_ways(what, context):
    """`flex` is faster for shared keys and long texts; scaled_dot_product_attention with a mask reads the whole cache."""
    if what == "prompt":
        return ["compile"]
    return (["compile"] if context < 16384 else []) + (["flex"] if SHARED > 1 or context >= 4096 else [])


def windows(step, places, ids, context):
    """Milliseconds per step in windows around the context, by the host's clock."""
    samples = []
    for turn in range(REPEATS + 2):
        places.fill_(max(context - WINDOW // 2, 1))
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(WINDOW):
            ids.copy_(step())
            places.add_(1)
        torch.cuda.synchronize()
        if turn >= 2:
            samples.append((time.perf_counter() - began) * 1e3 / WINDOW)
    return samples


def time_step(model, way, rows, context):
    ids = torch.randint(0, VOCAB, (rows, 1), device=device)
    places = torch.tensor([context + WINDOW // 2], device=device)
    extra = {}
    model.flex = None
    if way == "flex":
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        model.flex = flex_attention
        extra["block_mask"] = create_block_mask(
            lambda b, h, q, k: k <= places[0], 1, 1, 1, model.all_places.numel(), device=device
        )
    if way == "graph":
        for _ in range(3):
            model(ids, places)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            chosen = model(ids, places)

        def replay():
            graph.replay()
            return chosen

        return windows(replay, places, ids, context)
    torch._dynamo.reset()
    mode = "max-autotune" if way == "max-autotune" else "reduce-overhead"
    compiled = torch.compile(model, mode=mode, fullgraph=True, dynamic=False)

    def step():
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(ids, places, **extra)

    for _ in range(3):
        step()
    return windows(step, places, ids, context)


def time_prompt(model, way, rows, length):
    ids = torch.randint(0, VOCAB, (rows, length), device=device)
    places = torch.arange(length, device=device)
    torch._dynamo.reset()
    compiled = model
    if way != "graph":
        mode = "max-autotune" if way == "max-autotune" else "reduce-overhead"
        compiled = torch.compile(model, mode=mode, fullgraph=True, dynamic=False)
    samples = []
    for turn in range(REPEATS + 4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        torch.compiler.cudagraph_mark_step_begin()
        compiled(ids, places)
        torch.cuda.synchronize()
        if turn >= 4:
            samples.append((time.perf_counter() - began) * 1e3)
    return samples


def floor_of(model, what, products, rows, seq):
    size = torch.finfo(DTYPE).bits // 8
    cache = 2 * LAYERS * KV * D * seq * rows * size
    tokens = rows * seq if what == "prompt" else rows
    layer = H * (HEADS + 2 * KV) * D + HEADS * D * H + 3 * H * INNER
    pairs = rows * seq * (seq + 1) / 2 if what == "prompt" else rows * seq
    arithmetic = 2 * tokens * LAYERS * layer / PRODUCT[products] + 4 * pairs * LAYERS * HEADS * D / PRODUCT["float"]
    return 1e3 * max((model.read_bytes() + cache) / RATE, arithmetic)


def time_shape(what, products, rows, seq):
    about = {"what": what, "products": products, "batch": rows, "seq": seq}
    if products == "int8" and (rows if what == "step" else rows * seq) <= 16:
        return say(**about, way="compile", error="torch._int_mm needs more than 16 rows")
    ways = usual_ways(what, seq)
    asked = request.get("ways")
    if asked is not None:
        ways = [way for way in asked if what == "step" or way != "flex"]
    torch.cuda.reset_peak_memory_stats()
    model = Model(rows, (seq + SPARE + 7) // 8 * 8, products).eval()
    for way in ways:
        try:
            run = time_step if what == "step" else time_prompt
            samples = run(model, way, rows, seq)
            floor = floor_of(model, what, products, rows, seq)
            say(**about, way=way, samples=samples, floor=floor, peakBytes=torch.cuda.max_memory_allocated())
        except Exception as error:  # a failing mode does not stop the others
            say(**about, way=way, error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        model.flex = None


with torch.no_grad():
    for products in request["products"]:
        for what, shapes in (("step", request["steps"]), ("prompt", request["prompts"])):
            for shape in shapes:
                time_shape(what, products, shape["batch"], shape["seq"])
                torch._dynamo.reset()
                torch.cuda.empty_cache()
